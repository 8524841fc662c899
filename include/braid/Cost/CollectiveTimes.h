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

/// Times of collectives by themselves, not beside computation: of the group that takes longest.
/// Groups that are over several hosts share the links of these.
class CollectiveTimes {
public:
  explicit CollectiveTimes(RunPlace place) : place(std::move(place)) {}

  /// As it is, whatever encoding it has. Errors name the figure that the machine file lacks.
  cost::Result<double> plain(comm::CollectiveOpInterface op);
  /// What braid-expand-encoded makes of it.
  cost::Result<cost::EncodedTime> encoded(comm::CollectiveOpInterface op,
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

} // namespace braid
#endif // BRAID_COST_COLLECTIVETIMES_H
