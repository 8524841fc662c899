//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A program as `explain` shows it: every command with its operands, and events as pairs of a
// waiting and an awaited command.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOL_PROGRAMOUTLINE_H
#define BRAID_TOOL_PROGRAMOUTLINE_H

#include "braid/Collective/Schedule.h"
#include "braid/Program/Program.h"
#include "braid/Runtime/Bundle.h"

#include <optional>

namespace braid::runtime {

/// The place of a command, seen from a command of the same procedure.
struct OutlinePlace {
  std::string queue; ///< its name
  size_t index = 0;  ///< in the queue's stream
  std::string kind, name;
  /// For a command of a callee: the procedures called on the way to it; `index` is then the call's.
  std::vector<std::string> within;
};

struct OutlineOperand {
  std::string role;   ///< "input", "weight", ...; empty if there is only one of its kind
  std::string memory; ///< "parameter 'w'", "argument 2", "buffer 'query'"
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  bool written = false;
  int64_t bytes() const;
};

/// The group of a collective, or of a kernel that chooses a shard by the rank's position.
struct OutlineGroup {
  std::string axes; ///< "tp", "dp, tp:(1)2"
  int64_t size = 1;
  std::vector<std::vector<int64_t>>
      groups; ///< ranks; only one group if a rank is given, none if there are too many
};

struct OutlineCommand {
  size_t index = 0; ///< on its queue, as all ranks number it
  std::string on;   ///< "{pp = [0]}": the ranks that run it; empty: all that run the procedure
  std::string kind; ///< "matmul", "all_reduce", "wait", ...
  std::string name; ///< of the source operation
  std::vector<OutlineOperand> operands;
  std::vector<std::pair<std::string, std::string>> details; ///< "rows" "32", "reduction" "sum", ...
  std::optional<OutlineGroup> group;
  std::optional<int64_t> bytesSent; ///< by a rank that sends
  /// Of a collective: what its schedules depend on; the algorithm and the topology are not given.
  std::optional<ScheduleRequest> collective;
  std::string callee;
  std::vector<OutlinePlace> waitsFor, awaitedBy;
};

struct OutlineProcedure {
  std::string name;
  std::string entry; ///< the entry whose procedure this is; empty for others
  uint64_t localBytes = 0, symmetricBytes = 0;
  /// Names of the arguments that lie in symmetric memory.
  std::vector<std::string> symmetricArguments;
  int64_t executions = 0; ///< in one run of every entry
  std::vector<std::vector<OutlineCommand>> queues;
};

struct ProgramOutline {
  std::vector<QueueInfo> queues;
  std::vector<OutlineProcedure> procedures; ///< callers before callees
};

/// Outlines the program of a bundle, for all ranks or for one.
Result<ProgramOutline> outlineProgram(const Bundle &bundle, std::optional<int64_t> rank);
/// The same, but only this procedure, unless the name is empty.
Result<ProgramOutline> outlineProgram(const Bundle &bundle, std::optional<int64_t> rank,
                                      const std::string &procedure);

} // namespace braid::runtime
#endif // BRAID_TOOL_PROGRAMOUTLINE_H
