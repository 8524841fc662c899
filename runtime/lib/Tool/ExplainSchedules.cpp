//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramOutline.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/ScheduleChoice.h"
#include "braid/Runtime/Explain.h"

#include <cstdio>
#include <set>

namespace braid::runtime {

namespace {

/// "rank 1", "ranks 1, 3"; the ranks at a position of their groups.
std::string ranksAt(size_t position, const OutlineGroup &group) {
  std::string ranks;
  for (const std::vector<int64_t> &members : group.groups)
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(members[position]);
  if (ranks.empty()) // too many groups to list
    return "position " + std::to_string(position);
  return (group.groups.size() > 1 ? "ranks " : "rank ") + ranks;
}

/// "@main, all_reduce 'sum'"
std::string titleOf(const std::string &procedure, const OutlineCommand &command) {
  return "@" + procedure + ", " + command.kind + " '" + command.name + "'";
}

std::string amongRanks(int64_t ranks) {
  return " among " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

/// The command's collective, its ranks placed on hosts.
ScheduleRequest requestOf(const OutlineCommand &command, const ScheduleOptions &options) {
  ScheduleRequest request = *command.collective;
  chooseSchedule(request, options.transport);
  if (options.ranksPerHost == 0 && options.ranksPerNode == 0)
    return request;
  const int64_t ranksPerHost = options.ranksPerHost > 0 ? options.ranksPerHost : request.ranks;
  const int64_t ranksPerNode = options.ranksPerNode > 0 ? options.ranksPerNode : ranksPerHost;
  for (int64_t position = 0; position < request.ranks; ++position)
    request.topology.places.push_back(
        {position / ranksPerHost, position % ranksPerHost / ranksPerNode});
  return request;
}

Result<std::string> timesText(const std::string &procedure, const OutlineCommand &command,
                              const ScheduleOptions &options,
                              const cost::ScheduleChooser &chooser) {
  const ScheduleRequest request = requestOf(command, options);
  Result<cost::ChosenSchedule> chosen = chooser.compare(request, options.anyOrder);
  if (!chosen.ok())
    return chosen.status().within(command.kind + " '" + command.name + "'");
  int64_t bytes = 0;
  for (const ScheduleValue &value : request.values)
    bytes += value.partBytes;
  std::string text = "\n" + titleOf(procedure, command) + amongRanks(request.ranks) +
                     ", parts of " + std::to_string(bytes) +
                     " bytes: " + name(chosen->considered.front().algorithm) + "\n";
  for (const cost::AlgorithmTime &one : chosen->considered) {
    char line[128];
    std::snprintf(line, sizeof line, "  %-18s %12.3f us, in chunks of %lld bytes\n",
                  name(one.algorithm), one.seconds * 1e6, static_cast<long long>(one.chunkBytes));
    text += line;
  }
  char rule[64];
  std::snprintf(rule, sizeof rule, "%.3f us", chosen->ruleSeconds * 1e6);
  const bool byRule =
      chosen->considered.front().seconds > (1 - cost::kWorthwhile) * chosen->ruleSeconds;
  return text + "  runs take " + name(chosen->algorithm) + " in chunks of " +
         std::to_string(chosen->chunkBytes) + " bytes, " +
         (byRule ? "by rule, " + std::string(rule) + ": no schedule takes 15 % less\n"
                 : "by time: the schedule of the rule takes " + std::string(rule) + "\n");
}

Result<std::string> schedulesText(const std::string &procedure, const OutlineCommand &command,
                                  const ScheduleOptions &options) {
  ScheduleRequest request = requestOf(command, options);
  if (options.algorithm) {
    ASSIGN_OR_RETURN(request.algorithm, scheduleAlgorithm(*options.algorithm));
  }
  if (options.chunkBytes)
    request.chunkBytes = *options.chunkBytes;
  const std::string what = command.kind + " '" + command.name + "'";
  std::string text = "\n" + titleOf(procedure, command) + " by " + name(request.algorithm) +
                     amongRanks(request.ranks) + ", in chunks of " +
                     std::to_string(request.chunkBytes) + " bytes\n";
  // Where there is one group, its ranks are named.
  const auto &groups = command.group->groups;
  const std::vector<int64_t> names = groups.size() == 1 ? groups[0] : std::vector<int64_t>();
  for (int64_t position = 0; position < request.ranks; ++position) {
    Result<Schedule> schedule = makeSchedule(request, position);
    if (!schedule.ok())
      return schedule.status().within(what);
    text += "  " + ranksAt(static_cast<size_t>(position), *command.group) +
            (groups.size() > 1 ? ", position " + std::to_string(position) : "") + ": sends " +
            std::to_string(schedule->bytesSent()) + " bytes, needs " +
            std::to_string(schedule->scratchBytes) + " of scratch memory\n" +
            scheduleText(*schedule, names);
  }
  return text;
}

} // namespace

Result<std::string> explainSchedules(const Bundle &bundle, const ExplainOptions &options,
                                     const ScheduleOptions &schedules) {
  for (auto [what, ranks] : {std::pair("a host", schedules.ranksPerHost),
                             std::pair("a NUMA node", schedules.ranksPerNode)})
    if (ranks < 0)
      return Status::error(what, " expects at least 1 rank, got ", ranks);
  if (schedules.ranksPerHost > 0 && schedules.ranksPerNode > schedules.ranksPerHost)
    return Status::error("a NUMA node expects at most the ", schedules.ranksPerHost,
                         schedules.ranksPerHost == 1 ? " rank" : " ranks", " of its host, got ",
                         schedules.ranksPerNode);
  ASSIGN_OR_RETURN(const ProgramOutline outline,
                   outlineProgram(bundle, options.rank, options.procedure));
  std::shared_ptr<const cost::Machine> machine;
  if (!schedules.machine.empty()) {
    ASSIGN_OR_RETURN(cost::Machine opened, cost::openMachine(schedules.machine));
    machine = std::make_shared<const cost::Machine>(std::move(opened));
  }
  const cost::ScheduleChooser chooser(schedules.transport, machine);
  std::string text;
  std::set<std::string> names;
  for (const OutlineProcedure &procedure : outline.procedures)
    for (const auto &commands : procedure.queues)
      for (const OutlineCommand &command : commands) {
        if (!command.collective)
          continue;
        names.insert(command.name);
        if (!schedules.collective.empty() && command.name != schedules.collective)
          continue;
        ASSIGN_OR_RETURN(const std::string one,
                         machine ? timesText(procedure.name, command, schedules, chooser)
                                 : schedulesText(procedure.name, command, schedules));
        text += one;
      }
  if (names.empty())
    return Status::error("the program has no collective");
  if (text.empty()) {
    std::string all;
    for (const std::string &name : names)
      all += (all.empty() ? "" : ", ") + name;
    return Status::error("the program has no collective '", schedules.collective, "', it has ",
                         all);
  }
  if (machine)
    return "Times on '" + machine->name + "', without what ranks wait for each other before. " +
           (schedules.anyOrder ? "" : "Only of algorithms whose sums are those of rank order. ") +
           "Bytes are those of packed values.\n" + text;
  return "Peers are named by " +
         std::string(options.rank ? "rank" : "rank, or by position where groups differ") +
         ". Bytes are those of packed values.\n" + text;
}

} // namespace braid::runtime
