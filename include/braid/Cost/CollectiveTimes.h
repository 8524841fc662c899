//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The time of a collective of a module on a machine, as it is and encoded.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_COLLECTIVETIMES_H
#define BRAID_COST_COLLECTIVETIMES_H

#include "braid/Cost/EncodedTime.h"
#include "dialects/Comm/IR/Comm.h"

#include "llvm/ADT/DenseMap.h"

#include <map>

namespace braid {

/// The machine that a program will run on, and where its ranks are.
struct RunPlace {
  std::shared_ptr<const cost::Machine> machine;
  std::string transport; ///< "threads", "shm" or "ucx"; empty: ucx over several hosts, else shm
  std::vector<int64_t> ranksOfHosts; ///< of each host, in the order of ranks; empty: one host
  int64_t threads = 1;               ///< of a rank
};

/// A collective of a module, without it: that of each of its groups that differ in their topology.
struct PlacedCollective {
  std::vector<cost::EncodableCollective> groups;
  int64_t ranksOfHost = 1;

  bool operator==(const PlacedCollective &other) const {
    return groups == other.groups && ranksOfHost == other.ranksOfHost;
  }
};

/// Times of collectives by themselves, not beside computation: of the group that takes longest.
/// Groups that are over several hosts share the links of these.
class CollectiveTimes {
public:
  explicit CollectiveTimes(RunPlace place) : place(std::move(place)) {}

  /// An error if the hosts have other ranks than the mesh.
  cost::Result<PlacedCollective> locate(comm::CollectiveOpInterface op);
  /// As it is, whatever encoding it has. Errors name the figure that the machine file lacks.
  cost::Result<double> plain(const PlacedCollective &collective);
  /// What braid-expand-encoded makes of it.
  cost::Result<cost::EncodedTime> encoded(const PlacedCollective &collective,
                                          const runtime::EncodingPair &encodings);

private:
  /// How the ranks of groups are spread over hosts.
  struct Spread {
    std::vector<runtime::Topology> topologies; ///< that differ
    int64_t groupsOfHost = 1, ranksOfHost = 1;
  };
  cost::Result<const Spread *> spreadOf(comm::CollectiveOpInterface op);
  static cost::EncodableCollective describe(comm::CollectiveOpInterface op);
  const cost::EncodedTimes &timesFor(int64_t ranksOfHost);

  const RunPlace place;
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::Attribute>, Spread> spreads; ///< by mesh, group
  std::map<int64_t, cost::EncodedTimes> times; ///< by the ranks of a host
};

/// "0.12 ms"
std::string timeText(double seconds);

} // namespace braid
#endif // BRAID_COST_COLLECTIVETIMES_H
