//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/CollectiveKind.h"

namespace braid::runtime {

const char *name(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::allReduce:
    return "all_reduce";
  case CollectiveKind::reduceScatter:
    return "reduce_scatter";
  case CollectiveKind::allGather:
    return "all_gather";
  case CollectiveKind::allToAll:
    return "all_to_all";
  case CollectiveKind::reduce:
    return "reduce";
  case CollectiveKind::broadcast:
    return "broadcast";
  case CollectiveKind::permute:
    return "permute";
  case CollectiveKind::allToAllV:
    return "all_to_all_v";
  case CollectiveKind::send:
    return "send";
  case CollectiveKind::recv:
    return "recv";
  }
  return "unknown";
}

bool isPointToPoint(CollectiveKind kind) {
  return kind == CollectiveKind::send || kind == CollectiveKind::recv;
}

bool hasReduction(CollectiveKind kind) {
  return kind == CollectiveKind::allReduce || kind == CollectiveKind::reduceScatter ||
         kind == CollectiveKind::reduce;
}

const char *name(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::sum:
    return "sum";
  case ReduceKind::max:
    return "max";
  case ReduceKind::min:
    return "min";
  }
  return "unknown";
}

} // namespace braid::runtime
