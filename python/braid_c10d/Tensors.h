//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a group does with tensors: which types it takes, their names, and memory that is packed.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_C10D_TENSORS_H
#define BRAID_C10D_TENSORS_H

#include "runtime/lib/Group/Group.h"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <functional>
#include <string>
#include <vector>

namespace braid::c10d_backend {

/// "f32", or PyTorch's name of a type that is only copied.
std::string nameOf(at::ScalarType type);
/// "8 f32, 3 i64"; of many tensors the first ones, and a hash of all.
std::string describe(const std::vector<at::Tensor> &tensors);

/// Refuses tensors that are not on the CPU or not dense.
void check(const char *operation, const at::Tensor &tensor);
void check(const char *operation, const std::vector<at::Tensor> &tensors);

/// How values are combined. The runtime's kernels know sums, maxima and minima; for the others all
/// values come to a rank, which combines them in the order of ranks.
struct Reduction {
  runtime::ReduceKind kind = runtime::ReduceKind::sum;
  bool isAverage = false;
  c10d::ReduceOp::RedOpType gathered = c10d::ReduceOp::UNUSED; ///< unless it is unused
  std::string name;                                            ///< "sum"
  bool isGathered() const { return gathered != c10d::ReduceOp::UNUSED; }
};
/// Refuses what the type has no such reduction of.
Reduction reductionOf(const char *operation, const c10d::ReduceOp &op, at::ScalarType type);

/// Packed memory that a reduction reads and writes in the place of tensors: their own where that
/// is possible.
class Operands {
public:
  Operands(const Reduction &reduction, int64_t ranks) : reduction(reduction), ranks(ranks) {}
  /// What is read, and what is written: the same memory for a packed tensor that is both.
  at::Tensor input(const at::Tensor &tensor);
  at::Tensor output(const at::Tensor &tensor);
  runtime::DType type(at::ScalarType type) const;
  /// Gives the outputs their values once the collective is done.
  void finish() const;

private:
  bool isBiased(at::ScalarType type) const;
  struct Output {
    at::Tensor tensor, memory;
    bool isOwn = false; ///< the memory is the tensor's
  };
  Reduction reduction;
  int64_t ranks;
  std::vector<Output> outputs;
};

/// Combines the values along the first dimension, which is of ranks.
void combine(const at::Tensor &values, c10d::ReduceOp::RedOpType op, const at::Tensor &result);

/// The tensor's memory where it is packed, or a copy.
at::Tensor packed(const at::Tensor &tensor);
/// Memory for a packed tensor: its own, or other memory that finish() copies.
class Targets {
public:
  at::Tensor add(const at::Tensor &tensor);
  void finish() const;

private:
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
};

} // namespace braid::c10d_backend
#endif // BRAID_C10D_TENSORS_H
