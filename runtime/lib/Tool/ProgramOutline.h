//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A program in the form that it is explained from: every command with its operands, and the events
// between commands as pairs of who waits and who is waited for.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOL_PROGRAMOUTLINE_H
#define BRAID_TOOL_PROGRAMOUTLINE_H

#include "braid/Program/Program.h"
#include "braid/Runtime/Bundle.h"

#include <array>
#include <optional>

namespace braid::runtime {

/// A command as another one of its procedure sees it.
struct OutlinePlace {
  Queue queue = Queue::compute;
  size_t index = 0; ///< in the queue's stream
  std::string kind, name;
  /// Procedures that are called on the way when the command is a callee's; index is then the
  /// call's.
  std::vector<std::string> within;
};

struct OutlineOperand {
  std::string role;   ///< "input", "weight", ...; empty where there is only one of its sort
  std::string memory; ///< "parameter 'w'", "argument 2", "buffer 'query'"
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  bool written = false;
  int64_t bytes() const;
};

/// Who takes part in a collective, or in whose coordinates a part is chosen.
struct OutlineGroup {
  std::string axes; ///< "tp", "dp, tp:(1)2"
  int64_t size = 1;
  std::vector<std::vector<int64_t>> groups; ///< ranks; only the asked one's group when one is asked
                                            ///< for, none when there are too many
};

struct OutlineCommand {
  std::string kind; ///< "linear", "all_reduce", "wait", ...
  std::string name; ///< the source's
  std::vector<OutlineOperand> operands;
  std::vector<std::pair<std::string, std::string>> details; ///< "rows" "32", "reduction" "sum", ...
  std::optional<OutlineGroup> group;
  std::optional<int64_t> bytesSent; ///< by a rank that gives a value to another
  std::string callee;
  std::vector<OutlinePlace> waitsFor, awaitedBy;
};

struct OutlineProcedure {
  std::string name;
  std::string entry; ///< the entry that it is of, empty for others
  uint64_t localBytes = 0, symmetricBytes = 0;
  int64_t executions = 0; ///< in one run of every entry
  std::array<std::vector<OutlineCommand>, 2> queues;
};

struct ProgramOutline {
  std::vector<OutlineProcedure> procedures; ///< callers before callees
};

/// The outline of a bundle that has been read, and so checked.
Result<ProgramOutline> outlineProgram(const Bundle &bundle, std::optional<int64_t> rank);

} // namespace braid::runtime
#endif // BRAID_TOOL_PROGRAMOUTLINE_H
