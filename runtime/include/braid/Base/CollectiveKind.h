//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The collectives that there are.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_COLLECTIVEKIND_H
#define BRAID_BASE_COLLECTIVEKIND_H

#include <cstdint>

namespace braid::runtime {

/// Values equal program.fbs.
enum class CollectiveKind : int8_t {
  allReduce = 0,
  reduceScatter,
  allGather,
  allToAll,
  reduce,
  broadcast,
  permute,
  allToAllV,
  send,
  recv
};
enum class ReduceKind : int8_t { sum = 0, max, min };

const char *name(CollectiveKind kind); // "all_reduce", ...
const char *name(ReduceKind kind);     // "sum", ...
/// Of two ranks, not of a group.
bool isPointToPoint(CollectiveKind kind);
/// Combines values, so that a ReduceKind belongs to it.
bool hasReduction(CollectiveKind kind);

} // namespace braid::runtime
#endif // BRAID_BASE_COLLECTIVEKIND_H
