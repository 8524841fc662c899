//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The cost by which passes choose between ways to exchange values. Without MLIR.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_COMMUNICATIONCOST_H
#define BRAID_COST_COMMUNICATIONCOST_H

#include "braid/Base/CollectiveKind.h"
#include "dialects/Comm/IR/SaturatingCount.h"

#include <tuple>

namespace braid {

/// The cost of a sequence of collectives and local slices, compared field by field.
struct CommunicationCost {
  SaturatingCount bytes = 0; ///< that a rank sends; where ranks differ, the rank that sends most
  int64_t collectives = 0, slices = 0;
  auto key() const { return std::tuple(bytes, collectives, slices); }
  bool operator<(const CommunicationCost &other) const { return key() < other.key(); }
  CommunicationCost operator+(const CommunicationCost &other) const {
    return {bytes + other.bytes, collectives + other.collectives, slices + other.slices};
  }
};

/// One collective over `ranks` ranks whose input is `bytes` long on each, with the direct algorithm
/// (braid/Base/Algorithm.h). One rank alone needs none.
CommunicationCost collectiveCost(runtime::CollectiveKind kind, SaturatingCount bytes,
                                 int64_t ranks);
/// A local slice; nothing is sent.
inline CommunicationCost sliceCost() { return {0, 0, 1}; }

} // namespace braid
#endif // BRAID_COST_COMMUNICATIONCOST_H
