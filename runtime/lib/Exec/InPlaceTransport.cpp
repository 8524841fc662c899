//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks of one host: one allocation holds every rank's symmetric memory, and peers are read in
// place. Ranks are threads of one process, or processes that were forked after all collectives were
// made, so that in both cases a pointer means the same to all of them.
//
//===----------------------------------------------------------------------===//
#include "HostMemory.h"
#include "Transport.h"
#include "VectorKernels.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

namespace braid::runtime {
namespace {

/// What a rank brings to a meeting; written before it arrives, unchanged until all have left.
struct Seat {
  explicit Seat(Sharing sharing) : arrivals(sharing) {}
  Counter arrivals;
  const Collective *collective = nullptr;
  uint32_t step = 0; ///< arrivals so far, used by the owner only
};

/// An array in a pool.
struct Seats {
  Seat *first;
  size_t count;
  Seat &operator[](size_t i) const { return first[i]; }
  size_t size() const { return count; }
  Seat *begin() const { return first; }
  Seat *end() const { return first + count; }
};

struct InPlaceGroup : Group {
  InPlaceGroup(std::vector<int64_t> members, MemoryPool &pool)
      : seats{pool.create<Seat>(members.size(), pool.sharing()), members.size()} {
    ranks = std::move(members);
  }
  std::vector<int64_t> absent(int64_t position) const override {
    std::vector<int64_t> result;
    uint32_t mine = seats[static_cast<size_t>(position)].arrivals.value();
    for (size_t i = 0; i < seats.size(); ++i)
      if (!seats[i].arrivals.reached(mine))
        result.push_back(ranks[i]);
    return result;
  }
  Seats seats;
};

/// Says that this rank is at its next step and waits until all others are there too.
bool meet(InPlaceGroup &group, size_t position, RunControl &control, QueueState &self) {
  Seat &mine = group.seats[position];
  uint32_t step = ++mine.step;
  mine.arrivals.set(step);
  for (size_t i = 0; i < group.seats.size(); ++i)
    if (i != position &&
        !control.wait(group.seats[i].arrivals, step, self, Waiting::peer, group.ranks[i]))
      return false;
  return !control.failed();
}

std::string signature(const Collective &c) {
  std::string text = std::string(name(c.kind)) + " '" + c.name + "' (";
  if (hasReduction(c.kind))
    text += std::string(name(c.reduce)) + ", ";
  for (size_t i = 0; i < c.values.size(); ++i)
    text += (i ? " and " : "") + std::to_string(c.values[i].numElements()) + " " +
            name(c.values[i].dtype);
  text += std::string(", dim ") + std::to_string(c.dim);
  if (c.kind == CollectiveKind::allToAll)
    text += ", concat " + std::to_string(c.concatDim);
  if (c.kind == CollectiveKind::reduce || c.kind == CollectiveKind::broadcast)
    text += ", root " + std::to_string(c.root);
  if (c.kind == CollectiveKind::permute) {
    text += ", pairs [";
    for (size_t i = 0; i < c.pairs.size(); ++i)
      text += (i ? ", " : "") + std::to_string(c.pairs[i].first) + " -> " +
              std::to_string(c.pairs[i].second);
    text += "]";
  }
  text += ", role '" + c.role + "')";
  return c.path ? text + " in " + *c.path : text;
}

/// Whether it is the same operation of the same program. Others may look alike: a rank that comes
/// to them in another order would get values that belong elsewhere.
bool samePlace(const Collective &a, const Collective &b) {
  return a.name == b.name && (a.path && b.path ? *a.path == *b.path : a.path == b.path);
}

bool agree(const Collective &a, const Collective &b) {
  if (a.kind != b.kind || a.algorithm != b.algorithm || a.role != b.role || a.dim != b.dim ||
      a.concatDim != b.concatDim || a.root != b.root || a.pairs != b.pairs ||
      a.values.size() != b.values.size() || (hasReduction(a.kind) && a.reduce != b.reduce))
    return false;
  for (size_t i = 0; i < a.values.size(); ++i)
    if (a.values[i].dtype != b.values[i].dtype || a.values[i].outer != b.values[i].outer ||
        a.values[i].inner != b.values[i].inner || a.values[i].first != b.values[i].first ||
        a.values[i].between != b.values[i].between || a.values[i].second != b.values[i].second)
      return false;
  return true;
}

class InPlaceTransport : public Transport {
public:
  explicit InPlaceTransport(int64_t ranks, Sharing sharing)
      : numRanks(ranks), kernels(vectorKernels()), pool(sharing) {}
  ~InPlaceTransport() override {
    if (pool.sharing() == Sharing::process)
      std::free(memory);
  }

