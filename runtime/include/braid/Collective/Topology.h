//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where the ranks of a process group are: on which host, and on which NUMA node of it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_TOPOLOGY_H
#define BRAID_COLLECTIVE_TOPOLOGY_H

#include <cstdint>
#include <vector>

namespace braid::runtime {

/// The place of a rank. The numbers need not begin at 0; a NUMA node is numbered within its host.
struct RankPlace {
  int64_t host = 0, numaNode = 0;
  bool operator==(const RankPlace &o) const { return host == o.host && numaNode == o.numaNode; }
};

struct Topology {
  std::vector<RankPlace> places; ///< by position in the group; empty: one NUMA node of one host
  bool operator==(const Topology &o) const { return places == o.places; }

  RankPlace placeOf(int64_t position) const {
    return places.empty() ? RankPlace() : places[static_cast<size_t>(position)];
  }
  bool sameHost(int64_t a, int64_t b) const { return placeOf(a).host == placeOf(b).host; }
  bool sameNumaNode(int64_t a, int64_t b) const { return placeOf(a) == placeOf(b); }
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_TOPOLOGY_H
