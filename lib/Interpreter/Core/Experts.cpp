//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/Experts.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/Core/Kernels.h"

#include <functional>

namespace braid::interp {

namespace {
/// Calls visit(choice, token, row) for every choice that has a slot; `row` is the number of its row
/// in the blocks.
Status forEachSlot(const char *kernel, const Tensor &experts, const Tensor &slots,
                   int64_t numExperts, int64_t capacity,
                   const std::function<void(int64_t, int64_t, int64_t)> &visit) {
  if (experts.isFloat() || experts.rank() != 3)
    return expects(kernel, "integer experts of rank 3", experts);
  if (slots.isFloat() || slots.shape() != experts.shape())
    return expects(kernel, "integer slots of the shape of experts " + experts.typeString(), slots);
  int64_t tokens = experts.dim(1), choices = experts.dim(2);
  for (int64_t i = 0; i < experts.numElements(); ++i) {
    int64_t expert = experts.ints()[i], slot = slots.ints()[i];
    auto outside = [&](const char *what, int64_t low, int64_t end, int64_t got) {
      Shape at = unflatten(i, experts.shape());
      return Status::error(std::string(kernel) + " expects " + what + " from " +
                           std::to_string(low) + " to " + std::to_string(end - 1) + ", got " +
                           std::to_string(got) + " at position [" + std::to_string(at[0]) + ", " +
                           std::to_string(at[1]) + ", " + std::to_string(at[2]) + "]");
    };
    if (expert < 0 || expert >= numExperts)
      return outside("experts", 0, numExperts, expert);
    if (slot < -1 || slot >= capacity)
      return outside("slots", -1, capacity, slot);
    int64_t group = i / (tokens * choices);
    if (slot >= 0)
      visit(i, i / choices, (group * numExperts + expert) * capacity + slot);
  }
  return {};
}
} // namespace

Result<Routing> router(const Tensor &logits, int64_t top, int64_t capacity, bool normalized) {
  if (logits.rank() != 3 || !logits.isFloat())
    return expects("router", "floating-point logits of rank 3", logits);
  int64_t groups = logits.dim(0), tokens = logits.dim(1), count = logits.dim(2);
  if (top < 1 || top > count)
    return Status::error("router expects from 1 to " + std::to_string(count) + " choices, got " +
                         std::to_string(top));
  ASSIGN_OR_RETURN(Tensor probabilities, softmax(logits));
  auto choices = static_cast<size_t>(groups * tokens * top);
  std::vector<double> weights(choices);
  std::vector<int64_t> experts(choices), slots(choices, -1);
  for (int64_t row = 0; row < groups * tokens; ++row) {
    std::vector<char> taken(static_cast<size_t>(count));
    double total = 0;
    auto first = static_cast<size_t>(row * top);
    for (int64_t k = 0; k < top; ++k) {
      int64_t best = -1;
      for (int64_t e = 0; e < count; ++e)
        if (!taken[static_cast<size_t>(e)] &&
            (best < 0 || logits.floats()[row * count + e] > logits.floats()[row * count + best]))
          best = e;
      taken[static_cast<size_t>(best)] = 1;
      double weight = probabilities.floats()[row * count + best];
      experts[first + static_cast<size_t>(k)] = best;
      weights[first + static_cast<size_t>(k)] = weight;
      total += weight;
    }
    for (int64_t k = 0; normalized && k < top; ++k)
      weights[first + static_cast<size_t>(k)] /= total;
  }
  std::vector<int64_t> counts(static_cast<size_t>(groups * count));
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t k = 0; k < top; ++k)
      for (int64_t t = 0; t < tokens; ++t) {
        auto i = static_cast<size_t>((g * tokens + t) * top + k);
        int64_t &used = counts[static_cast<size_t>(g * count + experts[i])];
        if (used < capacity)
          slots[i] = used++;
      }
  Shape chosen{groups, tokens, top};
  return Routing{Tensor::ofFloats(logits.dtype(), chosen, std::move(weights)),
                 Tensor::ofInts(DType::i32, chosen, std::move(experts)),
                 Tensor::ofInts(DType::i32, chosen, std::move(slots)),
                 Tensor::ofInts(DType::i32, {groups, count}, std::move(counts))};
}

Result<Tensor> dispatch(const Tensor &input, const Tensor &experts, const Tensor &slots,
                        int64_t numExperts, int64_t capacity) {
  if (input.rank() != 3 || !input.isFloat())
    return expects("dispatch", "a floating-point input of rank 3", input);
  if (experts.rank() != 3 || experts.dim(0) != input.dim(0) || experts.dim(1) != input.dim(1))
    return expects("dispatch", "experts for the groups and tokens of " + input.typeString(),
                   experts);
  int64_t hidden = input.dim(2);
  Shape shape{input.dim(0), numExperts, capacity, hidden};
  std::vector<double> out(static_cast<size_t>(numElements(shape)));
  RETURN_IF_ERROR(forEachSlot(
      "dispatch", experts, slots, numExperts, capacity, [&](int64_t, int64_t token, int64_t row) {
        for (int64_t h = 0; h < hidden; ++h)
          out[static_cast<size_t>(row * hidden + h)] += input.floats()[token * hidden + h];
      }));
  return Tensor::ofFloats(input.dtype(), std::move(shape), std::move(out));
}

Result<Tensor> combineExperts(const Tensor &blocks, const Tensor &weights, const Tensor &experts,
                              const Tensor &slots) {
  if (blocks.rank() != 4 || !blocks.isFloat())
    return expects("combine", "floating-point blocks of rank 4", blocks);
  if (!weights.isFloat() || weights.rank() != 3 || weights.dim(0) != blocks.dim(0))
    return expects("combine",
                   "floating-point weights of rank 3 for the groups of " + blocks.typeString(),
                   weights);
  if (experts.shape() != weights.shape())
    return expects("combine", "experts of the shape of weights " + weights.typeString(), experts);
  int64_t hidden = blocks.dim(3);
  Shape shape{weights.dim(0), weights.dim(1), hidden};
  std::vector<double> out(static_cast<size_t>(numElements(shape)));
  RETURN_IF_ERROR(forEachSlot("combine", experts, slots, blocks.dim(1), blocks.dim(2),
                              [&](int64_t choice, int64_t token, int64_t row) {
                                double weight = weights.floats()[choice];
                                for (int64_t h = 0; h < hidden; ++h)
                                  out[static_cast<size_t>(token * hidden + h)] +=
                                      weight * blocks.floats()[row * hidden + h];
                              }));
  return Tensor::ofFloats(blocks.dtype(), std::move(shape), std::move(out));
}

} // namespace braid::interp