  const char *name() const override {
    return pool.sharing() == Sharing::process ? "threads" : "shm";
  }

  Status allocate(size_t bytes) override {
    // Whole pages per rank, so that ranks never share a cache line or a page of a NUMA node.
    stride = (std::max<size_t>(bytes, 1) + 4095) / 4096 * 4096;
    if (stride > SIZE_MAX / 2 / static_cast<size_t>(numRanks))
      return tooLarge(bytes);
    if (pool.sharing() == Sharing::forks) {
      if (Status status = host.allocate(stride * static_cast<size_t>(numRanks)); !status.ok())
        return Status::error("symmetric memory of " + std::to_string(bytes) +
                             " bytes for each of " + std::to_string(numRanks) +
                             " ranks: " + status.message());
      memory = host.data();
      return {};
    }
    memory =
        static_cast<std::byte *>(std::aligned_alloc(4096, stride * static_cast<size_t>(numRanks)));
    if (!memory)
      return tooLarge(bytes);
    std::memset(memory, 0, stride * static_cast<size_t>(numRanks));
    return {};
  }

  SymmetricHeap heap(int64_t rank) const override { return {memory, stride, rank, numRanks}; }

  Group *group(const std::vector<int64_t> &ranks) override {
    std::unique_ptr<InPlaceGroup> &slot = groups[ranks];
    if (!slot)
      slot = std::make_unique<InPlaceGroup>(ranks, pool);
    return slot.get();
  }

  void reset() override {
    for (auto &entry : groups)
      for (Seat &seat : entry.second->seats) {
        seat.step = 0;
        seat.arrivals.set(0);
      }
  }

  bool run(const Collective &c, const SymmetricHeap &heap, RunControl &control,
           QueueState &self) override {
    InPlaceGroup &group = *static_cast<InPlaceGroup *>(c.group);
    size_t position = static_cast<size_t>(c.position);
    group.seats[position].collective = &c;
    if (!meet(group, position, control, self))
      return false;
    for (size_t i = 0; i < group.seats.size(); ++i) {
      const Collective &other = *group.seats[i].collective;
      const bool alike = agree(c, other);
      if (alike && samePlace(c, other))
        continue;
      control.fail(
          Status::error("rank " + std::to_string(heap.rank) + ": " + signature(c) + " meets " +
                            signature(other) + " of rank " + std::to_string(group.ranks[i]) +
                            (alike ? ", as these ranks come to them in different orders" : ""),
                        Code::rankFailed));
      return false;
    }
    for (size_t v = 0; v < c.values.size(); ++v)
      exchange(c, v, group, heap);
    if (c.kind == CollectiveKind::allReduce) {
      if (!meet(group, position, control, self))
        return false;
      for (size_t v = 0; v < c.values.size(); ++v)
        copyOthers(c, v, group, heap);
    }
    // A rank that left now could overwrite what a slower peer still reads.
    return meet(group, position, control, self);
  }

private:
  Status tooLarge(size_t bytes) const {
    return Status::error("cannot allocate " + std::to_string(bytes) +
                         " bytes of symmetric memory for each of " + std::to_string(numRanks) +
                         " ranks");
  }

