//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Describes the program of a bundle for people: the commands of each queue with the sizes of their
// operands, which commands wait for which, and what ranks exchange.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_EXPLAIN_H
#define BRAID_RUNTIME_EXPLAIN_H

#include "braid/Runtime/Bundle.h"

#include <optional>
#include <string>

namespace braid::runtime {

struct ExplainOptions {
  std::string procedure;       ///< only this one; empty: all of them
  std::optional<int64_t> rank; ///< name the ranks that this one exchanges values with
};

/// What is asked of the schedules of collectives (braid/Collective/Schedule.h).
struct ScheduleOptions {
  std::string collective;               ///< only those of this name; empty: all
  std::string transport = "threads";    ///< whose choice of algorithm and chunk is shown
  std::optional<std::string> algorithm; ///< another one
  std::optional<int64_t> chunkBytes;    ///< a longest message of another size
  int64_t ranksPerHost = 0; ///< consecutive ranks of a group that share a host; 0: all of them
  int64_t ranksPerNode = 0; ///< those of a host that share a NUMA node; 0: all of them
  /// Prints the times of the algorithms on this machine, a file or a name, in place of steps.
  std::string machine;
  bool anyOrder = false; ///< with a machine: also algorithms that do not keep the order of sums
};

/// As text. An unknown procedure or rank is an error.
Result<std::string> explain(const Bundle &bundle, const ExplainOptions &options);
/// As JSON: shapes in elements, sizes in bytes.
Result<std::string> explainAsJson(const Bundle &bundle, const ExplainOptions &options);
/// The steps of each rank in the collectives, as text. An algorithm that does not apply to one of
/// them is an error.
Result<std::string> explainSchedules(const Bundle &bundle, const ExplainOptions &options,
                                     const ScheduleOptions &schedules);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_EXPLAIN_H
