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
  /// What all processes give, by rank; on the processes of other ranks than 0 nothing. Fails on all
  /// processes that still wait, with the same message, when one is lost.
  virtual Result<std::vector<Contribution>> gather(std::vector<std::byte> mine) = 0;
  bool hasRankZero() const { return local().contains(0); }
};

} // namespace braid::runtime
#endif // BRAID_RUNTIME_COMMUNICATOR_H
