//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which algorithm a collective runs with, and the bytes that it sends: the one place that counts
// them, for the compiler and the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_ALGORITHM_H
#define BRAID_BASE_ALGORITHM_H

#include "braid/Base/CollectiveKind.h"
#include "braid/Base/Status.h"

#include <cstdint>
#include <string>

namespace braid::runtime {

/// direct: every rank reads its peers' memory in place. All take one step, but for all_reduce,
/// which takes two, each rank first reducing 1/n of the elements, then reading the other parts. A
/// send leaves a copy for its receive. Sums are in rank order, so every rank gets the same bits on
/// every run.
/// nccl: NCCL does it, by an algorithm of its own choice.
enum class Algorithm : int8_t { direct = 0, nccl };

const char *name(Algorithm algorithm);

/// Resolves what a collective asks for ("" or "auto": choose). `bytes` is the size of the input on
/// one rank. A name that is unknown, or that the transport cannot run, is an error.
Result<Algorithm> chooseAlgorithm(CollectiveKind kind, int64_t bytes, int64_t ranks,
                                  const std::string &transport, const std::string &asked = "auto");

/// Bytes that one rank sends in a collective over `ranks` ranks whose input is `bytes` long (with
/// NCCL at least, as it may send more where that is faster), of an all_to_all_v when all counts are
/// the capacity. Where `ranks` does not divide the input, the mean over the ranks, rounded down;
/// the largest number where there would be more. In a reduce, broadcast, permute or send not all
/// ranks send: `isSource` says whether this one gives its value to another. In the other
/// collectives every rank does.
int64_t bytesSent(Algorithm algorithm, CollectiveKind kind, int64_t bytes, int64_t ranks,
                  bool isSource = true);

} // namespace braid::runtime
#endif // BRAID_BASE_ALGORITHM_H
