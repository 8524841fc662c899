//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The library kernel `matmul`:
//
//   out[..., i, j] = sum over k of lhs[..., i, k] * rhs[..., k, j] (+ bias[..., j])
//
// accumulated in f32 or wider. The integer `transpose_lhs` says that lhs is stored as [..., k, i],
// `transpose_rhs` that rhs is stored as [..., j, k], and with `accumulate` the sum is added to out.
//
// - rhs of two dimensions is one matrix for all rows of lhs, which may have any number of leading
//   dimensions. Otherwise rhs has the leading dimensions of lhs, one matrix for each.
// - bias has the shape of rhs without k.
// - counts [groups] come with lhs [groups, capacity, k] and rhs [groups, k, n]: counts[g] rows of
//   group g are valid, and the others become zeros in out.
// - Operands of i8 come with lhs_scale, one factor for each row of out, and rhs_scale, one for each
//   column (the shape of bias): the sum of products, exact in i32, is multiplied by the first, then
//   by the second, in f32 or wider.
// - The rows of lhs and out have any stride, and so have the blocks of rows around them: leading
//   dimensions that more than two strides lead through are refused.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_MATMULFORM_H
#define BRAID_BASE_MATMULFORM_H

#include "braid/Base/LibraryKernels.h"

namespace braid::runtime {

/// A matmul as one batch of plain matrices.
struct MatmulForm {
  // Places in the descriptor.
  enum Operand : size_t {
    lhsOperand,
    rhsOperand,
    biasOperand,
    countsOperand,
    lhsScale,
    rhsScale,
    outOperand
  };
  enum Integer : size_t { transposeLhsFlag, transposeRhsFlag, accumulateFlag };

  /// A stored matrix. Strides are in elements; columns are contiguous on the targets.
  struct Matrix {
    int64_t rows, columns;
    int64_t stride; ///< between rows
    int64_t batch;  ///< between matrices; 0: one matrix for all
  };

  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transposeLhs = false, transposeRhs = false, accumulate = false;
  Matrix lhs{}, rhs{}, out{};
  int64_t biasBatch = 0; ///< between vectors

  /// Checks the shapes, strides and integers of a call. Messages begin with an operand's name.
  static Result<MatmulForm> of(const LibraryCall &call);
};

} // namespace braid::runtime
#endif // BRAID_BASE_MATMULFORM_H
