//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/CollectiveKind.h"

#include <cstddef>
#include <iterator>

namespace braid::runtime {

const char *name(CollectiveKind kind) {
  constexpr const char *kNames[] = {
      "all_reduce", "reduce_scatter", "all_gather",   "all_to_all", "reduce",
      "broadcast",  "permute",        "all_to_all_v", "send",       "recv"};
  static_assert(std::size(kNames) == static_cast<size_t>(CollectiveKind::recv) + 1);
  return kNames[static_cast<size_t>(kind)];
}

bool isPointToPoint(CollectiveKind kind) {
  return kind == CollectiveKind::send || kind == CollectiveKind::recv;
}

bool hasReduction(CollectiveKind kind) {
  return kind == CollectiveKind::allReduce || kind == CollectiveKind::reduceScatter ||
         kind == CollectiveKind::reduce;
}

const char *name(ReduceKind kind) {
  constexpr const char *kNames[] = {"sum", "max", "min"};
  static_assert(std::size(kNames) == static_cast<size_t>(ReduceKind::min) + 1);
  return kNames[static_cast<size_t>(kind)];
}

} // namespace braid::runtime
