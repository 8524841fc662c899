//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where the pieces of a schedule lie, and what steps do with their bytes.
//
//===----------------------------------------------------------------------===//
#include "Engine.h"
#include "Staging.h"

#include <algorithm>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace braid::runtime {

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

Engine::Place Engine::placeOf(const Piece &piece, std::byte *input, std::byte *output,
                              std::byte *scratchMemory) const {
  if (piece.space == Space::scratch)
    return {piece.space, scratchMemory + piece.offset, -1};
  const CollectiveValue &value = valueOf(piece);
  const bool isInput = piece.space == Space::input;
  // Of an exchange, a value may be empty.
  const int64_t part = piece.offset / std::max<int64_t>(value.bytes(), 1);
  return {piece.space,
          (isInput ? input : output) + part * (isInput ? value.sourceStep : value.destStep),
          piece.offset - part * value.bytes()};
}

Engine::Place Engine::placeOf(const Piece &piece) const {
  return placeOf(piece, memory[piece.value].input, memory[piece.value].output, scratch);
}

Engine::Place Engine::placeOf(uint32_t number, uint32_t message) const {
  const StepSource &source = plan->schedule.sources[number];
  if (!source.isMessage())
    return placeOf(source.piece);
  const auto peer = static_cast<size_t>(source.peer);
  if (plan->pairs[peer] == PairKind::staged) {
    const Staging &staging = *member->staging;
    const Staging::Message &sent = staging.from(peer, takesBefore[peer] + source.message);
    return {Space::scratch, staging.data(peer, sent), -1};
  }
  if (plan->pairs[peer] == PairKind::link) {
    const LinkMessage *entry = posted[message];
    if (entry && entry->inLink)
      return {Space::scratch, entry->inLink, -1};
    // A message that came to its place is copied onto itself.
    return entry && entry->bufferBytes > 0 ? Place{Space::scratch, entry->data(), -1} : Place{};
  }
  // The peer stays in the collective until its message is taken.
  const Arrival::Reached &theirs = member->arrivals[peer]->at(sequence);
  const Piece &piece = plan->senderPieces[number];
  const SharedCollective::Value &value = sharedOf(source.peer).values()[piece.value];
  const int64_t rank = rankOf(source.peer);
  std::byte *theirScratch = theirs.scratch.load(std::memory_order_relaxed);
  return placeOf(piece, heap->peer(rank, value.input), heap->peer(rank, value.output),
                 theirScratch ? theirScratch + member->shift[peer] : nullptr);
}

/// Calls visit(at, bytes, address) for the runs of the bytes [begin, end) of a piece: what is
/// `at` bytes behind the piece's first byte lies at address(place).
template <typename Visit>
void Engine::forEachRunOf(const Piece &piece, int64_t partByte, int64_t begin, int64_t end,
                          Visit visit) const {
  if (partByte < 0) // packed on all sides
    return visit(begin, end - begin, [&](const auto &place) { return place.base + begin; });
  int64_t at = begin;
  forEachRun(valueOf(piece).part, partByte + begin, partByte + end,
             [&](int64_t source, int64_t dest, int64_t bytes) {
               visit(at, bytes, [&](const auto &place) {
                 return place.base + (place.space == Space::input    ? source
                                      : place.space == Space::output ? dest
                                                                     : at);
               });
               at += bytes;
             });
}

std::byte *Engine::inPlace(const Piece &piece) const {
  const Place place = placeOf(piece);
  std::byte *begin = nullptr;
  int64_t runs = 0;
  forEachRunOf(piece, place.partByte, 0, piece.bytes, [&](int64_t, int64_t, const auto &address) {
    if (runs++ == 0)
      begin = const_cast<std::byte *>(address(place));
  });
  return runs == 1 ? begin : nullptr;
}

void Engine::copy(const Piece &piece, const Place &from, const Place &to, int64_t begin,
                  int64_t end) {
  if (begin == end || !from.base)
    return;
  forEachRunOf(piece, std::max(from.partByte, to.partByte), begin, end,
               [&](int64_t, int64_t bytes, const auto &address) {
                 auto *dest = const_cast<std::byte *>(address(to));
                 // In a group of one rank both may be the same memory.
                 const std::byte *source = address(from);
                 // A message, and scratch memory, is read soon.
                 if (source != dest && plan->exceedsCaches && to.partByte >= 0)
                   copyPastCaches(dest, source, bytes);
                 else if (source != dest)
                   std::memcpy(dest, source, static_cast<size_t>(bytes));
               });
}

