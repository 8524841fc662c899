//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_NN_COST_H
#define BRAID_DIALECTS_NN_COST_H

#include <cstdint>

namespace braid::nn {

/// The cost of one execution of an operation on its own shapes (per-rank after partitioning).
/// Follows the counting of the 4D performance model: a matmul of (m, k) by (k, n) is (2k - 1)mn
/// FLOPs; an operation that needs an intermediate only inside counts its inputs and outputs.
struct OpCost {
  int64_t matrixFlops = 0;  ///< executed by matrix units
  int64_t vectorFlops = 0;  ///< everything else
  int64_t bytesRead = 0;    ///< operands
  int64_t bytesWritten = 0; ///< results
  int64_t bytesSaved = 0;   ///< kept for the backward pass
};

} // namespace braid::nn
#endif // BRAID_DIALECTS_NN_COST_H
