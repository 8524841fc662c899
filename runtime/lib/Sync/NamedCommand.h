//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The part of a command that waits, messages and traces use.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_NAMEDCOMMAND_H
#define BRAID_SYNC_NAMEDCOMMAND_H

#include <cstdint>
#include <string>
#include <vector>

namespace braid::runtime {

/// The part of a command (Executor/Commands.h) that does not depend on what the command does.
struct NamedCommand {
  NamedCommand() = default;
  NamedCommand(const NamedCommand &) = default;
  NamedCommand &operator=(const NamedCommand &) = default;
  /// Launches hold pointers into their own memory, which moves with them: a vector that grows must
  /// move its commands, not copy them.
  NamedCommand(NamedCommand &&) = default;
  NamedCommand &operator=(NamedCommand &&) = default;
  virtual ~NamedCommand() = default;
  /// Whether it waits for the other queue of its rank.
  virtual bool waitsForQueue() const = 0;
  /// Of a collective: the ranks that have not arrived at it. Empty for all other commands.
  virtual std::vector<int64_t> missingRanks() const = 0;

  std::string name;                  ///< of the source operation
  const char *operation = "";        ///< "kernel", "linear", "all_reduce", ...
  const std::string *path = nullptr; ///< calls from the entry down
};

/// "all_reduce 'attention.out' in @layer"
std::string describe(const NamedCommand &command);

} // namespace braid::runtime
#endif // BRAID_SYNC_NAMEDCOMMAND_H
