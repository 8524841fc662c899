//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The places of another process's queues, as RunControl's messages read them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_MIRROR_H
#define BRAID_NET_MIRROR_H

#include "Wire.h"
#include "runtime/lib/Sync/RunControl.h"

#include <map>
#include <memory>
#include <string>

namespace braid::runtime::net {

/// Where the queues of a rank of this process are. Texts and lists are cut, so that a frame holds
/// 32 queues.
Places placesOf(const RunControl &control, int64_t rank, uint64_t run, bool isRunning);

/// Keeps a rank of another process up to date in a RunControl, whose messages then tell of it as of
/// ranks of this process. One thread writes.
class Mirror {
public:
  /// What the rank said. With another run than `run` the rank has no place in this one.
  void write(RunControl &control, int64_t rank, const Places &places, uint64_t run);

private:
  struct Command;
  const NamedCommand *commandFor(const QueuePlace &place, int64_t ranks);
  /// By all that they say. They do not change and stay, as others may still read them.
  std::map<std::string, std::unique_ptr<const NamedCommand>> commands;
};

} // namespace braid::runtime::net
#endif // BRAID_NET_MIRROR_H