  /// What a rank does for one value between the ranks' meeting and their parting; of an all_reduce
  /// the first of two steps.
  void exchange(const Collective &c, size_t v, const InPlaceGroup &group,
                const SymmetricHeap &heap) const {
    switch (c.kind) {
    case CollectiveKind::allReduce:
      return reduceMine(c, v, group, heap);
    case CollectiveKind::reduceScatter:
      return reduceScatter(c, v, group, heap);
    case CollectiveKind::allGather:
      return allGather(c, v, group, heap);
    case CollectiveKind::allToAll:
      return allToAll(c, v, group, heap);
    case CollectiveKind::reduce:
      if (c.position == c.root)
        return reduce(c, v, group, heap, 0, heap.peer(heap.rank, c.values[v].outputOffset),
                      c.values[v].numElements());
      return take(c, v, group, heap, std::nullopt);
    case CollectiveKind::broadcast:
      return take(c, v, group, heap, c.root);
    case CollectiveKind::permute: {
      std::optional<int64_t> source;
      for (auto [from, to] : c.pairs)
        if (to == c.position)
          source = from;
      return take(c, v, group, heap, source);
    }
    }
  }

  /// Elements [begin, end) of an all_reduce that the rank at `position` reduces; whole cache lines
  /// each.
  static std::pair<int64_t, int64_t> share(int64_t elements, int64_t position, int64_t ranks) {
    constexpr int64_t kLine = 64;
    int64_t lines = (elements + kLine - 1) / kLine;
    return {std::min(elements, lines * position / ranks * kLine),
            std::min(elements, lines * (position + 1) / ranks * kLine)};
  }

  void reduce(const Collective &c, size_t v, const InPlaceGroup &group, const SymmetricHeap &heap,
              uint64_t inputByte, std::byte *out, int64_t count) const {
    std::vector<const void *> sources(group.ranks.size());
    for (size_t i = 0; i < sources.size(); ++i)
      sources[i] =
          heap.peer(group.ranks[i], group.seats[i].collective->values[v].inputOffset + inputByte);
    kernels.reduce(static_cast<int>(c.reduce), static_cast<int>(c.values[v].dtype), out,
                   sources.data(), static_cast<int>(sources.size()), count);
  }

  void reduceMine(const Collective &c, size_t v, const InPlaceGroup &group,
                  const SymmetricHeap &heap) const {
    const CollectiveValue &value = c.values[v];
    auto [begin, end] =
        share(value.outer * value.inner, c.position, static_cast<int64_t>(group.ranks.size()));
    if (begin == end)
      return;
    uint64_t at = static_cast<uint64_t>(begin * byteSize(value.dtype));
    reduce(c, v, group, heap, at, heap.peer(heap.rank, value.outputOffset) + at, end - begin);
  }

  void copyOthers(const Collective &c, size_t v, const InPlaceGroup &group,
                  const SymmetricHeap &heap) const {
    const CollectiveValue &value = c.values[v];
    std::byte *out = heap.peer(heap.rank, value.outputOffset);
    for (size_t i = 0; i < group.ranks.size(); ++i) {
      if (static_cast<int64_t>(i) == c.position)
        continue;
      auto [begin, end] = share(value.outer * value.inner, static_cast<int64_t>(i),
                                static_cast<int64_t>(group.ranks.size()));
      size_t at = static_cast<size_t>(begin * byteSize(value.dtype));
      std::memcpy(out + at,
                  heap.peer(group.ranks[i], group.seats[i].collective->values[v].outputOffset) + at,
                  static_cast<size_t>((end - begin) * byteSize(value.dtype)));
    }
  }

  void reduceScatter(const Collective &c, size_t v, const InPlaceGroup &group,
                     const SymmetricHeap &heap) const {
    const CollectiveValue &value = c.values[v];
    int64_t chunk = value.inner * byteSize(value.dtype);
    int64_t ranks = static_cast<int64_t>(group.ranks.size());
    for (int64_t o = 0; o < value.outer; ++o)
      reduce(c, v, group, heap, static_cast<uint64_t>((o * ranks + c.position) * chunk),
             heap.peer(heap.rank, value.outputOffset) + o * chunk, value.inner);
  }

