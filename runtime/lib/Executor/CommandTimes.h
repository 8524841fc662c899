//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Estimates the commands of a rank on a machine, and from them the course of a run.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXECUTOR_COMMANDTIMES_H
#define BRAID_EXECUTOR_COMMANDTIMES_H

#include "Commands.h"
#include "braid/Base/PerRank.h"
#include "braid/Cost/LinkBurst.h"
#include "braid/Cost/OperationTime.h"
#include "braid/Cost/ScheduleTime.h"

#include <map>
#include <utility>
#include <vector>

namespace braid::runtime {

/// The time of each command on its own.
class CommandTimes {
public:
  /// For the ranks of this process, and for so many ranks of its host with so many threads each.
  CommandTimes(const cost::Machine &machine, const std::string &transport, RankRange local,
               int64_t ranksOfHost, int64_t threads);

  /// That a launch reads and writes.
  static double bytesOf(const program::LaunchT &launch);
  Result<double> ofKernel(const program::KernelT &kernel, const program::LaunchT &launch,
                          const Mesh &mesh) const;
  /// Of a product whose right side comes from memory.
  Result<double> ofLibrary(const LibraryCall &call) const { return operations.ofLibrary(call); }
  /// How much less a product takes whose right side its rank last used so many bytes ago.
  double savedByCaches(const LibraryCall &product, double usedBytes) const {
    return operations.savedByCaches(product, usedBytes);
  }
  Result<double> ofCopy(const Tensor &source) const;
  /// From the arrival of the last rank to the end on this one.
  Result<double> ofCollective(const Collective &collective) const;
  /// How much longer it takes a rank that has used so many bytes since it last used the output.
  double coldSeconds(const Collective &collective, double usedBytes) const;
  /// What a collective sends from the host of its rank to others, over a link that passes some of
  /// it at once if it has been idle.
  struct LinkUse {
    const cost::Link *link = nullptr; ///< null: none leaves the host
    double bytes = 0;
  };
  LinkUse linkUse(const Collective &collective) const;
  /// How many times as long a rank computes while it communicates, and the other way around.
  struct Slowdown {
    double compute = 1, communication = 1;
  };
  /// Of a command on the compute queue and a collective.
  Slowdown slowdown(const Command &command, const Collective &collective) const;
  /// How many ranks of a group this process has.
  size_t localRanks(const ProcessGroup &group) const;

private:
  const cost::Machine &machine;
  const std::string transport; ///< within a host
  const RankRange local;
  const cost::OperationTimes operations;
  Slowdown ofMatmul, ofMemory;
  /// With the schedule that the transport has chosen.
  static ScheduleRequest plannedRequest(const Collective &collective);
  Result<const cost::Network *> networkFor(const Collective &collective) const;
  Result<const cost::CollectiveTime *> timeOf(const Collective &collective) const;
  mutable std::vector<std::pair<ScheduleRequest, cost::CollectiveTime>> known;
  mutable std::map<std::vector<int64_t>, cost::Network> networks; ///< by the ranks' hosts
};

/// When a rank's queue is at a command.
struct CommandSpan {
  const NamedCommand *command;
  int64_t index; ///< of a collective in RankProgram::collectives; else -1
  double begin = 0, end = 0;
};

/// The course of a run on paper: each queue does its commands in order, an event is there when it
/// is recorded, and a collective begins when its last rank of this process arrives: those of others
/// are taken to come when its own do. Where links pass bytes at once after they were idle, they
/// have those that they have when such runs follow each other. Spans by rank and queue, in order.
/// The programs, of all ranks of the process, have estimates of all commands.
Result<std::vector<std::vector<std::vector<CommandSpan>>>>
simulate(const std::vector<const RankProgram *> &programs, const CommandTimes &times);

} // namespace braid::runtime
#endif // BRAID_EXECUTOR_COMMANDTIMES_H
