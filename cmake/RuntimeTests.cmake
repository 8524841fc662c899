# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Functions for the tests of the runtime and of the interpreter's core.
find_package(GTest REQUIRED)
include(GoogleTest)
add_custom_target(unittests)

# braid_add_runtime_tests(<name> [ALONE] sources... LINK_LIBS libs...): a GoogleTest binary without LLVM. Each test runs in a
# process of its own. Under sanitizers, where starting a process is slow, only binaries marked ALONE do so (tests that fork).
function(braid_add_runtime_tests name)
  cmake_parse_arguments(ARG "ALONE" "" "LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} braid_warnings GTest::gmock GTest::gtest_main)
  add_dependencies(unittests ${name})
  # Tests consist mostly of GoogleTest's code, which takes four times as long to optimize as to compile.
  if(BRAID_SANITIZER)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  if(ARG_ALONE)
    return()
  elseif(NOT BRAID_SANITIZER)
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60)
    return()
  endif()
  foreach(shard 0 1)
    add_test(NAME ${name}.${shard} COMMAND ${name})
    set_tests_properties(${name}.${shard} PROPERTIES ENVIRONMENT "GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()
