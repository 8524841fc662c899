//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Cost/CollectiveTimes.h"

#include "braid/Base/StatusMacros.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <numeric>
#include <set>

using namespace mlir;
using namespace braid::comm;

namespace braid {

using cost::EncodableCollective;
using cost::EncodedTime;
using cost::Result;
using cost::Status;

cost::EncodableCollective CollectiveTimes::describe(CollectiveOpInterface op) {
  EncodableCollective c;
  c.kind = op.getCollectiveKind();
  c.ranks = groupSize(op, op.getGroup());
  auto pairs = [&](ArrayRef<int64_t> list) {
    for (size_t i = 0; i + 1 < list.size(); i += 2)
      c.pairs.emplace_back(list[i], list[i + 1]);
  };
  TypeRange types = op.getInputs().getTypes();
  llvm::TypeSwitch<Operation *>(op)
      .Case<ReduceScatterOp, AllGatherOp>(
          [&](auto one) { c.dim = static_cast<int64_t>(one.getDim()); })
      .Case<AllToAllOp>([&](AllToAllOp one) {
        c.dim = static_cast<int64_t>(one.getSplitDim());
        c.concatDim = static_cast<int64_t>(one.getConcatDim());
      })
      .Case<AllToAllVOp>([&](AllToAllVOp one) { types = one.getValues().getTypes(); })
      .Case<ReduceOp, BroadcastOp>([&](auto one) { c.root = static_cast<int64_t>(one.getRoot()); })
      .Case<PermuteOp, SendOp, RecvOp>([&](auto one) {
        // A send and its recv are the sides of a permute, and take as long.
        c.kind = runtime::CollectiveKind::permute;
        pairs(one.getPairs());
      });
  if (isa<RecvOp>(op))
    types = op.getOutputs().getTypes();
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    c.values.push_back({*toRuntime(tensor.getElementType()),
                        {tensor.getShape().begin(), tensor.getShape().end()}});
  }
  return c;
}

Result<const CollectiveTimes::Spread *> CollectiveTimes::spreadOf(CollectiveOpInterface op) {
  MeshOp mesh = lookupMesh(op, op.getGroup().getMesh());
  auto [found, isNew] = spreads.try_emplace({mesh, op.getGroup()});
  Spread &spread = found->second;
  if (!isNew)
    return &spread;
  const runtime::Mesh grid = toRuntime(mesh);
  const int64_t ranks = grid.numRanks();
  std::vector<int64_t> ofHosts = place.ranksOfHosts;
  if (ofHosts.empty())
    ofHosts = {ranks};
  if (const int64_t all = std::accumulate(ofHosts.begin(), ofHosts.end(), int64_t(0)); all != ranks)
    return Status::error("expects hosts of ", ranks, ranks == 1 ? " rank" : " ranks",
                         " in all, which the mesh has, got ", all);
  spread.ranksOfHost = *llvm::max_element(ofHosts);
  std::vector<int64_t> hostOf;
  for (auto [host, count] : llvm::enumerate(ofHosts))
    hostOf.insert(hostOf.end(), static_cast<size_t>(count), static_cast<int64_t>(host));
  std::vector<int64_t> groupsOf(ofHosts.size()); // that leave the host
  std::set<int64_t> seen;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (seen.count(rank) > 0)
      continue;
    ASSIGN_OR_RETURN(const std::vector<int64_t> group, grid.group(rank, toRuntime(op.getGroup())));
    seen.insert(group.begin(), group.end());
    // Hosts are numbered as the group comes to them, so that groups that look alike are.
    std::vector<int64_t> hosts;
    runtime::Topology topology;
    for (int64_t member : group) {
      const int64_t host = hostOf[static_cast<size_t>(member)];
      if (!llvm::is_contained(hosts, host))
        hosts.push_back(host);
      topology.places.push_back({llvm::find(hosts, host) - hosts.begin(), 0});
    }
    if (hosts.size() > 1)
      for (int64_t host : hosts)
        ++groupsOf[static_cast<size_t>(host)];
    if (!llvm::is_contained(spread.topologies, topology))
      spread.topologies.push_back(std::move(topology));
  }
  spread.groupsOfHost = std::max<int64_t>(1, *llvm::max_element(groupsOf));
  return &spread;
}

const cost::EncodedTimes &CollectiveTimes::timesFor(int64_t ranksOfHost) {
  auto found = times.find(ranksOfHost);
  if (found != times.end())
    return found->second;
  const bool isOver = place.ranksOfHosts.size() > 1;
  const std::string transport = !place.transport.empty() ? place.transport : isOver ? "ucx" : "shm";
  return times.try_emplace(ranksOfHost, place.machine, transport, ranksOfHost, place.threads)
      .first->second;
}

Result<PlacedCollective> CollectiveTimes::locate(CollectiveOpInterface op) {
  ASSIGN_OR_RETURN(const Spread *spread, spreadOf(op));
  EncodableCollective c = describe(op);
  c.groupsOfHost = spread->groupsOfHost;
  PlacedCollective placed;
  placed.ranksOfHost = spread->ranksOfHost;
  for (const runtime::Topology &topology : spread->topologies) {
    c.topology = topology;
    placed.groups.push_back(c);
  }
  return placed;
}

Result<double> CollectiveTimes::plain(const PlacedCollective &collective) {
  double longest = 0;
  for (const EncodableCollective &group : collective.groups) {
    ASSIGN_OR_RETURN(const double seconds, timesFor(collective.ranksOfHost).plain(group));
    longest = std::max(longest, seconds);
  }
  return longest;
}

Result<EncodedTime> CollectiveTimes::encoded(const PlacedCollective &collective,
                                             const runtime::EncodingPair &encodings) {
  EncodedTime longest;
  for (const EncodableCollective &group : collective.groups) {
    ASSIGN_OR_RETURN(const EncodedTime time,
                     timesFor(collective.ranksOfHost).encoded(group, encodings));
    if (time.seconds > longest.seconds)
      longest = time;
  }
  return longest;
}

std::string timeText(double seconds) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (seconds < 1e-4)
    os << llvm::format("%.3g us", seconds * 1e6);
  else
    os << llvm::format("%.3g ms", seconds * 1e3);
  return text;
}

} // namespace braid
