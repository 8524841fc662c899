//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the processor we run on can do, under LLVM's feature names.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_CPUFEATURES_H
#define BRAID_KERNELS_CPUFEATURES_H

#include "braid/Base/Status.h"

#include <string>

namespace braid::runtime {

/// Whether this host has the feature, the operating system's support for its registers included,
/// and BRAID_MAX_ISA in the environment allows for these registers: `generic` none beyond those of
/// every x86-64 processor, `avx2` those of 256 bits, `avx512` those of 512; all when it is not set.
/// False for names that are not known here.
bool hostHasFeature(const std::string &feature);
/// An error where BRAID_MAX_ISA is something else; nothing is allowed for then.
Status checkMaxISA();
/// "x86_64", "aarch64"
const char *hostArchitecture();
/// The processor's name for people, as /proc/cpuinfo has it.
std::string hostCpuModel();

} // namespace braid::runtime
#endif // BRAID_KERNELS_CPUFEATURES_H
