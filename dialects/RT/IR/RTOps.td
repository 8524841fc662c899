//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_RT_RTOPS_TD
#define BRAID_DIALECTS_RT_RTOPS_TD

include "dialects/RT/IR/RTKernelOps.td"
include "dialects/RT/IR/RTProcedureOps.td"
include "dialects/RT/IR/RTCommandOps.td"

#endif
