//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Mixtures of experts in plain loops, like Kernels.h.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_CORE_EXPERTS_H
#define BRAID_INTERPRETER_CORE_EXPERTS_H

#include "braid/Interpreter/Core/Tensor.h"

namespace braid::interp {

/// For logits [groups, tokens, experts]: the `top` experts of each token with their softmax weights
/// [groups, tokens, top], the slot that each got among `capacity` (-1: none), and the number of
/// used slots of each expert [groups, experts].
struct Routing {
  Tensor weights, experts, slots, counts;
};
Result<Routing> router(const Tensor &logits, int64_t top, int64_t capacity, bool normalized);

/// Rows of an input [groups, tokens, hidden] added up at (expert, slot) of blocks [groups,
/// numExperts, capacity, hidden].
Result<Tensor> dispatch(const Tensor &input, const Tensor &experts, const Tensor &slots,
                        int64_t numExperts, int64_t capacity);

/// For each token the sum of the rows at its (expert, slot), times its weights.
Result<Tensor> combineExperts(const Tensor &blocks, const Tensor &weights, const Tensor &experts,
                              const Tensor &slots);

} // namespace braid::interp
#endif // BRAID_INTERPRETER_CORE_EXPERTS_H
