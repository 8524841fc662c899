//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives of ranks that share a GPU, and so see each other's memory. A rank reads the same from
// its peers as a CPU rank does (Collective/InPlaceExchange.cpp), and sums in the same order.
//
//===----------------------------------------------------------------------===//
#include "Exchange.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Collective/CollectiveExtents.h"

namespace braid::runtime::cuda {

namespace {

class CopyExchange {
public:
  explicit CopyExchange(const std::vector<Member> &members) : members(members) {}

  Status prepare() {
    phases.resize(members.front().collective->kind == CollectiveKind::allReduce ? 2 : 1);
    for (auto &phase : phases)
      phase.resize(members.size());
    for (size_t m = 0; m < members.size(); ++m)
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
  Status copy(size_t phase, size_t m, const std::byte *source, std::byte *dest, int64_t bytes,
              const std::vector<int64_t> &counts = {},
              const std::vector<int64_t> &sourceStrides = {},
              const std::vector<int64_t> &destStrides = {}) {
    // In a group of one rank, output and input may be the same memory.
    if (source == dest)
      return {};
    CopyCommand command{source, dest, bytes, {}, {}, {}};
    for (size_t d = 0; d < counts.size(); ++d) {
      if (counts[d] == 0)
        return {};
      if (counts[d] == 1)
        continue;
      command.counts.push_back(counts[d]);
      command.sourceStrides.push_back(sourceStrides[d]);
      command.destStrides.push_back(destStrides[d]);
    }
    return add(phase, m, makeCopy(command, *members[m].device));
  }

  int64_t ranks() const { return static_cast<int64_t>(members.size()); }
  const Collective &mine(size_t m) const { return *members[m].collective; }
  const std::byte *input(size_t m, size_t v) const { return members[m].input(v); }
  std::byte *output(size_t m, size_t v) const { return members[m].output(v); }
  Status reduce(size_t m, size_t v, int64_t inputByte, std::byte *out, int64_t count) {
    std::vector<const std::byte *> sources;
    for (size_t other = 0; other < members.size(); ++other)
      sources.push_back(input(other, v) + inputByte);
    return add(0, m,
               makeReduce(sources, out, count, mine(m).reduce, mine(m).values[v].dtype,
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
      return reduceScatter(m, v);
    case CollectiveKind::allGather: {
      const int64_t chunk = value.inner * byteSize(value.dtype);
      for (size_t i = 0; i < members.size(); ++i)
        RETURN_IF_ERROR(copy(0, m, input(i, v), output(m, v) + static_cast<int64_t>(i) * chunk,
                             chunk, {value.outer}, {chunk}, {ranks() * chunk}));
      return {};
    }
    case CollectiveKind::allToAll:
      return allToAll(m, v);
    case CollectiveKind::reduce:
      if (c.position == c.root)
        return reduce(m, v, 0, output(m, v), value.numElements());
      [[fallthrough]];
    case CollectiveKind::broadcast:
    case CollectiveKind::permute: {
      const int64_t source = sourceOf(c);
      return source < 0
                 ? add(0, m, makeFill(output(m, v), value.bytes(), *members[m].device))
                 : copy(0, m, input(static_cast<size_t>(source), v), output(m, v), value.bytes());
    }
    case CollectiveKind::allToAllV:
      return allToAllCounted(m, v);
    case CollectiveKind::send:
    case CollectiveKind::recv:
      break; // without a barrier
    }
    return {};
  }

  Status allReduce(size_t m, size_t v) {
    const CollectiveValue &value = mine(m).values[v];
    const int64_t size = byteSize(value.dtype);
    const int64_t elements = value.numElements();
    for (int64_t i = 0; i < ranks(); ++i) {
      auto [begin, end] = reducedRange(elements, i, ranks());
      if (begin == end)
        continue;
      const auto from = static_cast<size_t>(i);
      RETURN_IF_ERROR(from == m
                          ? reduce(m, v, begin * size, output(m, v) + begin * size, end - begin)
                          : copy(1, m, output(from, v) + begin * size, output(m, v) + begin * size,
                                 (end - begin) * size));
    }
    return {};
  }

  Status reduceScatter(size_t m, size_t v) {
    const CollectiveValue &value = mine(m).values[v];
    const int64_t chunk = value.inner * byteSize(value.dtype);
    for (int64_t o = 0; o < value.outer; ++o)
      RETURN_IF_ERROR(reduce(m, v, (o * ranks() + mine(m).position) * chunk,
                             output(m, v) + o * chunk, value.inner));
    return {};
  }

  Status allToAll(size_t m, size_t v) {
    const CollectiveValue &value = mine(m).values[v];
    const auto [from, to, rowBytes] = allToAllStrides(mine(m), value, ranks());
    for (size_t i = 0; i < members.size(); ++i)
      RETURN_IF_ERROR(copy(0, m, input(i, v) + mine(m).position * from.chunk,
                           output(m, v) + static_cast<int64_t>(i) * to.chunk, rowBytes,
                           {value.outer, value.first, value.between},
                           {from.outer, from.first, from.between},
                           {to.outer, to.first, to.between}));
    return {};
  }

  /// The receiver's blocks from a sender are that sender's blocks for the receiver.
  Status allToAllCounted(size_t m, size_t v) {
    const size_t last = mine(m).values.size() - 1;
    const CollectiveValue &value = mine(m).values[v], &counts = mine(m).values[last];
    const int64_t bytes = value.bytes();
    if (v == last)
      RETURN_IF_ERROR(add(0, m,
                          makeCheckCounts(mine(m), input(m, v), ranks() * value.outer,
                                          members[m].number, *members[m].device)));
    for (size_t i = 0; i < members.size(); ++i) {
      const std::byte *from = input(i, v) + mine(m).position * bytes;
      std::byte *to = output(m, v) + static_cast<int64_t>(i) * bytes;
      const std::byte *countsFrom =
          input(i, last) + mine(m).position * counts.outer * byteSize(counts.dtype);
      RETURN_IF_ERROR(v == last ? copy(0, m, from, to, bytes)
                                : add(0, m,
                                      makeCopyCounted(value, from, to, value.outer, countsFrom,
                                                      counts.dtype, *members[m].device)));
    }
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
