//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where files of the source tree and of the build are. Only Paths.cpp, which CMake writes, depends
// on that, so that ccache finds in one checkout whatever else another has compiled.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_PATHS_H
#define BRAID_TEST_UNIT_RUNTIME_PATHS_H

namespace braid::runtime::testing {

extern const char *const kNullDevicePath, *const kNullKernelsPath; ///< libraries
/// Kernel libraries as in bundles, with the same symbol.
extern const char *const kAddingKernelsPath, *const kSubtractingKernelsPath;
extern const char *const kFakeLibrariesFolder;
extern const char *const kOtherWeightsPath; ///< a safetensors file

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_PATHS_H
