//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramOutline.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Explain.h"

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

Result<std::string> schedulesText(const std::string &procedure, const OutlineCommand &command,
                                  const ScheduleOptions &options) {
  ScheduleRequest request = *command.collective;
  ASSIGN_OR_RETURN(request.algorithm, scheduleAlgorithm(options.algorithm));
  request.chunkBytes = options.chunkBytes;
  if (options.ranksPerHost > 0)
    for (int64_t position = 0; position < request.ranks; ++position)
      request.topology.places.push_back({position / options.ranksPerHost, 0});
  const std::string what = command.kind + " '" + command.name + "'";
  std::string text = "\n@" + procedure + ", " + what + " by " + options.algorithm + " among " +
                     std::to_string(request.ranks) + (request.ranks == 1 ? " rank" : " ranks") +
                     ", in chunks of " + std::to_string(request.chunkBytes) + " bytes\n";
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
  if (schedules.ranksPerHost < 0)
    return Status::error("a host expects at least 1 rank, got ", schedules.ranksPerHost);
  ASSIGN_OR_RETURN(const ProgramOutline outline,
                   outlineProgram(bundle, options.rank, options.procedure));
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
        ASSIGN_OR_RETURN(const std::string one, schedulesText(procedure.name, command, schedules));
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
  return "Peers are named by " +
         std::string(options.rank ? "rank" : "rank, or by position where groups differ") +
         ". Bytes are those of packed values.\n" + text;
}

} // namespace braid::runtime
