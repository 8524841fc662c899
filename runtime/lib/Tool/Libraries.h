//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Finds optional shared libraries and their versions.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOL_LIBRARIES_H
#define BRAID_TOOL_LIBRARIES_H

#include "braid/Runtime/Doctor.h"

namespace braid::runtime {

/// One finding for each library that some targets or transports use.
std::vector<Finding> findLibraries(const DoctorOptions &options);

} // namespace braid::runtime
#endif // BRAID_TOOL_LIBRARIES_H
