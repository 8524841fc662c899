//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Engine.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace braid::runtime {

/// What a rank has just reduced is still in a cache when the others read it, and ranks that share a
/// core do not wait for each other often.
static constexpr int64_t kChunkBytes = int64_t(1) << 20;
/// An all_reduce of two ranks of up to so many bytes takes one step instead of two. They move as
/// many bytes then as in two steps; more ranks would move more.
static constexpr int64_t kOneShotBytes = int64_t(128) << 10;

/// Copies around the caches, for what does not stay in them: an ordinary store reads the memory
/// first.
static void copyPastCaches(std::byte *dest, const std::byte *source, int64_t bytes) {
#if defined(__x86_64__)
  constexpr int64_t kLine = 64;
  const auto skip = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(dest) % kLine);
  if (bytes >= skip + kLine) {
    std::memcpy(dest, source, static_cast<size_t>(skip));
    dest += skip, source += skip, bytes -= skip;
    for (; bytes >= kLine; dest += kLine, source += kLine, bytes -= kLine) {
      __m128i line[4];
      for (int i = 0; i < 4; ++i)
        line[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(source) + i);
      for (int i = 0; i < 4; ++i)
        _mm_stream_si128(reinterpret_cast<__m128i *>(dest) + i, line[i]);
    }
    // These stores are not ordered with those of counters.
    _mm_sfence();
  }
#endif
  std::memcpy(dest, source, static_cast<size_t>(bytes));
}

/// Of the last-level cache; where the system does not tell, too much to be exceeded.
static int64_t cacheBytes() {
  const int64_t bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? bytes : INT64_MAX;
}

ScheduleRequest requestOf(const Collective &c, int64_t ranks) {
  ScheduleRequest request;
  request.kind = c.kind;
  request.ranks = ranks;
  request.root = c.root;
  request.pairs = c.pairs;
  request.chunkBytes = kChunkBytes;
  int64_t bytes = 0;
  bool inPlace = false;
  for (const CollectiveValue &value : c.values) {
    ScheduleValue one{value.bytes(), byteSize(value.dtype), false};
    one.inPlace = c.kind == CollectiveKind::allReduce && value.input.offset == value.output.offset;
    inPlace |= one.inPlace;
    bytes += one.partBytes;
    request.values.push_back(one);
  }
  if (c.kind == CollectiveKind::allReduce && !inPlace && ranks == 2 && bytes <= kOneShotBytes)
    request.algorithm = ScheduleAlgorithm::oneShot;
  return request;
}

Result<CollectivePlan> makePlan(const ScheduleRequest &request, int64_t position) {
  CollectivePlan plan;
  ASSIGN_OR_RETURN(plan.schedule, makeSchedule(request, position));
  plan.sends.resize(static_cast<size_t>(request.ranks));
  plan.takes.assign(plan.sends.size(), 0);
  for (uint32_t i = 0; i < plan.schedule.steps.size(); ++i) {
    const ScheduleStep &step = plan.schedule.steps[i];
    if (step.kind == StepKind::send)
      plan.sends[static_cast<size_t>(step.peer)].push_back(i);
    for (const StepSource &source : plan.schedule.sourcesOf(step))
      if (source.isMessage())
        ++plan.takes[static_cast<size_t>(source.peer)];
  }
  int64_t touched = 0; // by all ranks
  for (const ScheduleValue &value : request.values)
    touched += value.partBytes * (request.inputParts() + request.outputParts()) * request.ranks;
  plan.exceedsCaches = touched > cacheBytes();
  return plan;
}

void DirectGroup::reset() {
  for (size_t i = 0; i < ranks.size(); ++i) {
    arrivals[i].count = 0;
    arrivals[i].arrivals.set(0);
    arrivals[i].awaited.store(-1, std::memory_order_relaxed);
  }
  for (size_t i = 0; i < ranks.size() * ranks.size(); ++i) {
    pairs[i].sentBefore = pairs[i].takenBefore = 0;
    pairs[i].sent.set(0);
    pairs[i].taken.set(0);
  }
}

bool Engine::fail(const std::string &message, Code code) {
  control.fail(Status::error("rank ", heap.rank, ": ", message, code));
  return false;
}

bool Engine::run() {
  if (Status counts = checkCounts(); !counts.ok())
    return fail(counts.message(), counts.code());
  if (!meet())
    return false;
  for (const ScheduleStep &step : plan.schedule.steps)
    if (!perform(step))
      return false;
  atSchedulePoint("exchanged");
  // A rank that left now could overwrite memory that a slower peer still reads.
  for (int64_t peer = 0; peer < ranks; ++peer)
    if (const size_t sent = plan.sends[static_cast<size_t>(peer)].size();
        sent > 0 && !awaitTaken(peer, static_cast<uint32_t>(sent - 1)))
      return false;
  for (int64_t peer = 0; peer < ranks; ++peer) {
    group.pair(c.position, peer).sentBefore +=
        static_cast<uint32_t>(plan.sends[static_cast<size_t>(peer)].size());
    group.pair(peer, c.position).takenBefore += plan.takes[static_cast<size_t>(peer)];
  }
  return true;
}

