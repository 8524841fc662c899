//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives of ranks that share a GPU, and so see each other's memory. A rank reads the same from
// its peers as a CPU rank does (Collective/Engine.cpp), and sums in the same order.
//
//===----------------------------------------------------------------------===//
#include "Exchange.h"
#include "braid/Base/StatusMacros.h"

namespace braid::runtime::cuda {

namespace {

class CopyExchange {
public:
  explicit CopyExchange(const std::vector<Member> &members) : members(members) {}

  Status prepare() {
    const Collective &first = *members.front().collective;
    // What is read in place is not copied. Nor does it wait for the reads: CudaExecutor does.
    if (!first.readInPlace)
      phases.resize(first.kind == CollectiveKind::allReduce ? 2 : 1);
    for (auto &phase : phases)
      phase.resize(members.size());
    for (size_t m = 0; m < members.size() && !phases.empty(); ++m)
      for (size_t v = 0; v < members[m].collective->values.size(); ++v)
        RETURN_IF_ERROR(value(m, v));
    if (members.size() == 1)
      return {};
    // A barrier before each phase and one at the end.
    for (size_t barrierIndex = 0; barrierIndex <= phases.size(); ++barrierIndex)
      for (const Member &member : members) {
        ASSIGN_OR_RETURN(Event event, createEvent(member.device->device, false));
        arrivals.push_back(std::move(event));
      }
    return {};
  }

  Status enqueue() const {
    for (size_t phase = 0; phase < phases.size(); ++phase) {
      RETURN_IF_ERROR(barrier(phase));
      for (size_t m = 0; m < members.size(); ++m)
        for (const StreamCommand &command : phases[phase][m])
          RETURN_IF_ERROR(command(members[m].stream));
    }
    // A rank that left now could overwrite what a slower peer still reads.
    return barrier(phases.size());
  }

private:
  const Driver &api() const { return members.front().device->device->api(); }

  Status barrier(size_t barrierIndex) const {
    if (members.size() == 1)
      return {};
    const size_t first = barrierIndex * members.size();
    for (size_t m = 0; m < members.size(); ++m)
      BRAID_CUDA_TRY(api(), cuEventRecordWithFlags, arrivals[first + m].get(), members[m].stream,
                     kEventRecordDefault);
    for (size_t m = 0; m < members.size(); ++m)
      for (size_t other = 0; other < members.size(); ++other)
        if (other != m)
          BRAID_CUDA_TRY(api(), cuStreamWaitEvent, members[m].stream, arrivals[first + other].get(),
                         0);
    return {};
  }

  /// Adds a command of member m.
  Status add(size_t phase, size_t m, Result<StreamCommand> made) {
    return append(phases[phase][m], std::move(made));
  }
  int64_t ranks() const { return static_cast<int64_t>(members.size()); }
  const Collective &mine(size_t m) const { return *members[m].collective; }
  const std::byte *input(size_t m, size_t v) const { return members[m].input(v); }
  std::byte *output(size_t m, size_t v) const { return members[m].output(v); }
  Status reduce(size_t m, size_t v, int64_t inputByte, ByteRange range) {
    if (range.begin == range.end)
      return {};
    std::vector<const std::byte *> sources;
    for (size_t other = 0; other < members.size(); ++other)
      sources.push_back(input(other, v) + inputByte);
    return add(0, m,
               makeReduce(mine(m).values[v], sources, output(m, v), range, mine(m).reduce,
                          *members[m].device));
  }

  /// Adds the commands of member m for value v.
  Status value(size_t m, size_t v) {
    const Collective &c = mine(m);
    const CollectiveValue &value = c.values[v];
    switch (c.kind) {
    case CollectiveKind::allReduce:
      return allReduce(m, v);
    case CollectiveKind::reduceScatter:
      return reduce(m, v, c.position * value.sourceStep, {0, value.bytes()});
    case CollectiveKind::allGather:
    case CollectiveKind::allToAll:
      return takeAll(m, v);
    case CollectiveKind::reduce:
      if (c.position == c.root)
        return reduce(m, v, 0, {0, value.bytes()});
      [[fallthrough]];
    case CollectiveKind::broadcast:
    case CollectiveKind::permute: {
      const int64_t source = sourceOf(c);
      return add(0, m,
                 source < 0
                     ? makeFill(value, output(m, v), *members[m].device)
                     : makeCopy({input(static_cast<size_t>(source), v), output(m, v), value.part},
                                *members[m].device));
    }
    case CollectiveKind::allToAllV:
      return takeCounted(m, v);
    case CollectiveKind::send:
    case CollectiveKind::recv:
      break; // without a barrier
    }
    return {};
  }

  Status allReduce(size_t m, size_t v) {
    const CollectiveValue &value = mine(m).values[v];
    StridedRuns runs = value.part; // from one output to another
    runs.sourceStrides = runs.destStrides;
    for (int64_t i = 0; i < ranks(); ++i) {
      const ByteRange range = reducedRange(value, i, ranks());
      const auto from = static_cast<size_t>(i);
      RETURN_IF_ERROR(from == m ? reduce(m, v, 0, range)
                                : add(1, m,
                                      makeCopy(runs, output(from, v), output(m, v), range,
                                               *members[m].device)));
    }
    return {};
  }

  /// Takes the part of each rank.
  Status takeAll(size_t m, size_t v) {
    const CollectiveValue &value = mine(m).values[v];
    for (size_t i = 0; i < members.size(); ++i)
      RETURN_IF_ERROR(
          add(0, m,
              makeCopy({input(i, v) + mine(m).position * value.sourceStep,
                        output(m, v) + static_cast<int64_t>(i) * value.destStep, value.part},
                       *members[m].device)));
    return {};
  }

  /// The receiver's blocks from a sender are that sender's blocks for the receiver.
  Status takeCounted(size_t m, size_t v) {
    const size_t last = mine(m).values.size() - 1;
    const CollectiveValue &value = mine(m).values[v], &counts = mine(m).values[last];
    if (v == last) {
      RETURN_IF_ERROR(
          add(0, m, makeCheckCounts(mine(m), input(m, v), members[m].number, *members[m].device)));
      return takeAll(m, v);
    }
    const CountedBlocks part = blocksOf(value, ranks());
    for (size_t i = 0; i < members.size(); ++i)
      RETURN_IF_ERROR(
          add(0, m,
              makeCopyCounted(value.part, part, input(i, v) + mine(m).position * value.sourceStep,
                              output(m, v) + static_cast<int64_t>(i) * value.destStep,
                              countsFrom(counts.input, counts.dtype, input(i, last),
                                         mine(m).position * part.blocks),
                              *members[m].device)));
    return {};
  }

  std::vector<Member> members;
  std::vector<std::vector<std::vector<StreamCommand>>> phases; ///< [phase][member]
  std::vector<Event> arrivals;                                 ///< [barrier][member]
};

} // namespace

Result<Exchange> makeCopyExchange(const std::vector<Member> &members) {
  auto exchange = std::make_shared<CopyExchange>(members);
  RETURN_IF_ERROR(exchange->prepare());
  return Exchange([exchange] { return exchange->enqueue(); });
}

} // namespace braid::runtime::cuda
