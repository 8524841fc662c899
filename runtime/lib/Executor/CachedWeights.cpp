//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CachedWeights.h"

#include "runtime/lib/Kernels/Tensor.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

void CachedWeights::noteUse(const std::byte *begin, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  ranges.emplace_back(first, first + bytes);
}

void CachedWeights::noteUse(const LibraryArguments &call, Queue queue, size_t command,
                            bool readsWeights) {
  const bool usesRows = cost::usesRows(call);
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (const std::optional<OperandType> &type = call.operands[i];
        type && (!usesRows || i == call.kernel->firstOutput())) {
      const Tensor tensor{nullptr, type->dtype, type->shape, type->strides};
      noteUse(call.data[i], static_cast<size_t>(tensor.spanBytes()));
    }
  if (std::strcmp(call.kernel->name, "matmul") == 0)
    products.push_back({queue, command, call, readsWeights});
}

size_t CachedWeights::usedBytes() const {
  std::vector<std::pair<uintptr_t, uintptr_t>> sorted = ranges;
  std::sort(sorted.begin(), sorted.end());
  size_t sum = 0;
  uintptr_t end = 0;
  for (const auto &[first, last] : sorted) {
    sum += std::max(end, last) - std::max(end, first);
    end = std::max(end, last);
  }
  return sum;
}

void CachedWeights::shorten(std::vector<std::vector<RankProgram::Estimate>> &estimates,
                            const CommandTimes &times) const {
  const auto ofRun = static_cast<double>(usedBytes());
  for (const Product &product : products)
    estimates[product.queue][product.command].seconds -=
        times.savedByCaches(product.call, product.readsWeights ? ofRun : 0);
}

} // namespace braid::runtime