void Engine::clear(const Piece &piece, int64_t begin, int64_t end) const {
  if (begin == end)
    return;
  const Place to = placeOf(piece);
  forEachRunOf(piece, to.partByte, begin, end, [&](int64_t, int64_t bytes, const auto &address) {
    std::memset(const_cast<std::byte *>(address(to)), 0, static_cast<size_t>(bytes));
  });
}

void Engine::reduce(const ScheduleStep &step, uint32_t message) {
  const Place to = placeOf(step.piece);
  int64_t partByte = to.partByte;
  for (uint32_t i = 0; i < step.numSources; ++i) {
    const StepSource &source = plan->schedule.sources[step.firstSource + i];
    places[i] = placeOf(step.firstSource + i, message);
    if (source.isMessage() && kindOf(source.peer) != PairKind::direct)
      ++message;
    partByte = std::max(partByte, places[i].partByte);
  }
  const DType dtype = valueOf(step.piece).dtype;
  forEachRunOf(step.piece, partByte, 0, step.piece.bytes,
               [&](int64_t, int64_t bytes, const auto &address) {
                 for (uint32_t i = 0; i < step.numSources; ++i)
                   addresses[i] = address(places[i]);
                 auto *dest = const_cast<std::byte *>(address(to));
                 const auto sources = addresses.begin(), end = sources + step.numSources;
                 const bool goesPast = plan->exceedsCaches && to.partByte >= 0 &&
                                       std::find(sources, end, dest) == end;
                 (goesPast ? kernels.reducePastCaches : kernels.reduce)(
                     static_cast<int>(c->reduce), static_cast<int>(dtype), dest, addresses.data(),
                     static_cast<int>(step.numSources), bytes / byteSize(dtype));
               });
}

//===----------------------------------------------------------------------===//
// Counts of an all_to_all_v
//===----------------------------------------------------------------------===//

Status Engine::checkCounts() const {
  return c->kind == CollectiveKind::allToAllV ? checkOwnCounts(*c, memory.back().input) : Status();
}

template <typename Visit> void Engine::forEachBlock(const ScheduleStep &step, Visit visit) const {
  const CollectiveValue &value = valueOf(step.piece), &counts = c->values.back();
  const CountedBlocks blocks = blocksOf(value, static_cast<int64_t>(isCompared.size()));
  const int64_t blockBytes = blocks.rows * blocks.rowBytes;
  // The counts of a message have been received before it; those of what a rank sends, and of its
  // own part, are its own.
  const bool isOwn = step.kind == StepKind::send || !plan->schedule.sourcesOf(step)[0].isMessage();
  const Piece &counted =
      step.kind != StepKind::send && isOwn ? plan->schedule.sourcesOf(step)[0].piece : step.piece;
  const std::byte *own = isOwn ? memory.back().input : memory.back().output;
  const int64_t stride = (isOwn ? counts.input : counts.output).strides[0];
  const int64_t part = counted.offset / value.bytes(), first = counted.offset % value.bytes();
  int64_t packed = 0;
  for (int64_t begin = 0; begin < step.piece.bytes;) {
    const int64_t block = (first + begin) / blockBytes, inBlock = (first + begin) % blockBytes;
    const int64_t end = std::min(step.piece.bytes, begin + blockBytes - inBlock);
    // The sender has checked its counts. A program that writes them concurrently gets wrong rows,
    // but only rows of the block.
    const int64_t rows = std::clamp<int64_t>(
        countOfBlock(own, counts.dtype, stride, part * blocks.blocks + block), 0, blocks.rows);
    const int64_t middle = std::clamp(begin - inBlock + rows * blocks.rowBytes, begin, end);
    visit(begin, middle, end, packed);
    packed += middle - begin;
    begin = end;
  }
}

int64_t Engine::countedBytes(const ScheduleStep &step) const {
  int64_t bytes = 0;
  forEachBlock(step,
               [&](int64_t begin, int64_t middle, int64_t, int64_t) { bytes += middle - begin; });
  return bytes;
}

void Engine::copyCounted(const ScheduleStep &step, const Place &from, const Place &to) {
  forEachBlock(step, [&](int64_t begin, int64_t middle, int64_t end, int64_t packed) {
    Place rows = from;
    if (from.base && from.partByte < 0)
      rows.base += packed - begin;
    copy(step.piece, rows, to, begin, middle);
    clear(step.piece, middle, end);
  });
}

void Engine::packCounted(const ScheduleStep &step, const Place &from, const Place &packed) {
  forEachBlock(step, [&](int64_t begin, int64_t middle, int64_t, int64_t at) {
    Place rows = packed;
    rows.base += at - begin;
    copy(step.piece, from, rows, begin, middle);
  });
}

} // namespace braid::runtime
