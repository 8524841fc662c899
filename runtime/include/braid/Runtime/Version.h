//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_VERSION_H
#define BRAID_RUNTIME_VERSION_H
namespace braid::runtime {
const char *version(); ///< "major.minor.patch" of the runtime
} // namespace braid::runtime
#endif // BRAID_RUNTIME_VERSION_H
