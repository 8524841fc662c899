//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks of one host that were started separately share their arenas: each has a memory file, and
// passes it to the others over a local socket. The sockets have abstract names, which nobody
// without the job's key can foretell when there is a secret; both sides check the other's user, and
// requests carry an HMAC. Nothing is left in the file system.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_ARENAEXCHANGE_H
#define BRAID_NET_ARENAEXCHANGE_H

#include "braid/Base/Status.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace braid::runtime::net {

struct ArenaOptions {
  std::string key;            ///< of the job (Job::key); other exchanges of a job append to it
  int64_t rank = 0;           ///< of this process
  std::vector<int64_t> ranks; ///< those of this host, with this one
  double timeLimitSeconds = 60;
  /// Bytes of the arena that the system must have; none: all of them.
  std::optional<size_t> neededBytes;
  /// What is known of the ranks from elsewhere, or null: an error, which ends the exchange, when
  /// one is lost; and what goes on the message of a rank that reaches its limit before.
  std::function<Status()> state;
  std::function<std::string()> remark;
};

/// Whether the system lets this process make memory files, and pass them on.
bool canShareArenas();

/// Makes a zeroed arena of `bytes` for this rank and maps it and those of the others, which may
/// have other sizes; in the order of `options.ranks`. An arena cannot be made smaller by any rank,
/// so that no access to it fails later. Its pages are allocated when they are touched.
Result<std::vector<HostMemory>> exchangeArenas(const ArenaOptions &options, size_t bytes);

} // namespace braid::runtime::net
#endif // BRAID_NET_ARENAEXCHANGE_H
