//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/Algorithm.h"

#include "braid/Base/Support.h"

#include <limits>

namespace braid::runtime {

const char *name(Algorithm algorithm) { return algorithm == Algorithm::direct ? "direct" : "nccl"; }

Result<Algorithm> chooseAlgorithm(CollectiveKind kind, int64_t bytes, int64_t ranks,
                                  const std::string &transport, const std::string &asked) {
  const bool nccl = transport == "nccl";
  const std::string only = name(nccl ? Algorithm::nccl : Algorithm::direct);
  if (!asked.empty() && asked != "auto" && asked != only)
    return Status::error(name(kind), " expects algorithm 'auto' or '", only, "', got '", asked,
                         "'");
  if (nccl)
    return Algorithm::nccl;
  if (transport != "threads" && transport != "shm" && transport != "ucx")
    return Status::error("no algorithm for ", name(kind), " on transport '", transport, "'");
  return Algorithm::direct;
}

/// bytes * times / parts.
static int64_t scaled(int64_t bytes, int64_t times, int64_t parts) {
  std::optional<int64_t> total = checkedMul(bytes / parts, times);
  if (total)
    total = checkedAdd(*total, bytes % parts * times / parts);
  return total.value_or(std::numeric_limits<int64_t>::max());
}

int64_t bytesSent(Algorithm algorithm, CollectiveKind kind, int64_t bytes, int64_t ranks,
                  bool isSource) {
  if (ranks < 2)
    return 0;
  switch (kind) {
  case CollectiveKind::allReduce: // a reduce_scatter, then an all_gather
    return scaled(bytes, 2 * (ranks - 1), ranks);
  case CollectiveKind::reduceScatter:
  case CollectiveKind::allToAll:
  case CollectiveKind::allToAllV:
    return scaled(bytes, ranks - 1, ranks);
  case CollectiveKind::allGather:
    return scaled(bytes, ranks - 1, 1);
  case CollectiveKind::broadcast:
    return !isSource ? 0 : scaled(bytes, algorithm == Algorithm::nccl ? 1 : ranks - 1, 1);
  case CollectiveKind::reduce:
  case CollectiveKind::permute:
  case CollectiveKind::send:
    return isSource ? bytes : 0;
  case CollectiveKind::recv:
    return 0;
  }
  return 0;
}

} // namespace braid::runtime
