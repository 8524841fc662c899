# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Functions for the tests of the runtime and of the interpreter's core.
find_package(GTest REQUIRED)
include(GoogleTest)
add_custom_target(unittests)

# braid_test_settings(<target>): how sources of tests are compiled. They consist mostly of GoogleTest's code, which takes four
# times as long to optimize as to compile; and what fuzzers measure the coverage of is not the tests.
function(braid_test_settings target)
  target_compile_options(${target} PRIVATE -O0 $<$<BOOL:${BRAID_FUZZ}>:-fno-sanitize=fuzzer-no-link>)
endfunction()

# The headers that every test includes. Executables that share them must agree on -fPIC (CMake would say -fPIE).
if(BRAID_ENABLE_PCH)
  file(WRITE ${PROJECT_BINARY_DIR}/test-pch.cpp "int braidTestPchAnchor;\n")
  add_library(BraidTestPCH OBJECT ${PROJECT_BINARY_DIR}/test-pch.cpp)
  target_link_libraries(BraidTestPCH PRIVATE braid_warnings GTest::gmock)
  set_target_properties(BraidTestPCH PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(BraidTestPCH PRIVATE -fPIC -Xclang -fno-pch-timestamp)
  braid_test_settings(BraidTestPCH)
  target_precompile_headers(BraidTestPCH PRIVATE <gmock/gmock.h> <gtest/gtest.h>
    <chrono> <cstring> <filesystem> <fstream> <functional> <map> <memory> <string> <thread> <vector>)
endif()

# braid_add_runtime_tests(<name> [ALONE] [SERIAL] sources... LINK_LIBS libs...): a GoogleTest binary without LLVM. Each test runs
# in a process of its own. Under sanitizers, where starting a process is slow, only binaries marked ALONE do so (tests that fork).
# SERIAL: the tests have one thread, so that the thread sanitizer would find nothing in them.
function(braid_add_runtime_tests name)
  cmake_parse_arguments(ARG "ALONE;SERIAL" "" "LINK_LIBS" ${ARGN})
  if(ARG_SERIAL AND BRAID_SANITIZER STREQUAL "thread")
    return()
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} braid_warnings GTest::gmock GTest::gtest_main)
  add_dependencies(unittests ${name})
  braid_test_settings(${name})
  if(BRAID_ENABLE_PCH)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC -Xclang -fno-pch-timestamp)
    target_precompile_headers(${name} REUSE_FROM BraidTestPCH)
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
