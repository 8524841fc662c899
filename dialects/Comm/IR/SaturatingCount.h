//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Counts of bytes and operations that 64 bits may not hold. Without MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_COMM_SATURATINGCOUNT_H
#define BRAID_DIALECTS_COMM_SATURATINGCOUNT_H

#include "llvm/Support/InstructionCost.h"

namespace braid {

/// LLVM's saturating integer, for products of element counts, which are bounded themselves
/// (Bounds.h).
using SaturatingCount = llvm::InstructionCost;

} // namespace braid
#endif // BRAID_DIALECTS_COMM_SATURATINGCOUNT_H
