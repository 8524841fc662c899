//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Algorithms.h"

#include <algorithm>
#include <numeric>

namespace braid::runtime {

constexpr int64_t kLine = 64; // elements

int64_t chunkLength(const ScheduleRequest &request, const ScheduleValue &value) {
  const int64_t elements = request.chunkBytes / value.elementBytes;
  return (elements < kLine ? elements : elements / kLine * kLine) * value.elementBytes;
}

OwnedBytes::OwnedBytes(const ScheduleRequest &request) : request(request) {
  const bool oneOwner =
      request.kind == CollectiveKind::reduce || request.kind == CollectiveKind::broadcast ||
      (request.kind == CollectiveKind::allReduce && request.algorithm == ScheduleAlgorithm::tree);
  owners.resize(oneOwner ? 1 : static_cast<size_t>(request.ranks));
  std::iota(owners.begin(), owners.end(), 0);
  if (oneOwner && request.kind != CollectiveKind::allReduce)
    owners[0] = request.root;
  for (uint32_t v = 0; v < request.values.size(); ++v) {
    const int64_t length = chunkLength(request, request.values[v]);
    int64_t most = 0;
    for (int64_t owner : owners) {
      const auto [begin, end] = rangeOf(v, owner);
      most = std::max(most, end - begin);
    }
    for (int64_t chunk = 0; chunk * length < most; ++chunk)
      rounds.push_back({v, chunk, rounds.size()});
  }
}

std::pair<int64_t, int64_t> OwnedBytes::rangeOf(uint32_t value, int64_t owner) const {
  const auto [partBytes, size, inPlace] = request.values[value];
  if (request.kind != CollectiveKind::allReduce || owners.size() == 1)
    return {0, partBytes};
  const int64_t elements = partBytes / size, n = request.ranks;
  const int64_t lines = (elements + kLine - 1) / kLine;
  return {std::min(elements, lines * owner / n * kLine) * size,
          std::min(elements, lines * (owner + 1) / n * kLine) * size};
}

Piece OwnedBytes::chunkOf(Space space, Round round, int64_t owner, bool inOwnersPart) const {
  const ScheduleValue &value = request.values[round.value];
  const auto [begin, end] = rangeOf(round.value, owner);
  const int64_t length = chunkLength(request, value);
  const int64_t from = std::min(end, begin + round.chunk * length);
  return {space, round.value, from + (inOwnersPart ? owner * value.partBytes : 0),
          std::min(end - from, length)};
}

Piece OwnedBytes::input(Round round, int64_t owner) const {
  return chunkOf(Space::input, round, owner, request.kind == CollectiveKind::reduceScatter);
}
Piece OwnedBytes::result(Round round, int64_t owner) const {
  return chunkOf(Space::output, round, owner, false);
}
Piece OwnedBytes::given(Round round, int64_t owner) const {
  return chunkOf(request.kind == CollectiveKind::allReduce ? Space::output : Space::input, round,
                 owner, false);
}
Piece OwnedBytes::gathered(Round round, int64_t owner) const {
  return chunkOf(Space::output, round, owner, request.kind == CollectiveKind::allGather);
}

Piece Partials::at(int64_t rank, Round round, int64_t owner) {
  const Piece result = bytes.result(round, owner);
  if (rank == owner || bytes.partialsInOutput())
    return result;
  auto [slot, isNew] = slots.try_emplace({round.index % 2, owner});
  if (isNew) {
    int64_t length = 0;
    for (const ScheduleValue &value : bytes.request.values)
      length = std::max(length, chunkLength(bytes.request, value));
    slot->second = builder.scratch(rank, round.value, length);
  }
  Piece piece = slot->second;
  piece.value = round.value;
  piece.bytes = result.bytes;
  return piece;
}

//===----------------------------------------------------------------------===//
// direct
//===----------------------------------------------------------------------===//

void reduceDirect(const OwnedBytes &bytes, Round round, ScheduleBuilder &builder) {
  const int64_t n = bytes.request.ranks;
  std::vector<StepSource> sources; // of this rank, if it is an owner
  for (int64_t step = 1; step < n; ++step)
    for (int64_t rank = 0; rank < n; ++rank) {
      const int64_t owner = (rank + step) % n;
      if (!bytes.isOwner(owner))
        continue;
      const StepSource message = builder.send(rank, owner, bytes.input(round, owner));
      if (builder.isMine(owner))
        sources.push_back(message);
    }
  for (int64_t owner : bytes.owners)
    if (builder.isMine(owner)) {
      const Piece own = bytes.input(round, owner), result = bytes.result(round, owner);
      if (sources.empty())
        builder.copy(owner, own, result);
      sources.push_back(ScheduleBuilder::local(own));
      if (sources.size() > 1)
        builder.reduce(owner, result, sources);
    }
}

void gatherDirect(const OwnedBytes &bytes, Round round, ScheduleBuilder &builder) {
  const int64_t n = bytes.request.ranks;
  std::vector<ScheduleBuilder::Transfer> transfers;
  for (int64_t step = 1; step < n; ++step)
    for (int64_t owner : bytes.owners)
      transfers.push_back(
          {owner, bytes.given(round, owner), (owner + step) % n, bytes.gathered(round, owner)});
  builder.transferAll(transfers);
}

//===----------------------------------------------------------------------===//
// ring
//===----------------------------------------------------------------------===//

void reduceInRing(const OwnedBytes &bytes, Round round, Partials &partials,
                  ScheduleBuilder &builder) {
  const int64_t n = bytes.request.ranks;
  for (int64_t step = 1; step < n; ++step) {
    StepSource arriving; // at this rank, for the owner behind it by as many steps
    for (int64_t owner : bytes.owners) {
      const int64_t from = (owner + step) % n, to = (from + 1) % n;
      const Piece own = bytes.input(round, owner);
      const Piece sent = step == 1 || !builder.isMine(from) ? own : partials.at(from, round, owner);
      const StepSource message = builder.send(from, to, sent);
      if (builder.isMine(to))
        arriving = message;
    }
    for (int64_t owner : bytes.owners)
      if (const int64_t to = (owner + step + 1) % n; builder.isMine(to))
        builder.reduce(to, partials.at(to, round, owner),
                       {arriving, ScheduleBuilder::local(bytes.input(round, owner))});
  }
}

void gatherInRing(const OwnedBytes &bytes, Round round, ScheduleBuilder &builder) {
  const int64_t n = bytes.request.ranks;
  for (int64_t step = 1; step < n; ++step) {
    std::vector<ScheduleBuilder::Transfer> transfers;
    for (int64_t owner : bytes.owners) {
      const Piece gathered = bytes.gathered(round, owner);
      transfers.push_back({(owner + step - 1) % n, step == 1 ? bytes.given(round, owner) : gathered,
                           (owner + step) % n, gathered});
    }
    builder.transferAll(transfers);
  }
}

//===----------------------------------------------------------------------===//
// tree and recursive doubling
//===----------------------------------------------------------------------===//

static int64_t powerOfTwoUpTo(int64_t n) {
  int64_t power = 1;
  while (power <= n / 2)
    power *= 2;
  return power;
}

// A rank's number v counts from the owner. Its children are v + 1, v + 2, v + 4, ... below the
// lowest bit of v.

void reduceInTree(const OwnedBytes &bytes, Round round, Partials &partials,
                  ScheduleBuilder &builder) {
  const int64_t n = bytes.request.ranks, owner = bytes.owners[0];
  const Piece own = bytes.input(round, owner);
  std::vector<StepSource> children; // of this rank
  auto rankOf = [&](int64_t v) { return (owner + v) % n; };
  auto reduce = [&](int64_t rank) {
    if (!builder.isMine(rank) || children.empty())
      return own;
    std::vector<StepSource> sources = children;
    sources.push_back(ScheduleBuilder::local(own));
    const Piece sum = partials.at(rank, round, owner);
    builder.reduce(rank, sum, sources);
    return sum;
  };
  for (int64_t bit = 1; bit < n; bit *= 2)
    for (int64_t v = bit; v < n; v += 2 * bit) {
      const int64_t from = rankOf(v), to = rankOf(v - bit);
      const StepSource message = builder.send(from, to, reduce(from));
      if (builder.isMine(to))
        children.push_back(message);
    }
  reduce(owner);
}

void gatherInTree(const OwnedBytes &bytes, Round round, ScheduleBuilder &builder) {
  const int64_t n = bytes.request.ranks, owner = bytes.owners[0];
  const Piece gathered = bytes.gathered(round, owner);
  for (int64_t bit = powerOfTwoUpTo(n); bit > 0; bit /= 2)
    for (int64_t v = 0; v + bit < n; v += 2 * bit)
      builder.transfer((owner + v) % n, v == 0 ? bytes.given(round, owner) : gathered,
                       (owner + v + bit) % n, gathered);
}

void gatherByDoubling(const OwnedBytes &bytes, Round round, ScheduleBuilder &builder) {
  const int64_t n = bytes.request.ranks;
  for (int64_t bit = 1; bit < n; bit *= 2) {
    std::vector<ScheduleBuilder::Transfer> transfers;
    for (int64_t rank = 0; rank < n; ++rank)
      for (int64_t i = 0; i < bit; ++i) {
        // Of its block, its own part first.
        const int64_t owner = rank ^ i, to = rank ^ bit;
        const Piece gathered = bytes.gathered(round, owner);
        transfers.push_back({rank, i == 0 ? bytes.given(round, owner) : gathered, to, gathered});
      }
    builder.transferAll(transfers);
  }
}

namespace {

/// The sums of one chunk in an all_reduce by recursive doubling. Those of a rank take turns between
/// scratch memory and the output, so that the last one is in the output.
class DoubledChunk {
public:
  DoubledChunk(ScheduleBuilder &builder, bool inPlace, Piece input, Piece scratch)
      : builder(builder), inPlace(inPlace), input(input), scratch(scratch), output(input) {
    output.space = Space::output;
  }

