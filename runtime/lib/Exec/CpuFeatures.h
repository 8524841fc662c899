//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the processor we run on can do, under LLVM's feature names.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXEC_CPUFEATURES_H
#define BRAID_EXEC_CPUFEATURES_H

#include <string>

namespace braid::runtime {

/// Whether this host has the feature, the operating system's support for its registers included.
/// False for names that are not known here.
bool hostHasFeature(const std::string &feature);
/// "x86_64", "aarch64"
const char *hostArchitecture();
/// The processor's name for people, as /proc/cpuinfo has it.
std::string hostCpuModel();

} // namespace braid::runtime
#endif // BRAID_EXEC_CPUFEATURES_H
