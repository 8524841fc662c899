//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives of ranks that share a GPU, and so see each other's memory. What a rank reads from its
// peers is the same as with CPU ranks (Collective/InPlaceExchange.cpp), and so are the sums'
// orders.
//
//===----------------------------------------------------------------------===//
#include "Exchange.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>

namespace braid::runtime::cuda {

namespace {

/// Elements [begin, end) of an all_reduce that the rank at `position` reduces.
std::pair<int64_t, int64_t> share(int64_t elements, int64_t position, int64_t ranks) {
  constexpr int64_t kLine = 64;
  const int64_t lines = (elements + kLine - 1) / kLine;
  return {std::min(elements, lines * position / ranks * kLine),
          std::min(elements, lines * (position + 1) / ranks * kLine)};
}

/// What one member does between two barriers.
struct Phase {
  std::vector<StreamCommandPtr> commands;
};

class CopyExchange : public ExchangeCommand {
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

  Status enqueue() const override {
    for (size_t phase = 0; phase < phases.size(); ++phase) {
      RETURN_IF_ERROR(barrier(phase));
      for (size_t m = 0; m < members.size(); ++m)
        for (const StreamCommandPtr &work : phases[phase][m].commands)
          RETURN_IF_ERROR(work->enqueue(members[m].stream));
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

  Status add(size_t phase, size_t m, Result<StreamCommandPtr> work) {
    RETURN_IF_ERROR(work.status());
    if (*work)
      phases[phase][m].commands.push_back(std::move(*work));
    return {};
  }
  Status copy(size_t phase, size_t m, const std::byte *source, std::byte *dest, int64_t bytes,
              std::vector<int64_t> counts = {}, std::vector<int64_t> sourceStrides = {},
              std::vector<int64_t> destStrides = {}) {
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
  const std::byte *input(size_t m, size_t v) const {
    return members[m].heap.peer(members[m].heap.rank, mine(m).values[v].inputOffset);
  }
  std::byte *output(size_t m, size_t v) const {
    return members[m].heap.peer(members[m].heap.rank, mine(m).values[v].outputOffset);
  }
  Status reduce(size_t m, size_t v, int64_t inputByte, std::byte *out, int64_t count) {
    std::vector<const std::byte *> sources;
    for (size_t other = 0; other < members.size(); ++other)
      sources.push_back(input(other, v) + inputByte);
    return add(0, m,
               makeReduce(sources, out, count, mine(m).reduce, mine(m).values[v].dtype,
                          *members[m].device));
  }

  /// What member m does for value v.
  Status value(size_t m, size_t v) {
    const Collective &c = mine(m);
    const CollectiveValue &value = c.values[v];
    const int64_t size = byteSize(value.dtype), bytes = value.numElements() * size;
    switch (c.kind) {
    case CollectiveKind::allReduce:
      return allReduce(m, v);
    case CollectiveKind::reduceScatter:
      return reduceScatter(m, v);
    case CollectiveKind::allGather: {
      const int64_t chunk = value.inner * size;
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
      return add(0, m, Result<StreamCommandPtr>(makeFill(output(m, v), bytes, *members[m].device)));
    case CollectiveKind::broadcast:
      return copy(0, m, input(static_cast<size_t>(c.root), v), output(m, v), bytes);
    case CollectiveKind::permute:
      for (auto [from, to] : c.pairs)
        if (to == c.position)
          return copy(0, m, input(static_cast<size_t>(from), v), output(m, v), bytes);
      return add(0, m, Result<StreamCommandPtr>(makeFill(output(m, v), bytes, *members[m].device)));
    case CollectiveKind::allToAllV:
      return allToAllCounted(m, v);
    case CollectiveKind::send:
    case CollectiveKind::recv:
      break; // do not meet
    }
    return {};
  }

  Status allReduce(size_t m, size_t v) {
    const CollectiveValue &value = mine(m).values[v];
    const int64_t size = byteSize(value.dtype);
    const int64_t elements = value.numElements();
    for (int64_t i = 0; i < ranks(); ++i) {
      auto [begin, end] = share(elements, i, ranks());
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
    const Collective &c = mine(m);
    const CollectiveValue &value = c.values[v];
    const int64_t inner = value.inner * byteSize(value.dtype);
    const bool same = c.dim == c.concatDim;
    const bool cutFirst = same || c.dim < c.concatDim, joinFirst = same || !cutFirst;
    // A side has its chunks side by side along the first or the second of two dimensions.
    struct Side {
      int64_t outer, first, between, chunk;
    };
    auto side = [&](bool alongFirst) {
      const int64_t firsts = alongFirst ? ranks() * value.first : value.first;
      const int64_t row = (alongFirst ? value.second : ranks() * value.second) * inner;
      Side s;
      s.between = row;
      s.first = value.between * row;
      s.outer = firsts * s.first;
      s.chunk = alongFirst ? value.first * s.first : value.second * inner;
      return s;
    };
    const Side from = side(cutFirst), to = side(joinFirst);
    for (size_t i = 0; i < members.size(); ++i)
      RETURN_IF_ERROR(copy(0, m, input(i, v) + c.position * from.chunk,
                           output(m, v) + static_cast<int64_t>(i) * to.chunk, value.second * inner,
                           {value.outer, value.first, value.between},
                           {from.outer, from.first, from.between},
                           {to.outer, to.first, to.between}));
    return {};
  }

  /// The sender's blocks for this rank become this rank's blocks from the sender.
  Status allToAllCounted(size_t m, size_t v) {
    const size_t last = mine(m).values.size() - 1;
    const CollectiveValue &value = mine(m).values[v], &counts = mine(m).values[last];
    const int64_t bytes = value.numElements() * byteSize(value.dtype);
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
  std::vector<std::vector<Phase>> phases; ///< [phase][member]
  std::vector<Event> arrivals;            ///< [barrier][member]
};

} // namespace

Result<ExchangePtr> makeCopyExchange(const std::vector<Member> &members) {
  auto exchange = std::make_unique<CopyExchange>(members);
  RETURN_IF_ERROR(exchange->prepare());
  return ExchangePtr(std::move(exchange));
}

} // namespace braid::runtime::cuda
