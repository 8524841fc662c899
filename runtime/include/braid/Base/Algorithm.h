//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chooses the algorithm of a collective and counts the bytes that it sends, for the compiler and
// the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_ALGORITHM_H
#define BRAID_BASE_ALGORITHM_H

#include "braid/Base/CollectiveKind.h"
#include "braid/Base/Status.h"

#include <cstdint>
#include <string>

namespace braid::runtime {

/// direct: every rank reads its peers' memory in place. An all_reduce takes two steps: each rank
/// reduces 1/n of the elements, then reads the other shares. Every other collective takes one. A
/// send leaves a copy for its receive. Sums are in rank order, so every rank gets the same bits on
/// every run. nccl: NCCL chooses the algorithm.
enum class Algorithm : int8_t { direct = 0, nccl };

const char *name(Algorithm algorithm);

/// Chooses by name, or freely for "" and "auto". `bytes` is the size of the input on one rank.
/// Errors: the name is unknown, or the transport cannot run the algorithm.
Result<Algorithm> chooseAlgorithm(CollectiveKind kind, int64_t bytes, int64_t ranks,
                                  const std::string &transport, const std::string &asked = "auto");

/// The bytes that one rank sends in a collective over `ranks` ranks with an input of `bytes`. NCCL
/// may send more. For an all_to_all_v, all counts are taken as full. If `ranks` does not divide the
/// input, the result is the mean over the ranks, rounded down; it saturates. In a reduce,
/// broadcast, permute or send only some ranks send: `isSource` tells whether this one does.
int64_t bytesSent(Algorithm algorithm, CollectiveKind kind, int64_t bytes, int64_t ranks,
                  bool isSource = true);

} // namespace braid::runtime
#endif // BRAID_BASE_ALGORITHM_H
