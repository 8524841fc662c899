//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The processes that serve the ranks of a mesh together, as one of them sees the others.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_COMMUNICATOR_H
#define BRAID_RUNTIME_COMMUNICATOR_H

#include "braid/Base/PerRank.h"
#include "braid/Base/Status.h"
#include "braid/Runtime/Launch.h"

#include <memory>
#include <string>
#include <vector>

namespace braid::runtime {

class Transport;

/// What a process gives to the process of rank 0.
struct Contribution {
  RankRange ranks; ///< that the process serves
  std::vector<std::byte> bytes;
};

/// All processes call `gather`, and make models with it, in the same order. The process of rank 0
/// is the one that results are put together in.
class Communicator {
public:
  virtual ~Communicator() = default;
  virtual int64_t numRanks() const = 0;
  /// The ranks that this process serves.
  virtual RankRange local() const = 0;
  /// How ranks reach each other, as a bundle and a report name it.
  virtual std::string transportName() const = 0;
  /// The transport of one model, for the local ranks.
  virtual Result<std::unique_ptr<Transport>> createTransport(int64_t messagesInFlight) = 0;
  /// What all processes give, by rank; on the processes of other ranks than 0 nothing. `bytes`: how
  /// much each rank's process gives for it, the same on all processes. Fails when a process is lost
  /// or the time limit is reached.
  virtual Result<std::vector<Contribution>> gather(std::vector<std::byte> mine,
                                                   const std::vector<size_t> &bytes) = 0;
  bool hasRankZero() const { return local().contains(0); }
};

/// How processes meet that talk over UCX.
struct UcxOptions {
  LaunchInfo launch;               ///< which rank this process is, and where all meet
  std::string bundle;              ///< the SHA-256 of what all run
  std::string mesh;                ///< and its mesh, as meshString writes it
  size_t numQueues = 1;            ///< the communication queues of its program
  double timeLimitSeconds = 60;    ///< for the start, and for the silence of a process; 0: never
  std::string transports, devices; ///< of UCX, as in UCX_TLS and UCX_NET_DEVICES; empty: these
};

/// Meets the other processes, each of which serves one rank. Errors name the ranks that are
/// missing, that come twice, or that run something else (Net/Bootstrap.h).
Result<std::shared_ptr<Communicator>> createUcxCommunicator(const UcxOptions &options);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_COMMUNICATOR_H
