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

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace braid::runtime {

class Bundle;
class Transport;
} // namespace braid::runtime
namespace braid::cost {
struct Machine; // braid/Cost/Machine.h
} // namespace braid::cost
namespace braid::runtime {

/// What a process gives to the process of rank 0.
struct Contribution {
  RankRange ranks; ///< that the process serves
  std::vector<std::byte> bytes;
};

/// How times of this process's clock (nowNs()) are told in those of rank 0's: a time t here is
/// t + offsetAt(t) there. Clocks of different hosts count from different moments, and not equally
/// fast, so the offset is read twice, and taken to change evenly between.
struct ClockMap {
  struct Reading {
    int64_t atNs = 0;     ///< of this clock
    int64_t offsetNs = 0; ///< what is to be added
    int64_t errorNs = 0;  ///< how wrong the offset may be: half the round trip it was read by
  };
  Reading first, last;
  int64_t offsetAt(int64_t ns) const;
  int64_t errorNs() const { return std::max(first.errorNs, last.errorNs); }
};

/// All processes call `gather`, `scatter`, `broadcast`, `collect` and `measureClock`, and make
/// models with it, in the same order. The process of rank 0 is the one that results are put
/// together in. Each call fails when a process is lost or the time limit is reached.
class Communicator {
public:
  virtual ~Communicator() = default;
  virtual int64_t numRanks() const = 0;
  /// The ranks that this process serves.
  virtual RankRange local() const = 0;
  /// How ranks reach each other, as a bundle and a report name it.
  virtual std::string transportName() const = 0;
  /// What messages call the host of this process.
  virtual std::string host() const = 0;
  /// What it took this process to meet the others.
  struct StartCost {
    double seconds = 0;
    double processorSeconds = 0; ///< of the process since it began, in all its threads
  };
  virtual StartCost startCost() const { return {}; }
  /// Of all processes, those on the host of this one, which share its cores.
  virtual int64_t ranksOfHost() const { return numRanks(); }
  /// By whose times schedules are chosen and runs are predicted, or null.
  virtual std::shared_ptr<const cost::Machine> machine() const { return nullptr; }
  /// The transport of one model, for the local ranks.
  virtual Result<std::unique_ptr<Transport>> createTransport(int64_t messagesInFlight) = 0;

  /// What all processes give, by rank; on the processes of other ranks than 0 nothing. `bytes`: how
  /// much each rank's process gives for it, the same on all processes.
  virtual Result<std::vector<Contribution>> gather(std::vector<std::byte> mine,
                                                   const std::vector<size_t> &bytes) = 0;
  /// The other way around: what the process of rank 0 makes for the ranks of each process, a few
  /// at a time. `bytes` as above. An error of rank 0's is the error of all.
  using MakePart = std::function<Result<std::vector<std::byte>>(RankRange ranks)>;
  virtual Result<std::vector<std::byte>> scatter(const MakePart &make,
                                                 const std::vector<size_t> &bytes) = 0;
  /// Copies at most kMaxBroadcastBytes of rank 0's process to all others.
  static constexpr size_t kMaxBroadcastBytes = 1 << 16;
  virtual Status broadcast(void *data, size_t bytes) = 0;
  /// Gives the process of rank 0 bytes of any number from each process, a piece of each in turn.
  /// `next` makes this process's next piece, of 1 to kMaxPieceBytes, or an empty one at the end;
  /// `take` gets the pieces of all in the process of rank 0. An error of `next` is also one of rank
  /// 0, which names the rank; an error of `take` is one of rank 0 only.
  static constexpr size_t kMaxPieceBytes = size_t(1) << 20;
  using NextPiece = std::function<Result<std::string>()>;
  using TakePiece = std::function<Status(RankRange ranks, const std::string &piece)>;
  virtual Status collect(const NextPiece &next, const TakePiece &take) = 0;
  /// Compares the clocks once more.
  virtual Result<ClockMap> measureClock() = 0;
  bool hasRankZero() const { return local().contains(0); }
};

/// How processes meet that talk over UCX.
struct UcxOptions {
  LaunchInfo launch; ///< which rank this process is, and where all meet
  /// In place of meeting at launch.rendezvous: gives each process the bytes of all, in the order of
  /// ranks, as MPI_Allgather does; the result is 0, or the number of an error. Nothing here limits
  /// how long it takes.
  std::function<int(const void *send, size_t bytes, void *receive)> allGather;
  double timeLimitSeconds = 60;    ///< for the start, and for the silence of a process; 0: never
  std::string transports, devices; ///< of UCX, as in UCX_TLS and UCX_NET_DEVICES; empty: these
  /// By whose times the schedules of collectives are chosen; null: by fixed rules. Processes with
  /// different ones do not form a job.
  std::shared_ptr<const cost::Machine> machine;
};

/// Meets the other processes that run the bundle, each of which serves one rank. Errors name the
/// ranks that are missing, that come twice, or that run something else (Net/Bootstrap.h).
Result<std::shared_ptr<Communicator>> createUcxCommunicator(const Bundle &bundle,
                                                            const UcxOptions &options);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_COMMUNICATOR_H
