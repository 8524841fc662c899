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

#include "braid/Program/Program.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::runtime {

/// A queue of a rank.
struct RankQueue {
  int64_t rank;
  Queue queue;
  bool operator==(const RankQueue &o) const { return rank == o.rank && queue == o.queue; }
};

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
  /// Of a command that waits for an event: the queue of its rank that sets it.
  virtual std::optional<Queue> awaitedQueue() const = 0;
  /// Of a collective: the ranks that have not arrived at it, each with the queue that is to arrive.
  /// Empty for all other commands.
  virtual std::vector<RankQueue> missing() const = 0;
  /// Whether it waits for missing ranks to receive earlier messages.
  virtual bool waitsForRoom() const { return false; }

  std::string name;                  ///< of the source operation
  const char *operation = "";        ///< "kernel", "matmul", "all_reduce", ...
  const std::string *path = nullptr; ///< calls from the entry down
};

/// "all_reduce 'attention.out' in @layer"
std::string describe(const NamedCommand &command);

} // namespace braid::runtime
#endif // BRAID_SYNC_NAMEDCOMMAND_H