const Collective &Engine::collectiveOf(int64_t position) const {
  const Arrival &arrival = group.arrivals[position];
  return *arrival.reached[group.arrivals[c.position].count % 2];
}

bool Engine::meet() {
  Arrival &mine = group.arrivals[c.position];
  const uint32_t step = ++mine.count;
  mine.reached[step % 2] = &c;
  mine.awaited.store(-1, std::memory_order_relaxed);
  atSchedulePoint("reached a collective");
  mine.arrivals.set(step);
  for (int64_t i = 0; i < ranks; ++i) {
    const int64_t rank = group.ranks[static_cast<size_t>(i)];
    if (i == c.position)
      continue;
    if (!control.wait(group.arrivals[i].arrivals, step, self, Waiting::peer, rank))
      return false;
    const Collective &other = collectiveOf(i);
    const bool alike = agree(c, other);
    if (!alike || !isSameOperation(c, other))
      return fail(signature(c) + " does not match " + signature(other) + " of rank " +
                      std::to_string(rank) +
                      (alike ? ", as these ranks reach them in different orders" : ""),
                  Code::rankFailed);
  }
  return !control.failed();
}

bool Engine::await(int64_t peer, bool taken, uint32_t target) {
  Counter &counter = group.awaitedCounter(c.position, peer, taken);
  if (counter.reached(target))
    return true;
  Arrival &mine = group.arrivals[c.position];
  mine.awaitsTaken.store(taken, std::memory_order_relaxed);
  mine.target.store(target, std::memory_order_relaxed);
  mine.awaited.store(peer, std::memory_order_relaxed);
  return control.wait(counter, target, self, Waiting::peer, group.ranks[static_cast<size_t>(peer)]);
}

bool Engine::awaitTaken(int64_t peer, uint32_t message) {
  return await(peer, true, group.pair(c.position, peer).sentBefore + message + 1);
}

bool Engine::awaitSent(int64_t peer, uint32_t message) {
  return await(peer, false, group.pair(peer, c.position).takenBefore + message + 1);
}

