//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The kinds of collectives and reductions.
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
/// send or recv.
bool isPointToPoint(CollectiveKind kind);
/// Whether it combines values by a ReduceKind.
bool hasReduction(CollectiveKind kind);

} // namespace braid::runtime
#endif // BRAID_BASE_COLLECTIVEKIND_H
