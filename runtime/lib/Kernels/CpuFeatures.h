//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The features of the processor that runs this, by LLVM's names.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_CPUFEATURES_H
#define BRAID_KERNELS_CPUFEATURES_H

#include "braid/Base/Status.h"

#include <string>

namespace braid::runtime {

/// Whether the processor has the feature, the operating system saves the registers that it needs,
/// and BRAID_MAX_ISA in the environment allows them: `generic` allows the registers of every x86-64
/// processor, `avx2` those of 256 bits, `avx512` those of 512; unset, all. False for unknown names.
bool hostHasFeature(const std::string &feature);
/// An error if BRAID_MAX_ISA has another value; hostHasFeature then allows as `generic` does.
Status checkMaxISA();
/// "x86_64", "aarch64"
const char *hostArchitecture();
/// The processor's model name in /proc/cpuinfo.
std::string hostCpuModel();

} // namespace braid::runtime
#endif // BRAID_KERNELS_CPUFEATURES_H