bool Engine::perform(const ScheduleStep &step) {
  // Other steps are done, as they come before.
  for (uint32_t other : plan.schedule.dependenciesOf(step))
    if (const ScheduleStep &send = plan.schedule.steps[other];
        send.kind == StepKind::send && !awaitTaken(send.peer, send.message))
      return false;
  if (step.kind == StepKind::send) {
    DirectPair &pair = group.pair(c.position, step.peer);
    pair.sent.set(pair.sentBefore + step.message + 1);
    return true;
  }
  const Items<StepSource> sources = plan.schedule.sourcesOf(step);
  for (const StepSource &source : sources)
    if (source.isMessage() && !awaitSent(source.peer, source.message))
      return false;
  if (step.kind == StepKind::reduce)
    reduce(step);
  else if (step.kind == StepKind::clear)
    clear(step.piece, 0, step.piece.bytes);
  else if (step.counted)
    copyCounted(step);
  else
    copy(step, 0, step.piece.bytes);
  for (const StepSource &source : sources)
    if (source.isMessage()) {
      DirectPair &pair = group.pair(source.peer, c.position);
      pair.taken.set(pair.takenBefore + source.message + 1);
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

Engine::Place Engine::placeOf(const Collective &owner, int64_t position, const Piece &piece) const {
  if (piece.space == Space::scratch)
    return {piece.space, owner.plan->scratch + piece.offset, -1};
  const CollectiveValue &value = owner.values[piece.value];
  const bool isInput = piece.space == Space::input;
  const int64_t part = piece.offset / value.bytes();
  return {piece.space,
          heap.peer(group.ranks[static_cast<size_t>(position)],
                    isInput ? value.input.offset : value.output.offset) +
              part * (isInput ? value.sourceStep : value.destStep),
          piece.offset % value.bytes()};
}

Engine::Place Engine::placeOf(const StepSource &source) const {
  if (!source.isMessage())
    return placeOf(c, c.position, source.piece);
  const Collective &sender = collectiveOf(source.peer);
  const uint32_t step = sender.plan->sends[static_cast<size_t>(c.position)][source.message];
  return placeOf(sender, source.peer, sender.plan->schedule.steps[step].piece);
}

/// Calls visit(at, bytes, address) for the runs of the bytes [begin, end) of a piece: what is
/// `at` bytes behind the piece's first byte lies at address(place).
template <typename Visit>
static void forEachRunOf(const CollectiveValue &value, int64_t partByte, int64_t begin, int64_t end,
                         Visit visit) {
  if (partByte < 0) // packed on all sides
    return visit(begin, end - begin, [&](const auto &place) { return place.base + begin; });
  int64_t at = begin;
  forEachRun(value.part, partByte + begin, partByte + end,
             [&](int64_t source, int64_t dest, int64_t bytes) {
               visit(at, bytes, [&](const auto &place) {
                 return place.base + (place.space == Space::input    ? source
                                      : place.space == Space::output ? dest
                                                                     : at);
               });
               at += bytes;
             });
}

void Engine::copy(const ScheduleStep &step, int64_t begin, int64_t end) {
  const Place from = placeOf(plan.schedule.sourcesOf(step)[0]);
  const Place to = placeOf(c, c.position, step.piece);
  forEachRunOf(valueOf(step.piece), std::max(from.partByte, to.partByte), begin, end,
               [&](int64_t, int64_t bytes, const auto &address) {
                 auto *dest = const_cast<std::byte *>(address(to));
                 // In a group of one rank both may be the same memory.
                 const std::byte *source = address(from);
                 if (source != dest && plan.exceedsCaches)
                   copyPastCaches(dest, source, bytes);
                 else if (source != dest)
                   std::memcpy(dest, source, static_cast<size_t>(bytes));
               });
}

void Engine::clear(const Piece &piece, int64_t begin, int64_t end) const {
  const Place to = placeOf(c, c.position, piece);
  forEachRunOf(valueOf(piece), to.partByte, begin, end,
               [&](int64_t, int64_t bytes, const auto &address) {
                 std::memset(const_cast<std::byte *>(address(to)), 0, static_cast<size_t>(bytes));
               });
}

void Engine::reduce(const ScheduleStep &step) {
  const CollectiveValue &value = valueOf(step.piece);
  const Items<StepSource> sources = plan.schedule.sourcesOf(step);
  const Arrival &mine = group.arrivals[c.position];
  const Place to = placeOf(c, c.position, step.piece);
  int64_t partByte = to.partByte;
  for (size_t i = 0; i < sources.size(); ++i) {
    mine.places[i] = placeOf(sources[i]);
    partByte = std::max(partByte, mine.places[i].partByte);
  }
  forEachRunOf(value, partByte, 0, step.piece.bytes,
               [&](int64_t, int64_t bytes, const auto &address) {
                 for (size_t i = 0; i < sources.size(); ++i)
                   mine.sources[i] = address(mine.places[i]);
                 kernels.reduce(static_cast<int>(c.reduce), static_cast<int>(value.dtype),
                                const_cast<std::byte *>(address(to)), mine.sources,
                                static_cast<int>(sources.size()), bytes / byteSize(value.dtype));
               });
}

//===----------------------------------------------------------------------===//
// Counts of an all_to_all_v
//===----------------------------------------------------------------------===//

Status Engine::checkCounts() const {
  if (c.kind != CollectiveKind::allToAllV)
    return {};
  return checkOwnCounts(c, heap.peer(heap.rank, c.values.back().input.offset));
}

void Engine::copyCounted(const ScheduleStep &step) {
  const CollectiveValue &value = valueOf(step.piece), &counts = c.values.back();
  const CountedBlocks blocks = blocksOf(value, ranks);
  const int64_t blockBytes = blocks.rows * blocks.rowBytes;
  // The counts of a message have been received before it; those of the rank's own part are its own.
  const StepSource &source = plan.schedule.sourcesOf(step)[0];
  const Piece &counted = source.isMessage() ? step.piece : source.piece;
  const StridedView &view = source.isMessage() ? counts.output : counts.input;
  const int64_t part = counted.offset / value.bytes();
  const int64_t first = counted.offset % value.bytes();
  for (int64_t begin = 0; begin < step.piece.bytes;) {
    const int64_t block = (first + begin) / blockBytes, inBlock = (first + begin) % blockBytes;
    const int64_t end = std::min(step.piece.bytes, begin + blockBytes - inBlock);
    // The sender has checked its counts. A program that writes them concurrently gets wrong rows,
    // but only rows of the block.
    const int64_t rows =
        std::clamp<int64_t>(countOfBlock(heap.peer(heap.rank, view.offset), counts.dtype,
                                         view.strides[0], part * blocks.blocks + block),
                            0, blocks.rows);
    const int64_t middle = std::clamp(begin - inBlock + rows * blocks.rowBytes, begin, end);
    if (begin < middle)
      copy(step, begin, middle);
    if (middle < end)
      clear(step.piece, middle, end);
    begin = end;
  }
}

} // namespace braid::runtime
