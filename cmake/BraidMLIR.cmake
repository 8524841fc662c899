# Finds MLIR and defines how our libraries and tools are built against it.
# Only the shared libraries are linked: the static archives beside libMLIR.so would define every symbol a second time.
set(MLIR_LINK_MLIR_DYLIB ON CACHE BOOL "Link tools and libraries against libMLIR.so")
find_package(MLIR ${BRAID_LLVM_VERSION} REQUIRED CONFIG
             HINTS /usr/lib/llvm-${BRAID_LLVM_MAJOR}/lib/cmake/mlir)
find_package(LLD REQUIRED CONFIG HINTS /usr/lib/llvm-${BRAID_LLVM_MAJOR}/lib/cmake/lld)
message(STATUS "MLIR ${LLVM_PACKAGE_VERSION}: ${MLIR_DIR}")

set(LLVM_RUNTIME_OUTPUT_INTDIR ${PROJECT_BINARY_DIR}/bin)
set(LLVM_LIBRARY_OUTPUT_INTDIR ${PROJECT_BINARY_DIR}/lib)
set(MLIR_BINARY_DIR ${PROJECT_BINARY_DIR})
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
find_program(LLVM_EXTERNAL_LIT NAMES lit PATHS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH REQUIRED)
set(LLVM_LIT_ARGS "-sv" CACHE STRING "Default options for lit")

separate_arguments(LLVM_DEFINITIONS_LIST NATIVE_COMMAND ${LLVM_DEFINITIONS})
add_definitions(${LLVM_DEFINITIONS_LIST})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include(HandleLLVMOptions)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS} ${LLD_INCLUDE_DIRS})

# Needed when our code has assertions and libMLIR has none (see the header).
set(BRAID_STATISTIC_LAYOUT "")
if(NOT LLVM_ENABLE_ASSERTIONS)
  set(BRAID_STATISTIC_LAYOUT $<$<CONFIG:Debug>:--include=${PROJECT_SOURCE_DIR}/cmake/StatisticLayout.h>)
endif()

# braid_add_mlir_pch(<name> options...): the common MLIR headers, for targets that are compiled with the same options.
function(braid_add_mlir_pch name)
  file(WRITE ${PROJECT_BINARY_DIR}/${name}.cpp "int anchorOf${name};\n")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/${name}.cpp)
  llvm_update_compile_flags(${name})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC -Xclang -fno-pch-timestamp ${BRAID_STATISTIC_LAYOUT} ${ARGN})
  target_precompile_headers(${name} PRIVATE
    <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/OpImplementation.h>
    <mlir/IR/PatternMatch.h> <mlir/IR/SymbolTable.h> <mlir/Dialect/Func/IR/FuncOps.h>
    <mlir/Interfaces/SideEffectInterfaces.h> <mlir/Bytecode/BytecodeOpInterface.h>
    <mlir/Pass/Pass.h> <llvm/ADT/TypeSwitch.h>)
endfunction()
if(BRAID_ENABLE_PCH)
  braid_add_mlir_pch(BraidPCH)
  if(BRAID_BUILD_TESTS)
    braid_add_mlir_pch(BraidUnoptimizedPCH -O0)
  endif()
endif()

# braid_compile_settings(<target> [PCH]): how our code over MLIR is compiled, with BraidPCH or another one.
function(braid_compile_settings target)
  set(pch BraidPCH)
  if(ARGC GREATER 1)
    set(pch ${ARGV1})
  endif()
  target_link_libraries(${target} PRIVATE braid_warnings)
  # Executables share the libraries' precompiled header, so they must agree on -fPIC (CMake would say -fPIE).
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC ${BRAID_STATISTIC_LAYOUT})
  if(BRAID_ENABLE_PCH)
    # ccache needs a precompiled header that does not change from build to build, so it has no time stamp.
    target_compile_options(${target} PRIVATE -Xclang -fno-pch-timestamp)
    target_precompile_headers(${target} REUSE_FROM ${pch})
  endif()
endfunction()

# braid_add_library(<name> sources... [DEPENDS gen-targets...] [LINK_LIBS PUBLIC libs...])
function(braid_add_library name)
  add_mlir_library(${name} ${ARGN} DISABLE_INSTALL PARTIAL_SOURCES_INTENDED)
  target_link_libraries(${name} PUBLIC MLIR)
  if(TARGET obj.${name})
    braid_compile_settings(obj.${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY BRAID_COMPILER_LIBRARIES ${name})
endfunction()

# braid_add_tool(<name> sources... LINK_LIBS libs...): links static libraries that only tests use.
function(braid_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_llvm_executable(${name} PARTIAL_SOURCES_INTENDED ${ARG_UNPARSED_ARGUMENTS})
  llvm_update_compile_flags(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} MLIR)
  braid_compile_settings(${name})
endfunction()

# braid_add_product_tool(<name> sources...): a tool that is installed. It links the shared libraries, so that it shares one
# copy of everything with plugins.
function(braid_add_product_tool name)
  braid_add_tool(${name} ${ARGN} LINK_LIBS BraidCompilerShared)
  braid_install_tool(${name})
endfunction()

add_custom_target(docs)
# braid_add_page(<name> <file.td> mlir-tblgen's options...): docs/<name>.md in the build folder, made by the target `docs`.
function(braid_add_page name source)
  set(page ${PROJECT_BINARY_DIR}/docs/${name}.md)
  set(includes -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include)
  foreach(directory ${MLIR_INCLUDE_DIRS})
    list(APPEND includes -I${directory})
  endforeach()
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/docs
    COMMAND ${MLIR_TABLEGEN_EXE} ${ARGN} ${includes} ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${page} -d ${page}.d
    DEPENDS ${source} DEPFILE ${page}.d COMMENT "Writing docs/${name}.md" VERBATIM)
  add_custom_target(docs-${name} DEPENDS ${page})
  add_dependencies(docs docs-${name})
endfunction()

# braid_add_unittest(<name> sources... LINK_LIBS libs...): a GoogleTest binary over MLIR code.
function(braid_add_unittest name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  llvm_update_compile_flags(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} MLIR GTest::gtest GTest::gtest_main)
  braid_compile_settings(${name} BraidUnoptimizedPCH)
  target_compile_options(${name} PRIVATE -O0)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60)
endfunction()
