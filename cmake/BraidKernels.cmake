# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# braid_embed_kernels(<target> <name> sources...): compiles kernels written by hand (braid_kernel.h) and embeds their
# machine code in <target> as data (BRAID_GET_EMBEDDED_KERNELS(<name>)). Bundles receive it; the target itself does not call it.
function(braid_embed_kernels target name)
  add_library(${target}.${name} STATIC ${ARGN})
  set(archive ${CMAKE_CURRENT_BINARY_DIR}/lib${name}.a)
  set_target_properties(${target}.${name} PROPERTIES
    OUTPUT_NAME ${name} PREFIX lib SUFFIX .a ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
    POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target}.${name} PRIVATE ${Braid_INCLUDE_DIR})
  # No C++ runtime is there to throw, unwind or look up types.
  target_compile_options(${target}.${name} PRIVATE -fno-stack-protector
    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>)
  set(embedding ${CMAKE_CURRENT_BINARY_DIR}/${name}.embedded.c)
  file(CONFIGURE OUTPUT ${embedding} @ONLY CONTENT [=[
__asm__(".section .rodata\n"
        ".balign 16\n"
        ".globl @name@_begin\n.hidden @name@_begin\n@name@_begin:\n"
        ".incbin \"@archive@\"\n"
        ".globl @name@_end\n.hidden @name@_end\n@name@_end:\n"
        ".byte 0\n"
        ".text\n");
]=])
  set_source_files_properties(${embedding} PROPERTIES OBJECT_DEPENDS ${archive})
  # The build system does not see what .incbin reads.
  add_dependencies(${target} ${target}.${name})
  target_sources(${target} PRIVATE ${embedding})
endfunction()