  /// What a rank sends when it makes `sums` more sums, and where the next one goes.
  Piece current(int64_t rank, int64_t done, int64_t sums) {
    if (done > 0)
      return target(sums + 1);
    // A partner reads the input while the sum is written.
    if (inPlace && target(sums) == output) {
      builder.copy(rank, input, scratch);
      return scratch;
    }
    return input;
  }
  Piece target(int64_t sums) const { return sums % 2 == 1 ? output : scratch; }

  ScheduleBuilder &builder;
  const bool inPlace;
  const Piece input, scratch;
  Piece output;
};

} // namespace

void allReduceByDoubling(const ScheduleRequest &request, ScheduleBuilder &builder) {
  const int64_t n = request.ranks, doubling = powerOfTwoUpTo(n), beyond = n - doubling;
  int64_t exchanges = 0;
  for (int64_t bit = 1; bit < doubling; bit *= 2)
    ++exchanges;
  // Of the first ranks, pairs of neighbours act as one: the second one of a pair.
  auto rankOf = [&](int64_t i) { return i < beyond ? 2 * i + 1 : i + beyond; };
  for (uint32_t v = 0; v < request.values.size(); ++v) {
    const ScheduleValue &value = request.values[v];
    const int64_t length = chunkLength(request, value);
    Piece memory; // of this rank
    for (int64_t rank = 0; rank < n; ++rank)
      if (builder.isMine(rank))
        memory = builder.scratch(rank, v, value.partBytes);
    for (int64_t begin = 0; begin < value.partBytes; begin += length) {
      const int64_t size = std::min(length, value.partBytes - begin);
      DoubledChunk chunk(builder, value.inPlace, {Space::input, v, begin, size},
                         {Space::scratch, v, memory.offset + begin, size});
      for (int64_t i = 0; i < beyond; ++i) {
        const StepSource message = builder.send(2 * i, 2 * i + 1, chunk.input);
        builder.reduce(2 * i + 1, chunk.target(exchanges + 1),
                       {message, ScheduleBuilder::local(chunk.input)});
      }
      int64_t left = exchanges;
      for (int64_t bit = 1; bit < doubling; bit *= 2, --left) {
        StepSource message; // to this rank
        Piece own;
        for (int64_t i = 0; i < doubling; ++i) {
          const int64_t rank = rankOf(i), partner = rankOf(i ^ bit);
          const int64_t done = exchanges - left + (i < beyond ? 1 : 0);
          const Piece sent = chunk.current(rank, done, left);
          const StepSource sentMessage = builder.send(rank, partner, sent);
          if (builder.isMine(rank))
            own = sent;
          if (builder.isMine(partner))
            message = sentMessage;
        }
        for (int64_t i = 0; i < doubling; ++i)
          builder.reduce(rankOf(i), chunk.target(left), {message, ScheduleBuilder::local(own)});
      }
      for (int64_t i = 0; i < beyond; ++i)
        builder.transfer(2 * i + 1, chunk.output, 2 * i, chunk.output);
    }
  }
}

void allReduceAtOnce(const ScheduleRequest &request, ScheduleBuilder &builder) {
  const int64_t n = request.ranks;
  for (uint32_t v = 0; v < request.values.size(); ++v) {
    const ScheduleValue &value = request.values[v];
    const int64_t length = chunkLength(request, value);
    Piece memory; // of this rank
    for (int64_t rank = 0; rank < n && value.inPlace && n > 1; ++rank)
      if (builder.isMine(rank))
        memory = builder.scratch(rank, v, value.partBytes);
    for (int64_t begin = 0; begin < value.partBytes; begin += length) {
      const int64_t size = std::min(length, value.partBytes - begin);
      const Piece input{Space::input, v, begin, size}, output{Space::output, v, begin, size};
      Piece sent = input;
      if (value.inPlace && n > 1) {
        // The others read it while the sum is written.
        sent = {Space::scratch, v, memory.offset + begin, size};
        for (int64_t rank = 0; rank < n; ++rank)
          builder.copy(rank, input, sent);
      }
      std::vector<StepSource> sources{ScheduleBuilder::local(sent)}; // of this rank
      for (int64_t step = 1; step < n; ++step)
        for (int64_t rank = 0; rank < n; ++rank) {
          const int64_t to = (rank + step) % n;
          const StepSource message = builder.send(rank, to, sent);
          if (builder.isMine(to))
            sources.push_back(message);
        }
      for (int64_t rank = 0; rank < n; ++rank)
        if (n > 1)
          builder.reduce(rank, output, sources);
        else
          builder.copy(rank, input, output);
    }
  }
}

} // namespace braid::runtime
