//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Executes the schedules of collectives, step by step in their order.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_ENGINE_H
#define BRAID_COLLECTIVE_ENGINE_H

#include "CollectiveParts.h"
#include "Fabric.h"
#include "braid/Collective/Schedule.h"
#include "runtime/lib/Kernels/VectorKernels.h"

namespace braid::runtime {

/// What a rank needs to run a collective. It does not change during runs, and all ranks see it.
struct CollectivePlan {
  Schedule schedule;
  /// By position: the steps that send to it, by the numbers of their messages.
  std::vector<std::vector<uint32_t>> sends;
  std::vector<uint32_t> takes; ///< by position: the messages that the rank takes from it
  std::byte *scratch = nullptr;
  bool exceedsCaches = false; ///< the memory that all ranks use together
};

/// What the schedules of a collective depend on.
ScheduleRequest requestOf(const Collective &c, int64_t ranks);
Result<CollectivePlan> makePlan(const ScheduleRequest &request, int64_t position);

/// Runs one collective of a rank.
class Engine {
public:
  Engine(const Collective &collective, const SymmetricHeap &heap, const VectorKernels &kernels,
         RunControl &control, QueueState &self)
      : c(collective), plan(*collective.plan), group(*static_cast<DirectGroup *>(collective.group)),
        ranks(static_cast<int64_t>(group.ranks.size())), heap(heap), kernels(kernels),
        control(control), self(self) {}

  /// False when the run has failed.
  bool run();

private:
  /// Tells the others of this collective, and compares it with theirs.
  bool meet();
  bool perform(const ScheduleStep &step);
  /// Waits until a peer has taken a message of this collective, or sent one.
  bool awaitTaken(int64_t peer, uint32_t message);
  bool awaitSent(int64_t peer, uint32_t message);
  bool await(int64_t peer, bool taken, uint32_t target);

  using Place = PiecePlace;
  Place placeOf(const Collective &owner, int64_t position, const Piece &piece) const;
  Place placeOf(const StepSource &source) const;
  void reduce(const ScheduleStep &step);
  void copy(const ScheduleStep &step, int64_t begin, int64_t end);
  void copyCounted(const ScheduleStep &step);
  void clear(const Piece &piece, int64_t begin, int64_t end) const;
  const CollectiveValue &valueOf(const Piece &piece) const { return c.values[piece.value]; }
  const Collective &collectiveOf(int64_t position) const;

  Status checkCounts() const;
  bool fail(const std::string &message, Code code);

  const Collective &c;
  const CollectivePlan &plan;
  DirectGroup &group;
  const int64_t ranks;
  const SymmetricHeap &heap;
  const VectorKernels &kernels;
  RunControl &control;
  QueueState &self;
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_ENGINE_H