  void allGather(const Collective &c, size_t v, const InPlaceGroup &group,
                 const SymmetricHeap &heap) const {
    const CollectiveValue &value = c.values[v];
    size_t chunk = static_cast<size_t>(value.inner * byteSize(value.dtype));
    size_t ranks = group.ranks.size();
    std::byte *out = heap.peer(heap.rank, value.outputOffset);
    for (size_t i = 0; i < ranks; ++i) {
      const std::byte *in =
          heap.peer(group.ranks[i], group.seats[i].collective->values[v].inputOffset);
      for (size_t o = 0; o < static_cast<size_t>(value.outer); ++o)
        if (out + (o * ranks + i) * chunk != in + o * chunk) // already in place
          std::memcpy(out + (o * ranks + i) * chunk, in + o * chunk, chunk);
    }
  }

  void allToAll(const Collective &c, size_t v, const InPlaceGroup &group,
                const SymmetricHeap &heap) const {
    const CollectiveValue &value = c.values[v];
    const int64_t ranks = static_cast<int64_t>(group.ranks.size());
    const int64_t size = byteSize(value.dtype);
    // Both dimensions in one: chunks lie side by side as in all_gather and reduce_scatter.
    const bool same = c.dim == c.concatDim;
    /// Where row (o, f, b) of the chunk `index` begins when the chunks are side by side along the
    /// first or the second dimension.
    auto row = [&](bool alongFirst, int64_t index, int64_t o, int64_t f, int64_t b) {
      int64_t firsts = alongFirst ? ranks * value.first : value.first;
      int64_t seconds = alongFirst ? value.second : ranks * value.second;
      int64_t atFirst = alongFirst ? index * value.first + f : f;
      int64_t atSecond = alongFirst ? 0 : index * value.second;
      return (((o * firsts + atFirst) * value.between + b) * seconds + atSecond) * value.inner *
             size;
    };
    const bool cutFirst = same || c.dim < c.concatDim, joinFirst = same || !cutFirst;
    const size_t bytes = static_cast<size_t>(value.second * value.inner * size);
    std::byte *out = heap.peer(heap.rank, value.outputOffset);
    for (int64_t i = 0; i < ranks; ++i) {
      const Seat &seat = group.seats[static_cast<size_t>(i)];
      const std::byte *in =
          heap.peer(group.ranks[static_cast<size_t>(i)], seat.collective->values[v].inputOffset);
      for (int64_t o = 0; o < value.outer; ++o)
        for (int64_t f = 0; f < value.first; ++f)
          for (int64_t b = 0; b < value.between; ++b)
            copyApart(out + row(joinFirst, i, o, f, b), in + row(cutFirst, c.position, o, f, b),
                      bytes);
    }
  }

  /// The whole value of the rank at a position, zeros if there is none.
  void take(const Collective &c, size_t v, const InPlaceGroup &group, const SymmetricHeap &heap,
            std::optional<int64_t> source) const {
    const CollectiveValue &value = c.values[v];
    size_t bytes = static_cast<size_t>(value.numElements() * byteSize(value.dtype));
    std::byte *out = heap.peer(heap.rank, value.outputOffset);
    if (!source) {
      std::memset(out, 0, bytes);
      return;
    }
    auto i = static_cast<size_t>(*source);
    copyApart(out, heap.peer(group.ranks[i], group.seats[i].collective->values[v].inputOffset),
              bytes);
  }

  /// In a group of one rank, output and input may be the same memory.
  static void copyApart(std::byte *out, const std::byte *in, size_t bytes) {
    if (out != in)
      std::memcpy(out, in, bytes);
  }

  int64_t numRanks;
  const VectorKernels &kernels;
  size_t stride = 0;
  std::byte *memory = nullptr;
  HostMemory host;
  MemoryPool pool; ///< meeting places
  std::map<std::vector<int64_t>, std::unique_ptr<InPlaceGroup>> groups;
};

} // namespace

std::unique_ptr<Transport> createThreadsTransport(int64_t ranks) {
  return std::make_unique<InPlaceTransport>(ranks, Sharing::process);
}

std::unique_ptr<Transport> createShmTransport(int64_t ranks) {
  return std::make_unique<InPlaceTransport>(ranks, Sharing::forks);
}

} // namespace braid::runtime
