//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ScheduleBuilder.h"

#include <algorithm>

namespace braid::runtime {

void ByteUses::splitAt(int64_t byte) {
  auto next = extents.upper_bound(byte);
  if (next == extents.begin())
    return;
  auto &[begin, extent] = *std::prev(next);
  if (begin == byte || extent.end <= byte)
    return;
  Extent behind = extent;
  extent.end = byte;
  extents.emplace_hint(next, byte, std::move(behind));
}

void ByteUses::cover(int64_t begin, int64_t end) {
  splitAt(begin);
  splitAt(end);
  auto at = extents.lower_bound(begin);
  while (begin < end) {
    if (at == extents.end() || at->first > begin) {
      const int64_t until = at == extents.end() ? end : std::min(end, at->first);
      at = extents.emplace_hint(at, begin, Extent{until, kNone, {}});
    }
    begin = at->second.end;
    ++at;
  }
}

void ByteUses::read(int64_t begin, int64_t end, uint32_t step, std::vector<uint32_t> &after) {
  cover(begin, end);
  for (auto at = extents.find(begin); at != extents.end() && at->first < end; ++at) {
    Extent &extent = at->second;
    if (extent.writer != kNone && extent.writer != step)
      after.push_back(extent.writer);
    if (extent.readers.empty() || extent.readers.back() != step)
      extent.readers.push_back(step);
  }
}

void ByteUses::write(int64_t begin, int64_t end, uint32_t step, std::vector<uint32_t> &after) {
  cover(begin, end);
  auto first = extents.find(begin), at = first;
  for (; at != extents.end() && at->first < end; ++at) {
    const Extent &extent = at->second;
    for (uint32_t reader : extent.readers)
      if (reader != step)
        after.push_back(reader);
    // Readers come after the writer themselves.
    if (extent.writer != kNone && extent.writer != step && extent.readers.empty())
      after.push_back(extent.writer);
  }
  extents.erase(first, at);
  extents[begin] = {end, step, {}};
}

Piece ScheduleBuilder::scratch(int64_t rank, uint32_t value, int64_t bytes) {
  constexpr int64_t kLine = 64;
  int64_t &end = used[static_cast<size_t>(rank)];
  const int64_t offset = end;
  end += (bytes + kLine - 1) / kLine * kLine;
  if (isMine(rank))
    schedule.scratchBytes = end;
  return {Space::scratch, value, offset, bytes};
}

StepSource ScheduleBuilder::send(int64_t from, int64_t to, const Piece &piece, bool counted) {
  if (piece.bytes == 0 || !isMine(from))
    return expect(from, to, piece);
  ScheduleStep step;
  step.kind = StepKind::send;
  step.counted = counted;
  step.piece = piece;
  step.peer = to;
  step.message = sentTo[static_cast<size_t>(to)]++;
  append(step, {});
  return {from, step.message, piece};
}

StepSource ScheduleBuilder::expect(int64_t from, int64_t to, const Piece &piece) {
  const bool arrives = piece.bytes > 0 && isMine(to);
  return {from, arrives ? receivedFrom[static_cast<size_t>(from)]++ : 0, piece};
}

void ScheduleBuilder::transferAll(const std::vector<Transfer> &transfers) {
  std::vector<StepSource> messages;
  messages.reserve(transfers.size());
  for (const Transfer &one : transfers)
    messages.push_back(send(one.from, one.to, one.piece, one.counted));
  for (size_t i = 0; i < transfers.size(); ++i)
    receive(transfers[i].to, messages[i], transfers[i].into, transfers[i].counted);
}

void ScheduleBuilder::receive(int64_t rank, const StepSource &message, const Piece &into,
                              bool counted) {
  if (!isMine(rank) || into.bytes == 0)
    return;
  ScheduleStep step;
  step.kind = StepKind::receive;
  step.counted = counted;
  step.piece = into;
  append(step, {message});
}

void ScheduleBuilder::reduce(int64_t rank, const Piece &into, std::vector<StepSource> sources) {
  if (!isMine(rank) || into.bytes == 0)
    return;
  std::sort(sources.begin(), sources.end(), [&](const auto &a, const auto &b) {
    return (a.isMessage() ? a.peer : rank) < (b.isMessage() ? b.peer : rank);
  });
  ScheduleStep step;
  step.kind = StepKind::reduce;
  step.piece = into;
  append(step, sources);
}

void ScheduleBuilder::copy(int64_t rank, const Piece &from, const Piece &into, bool counted) {
  if (!isMine(rank) || into.bytes == 0)
    return;
  // In place, the bytes are there.
  if (request.values[into.value].inPlace && from.space == Space::input &&
      into.space == Space::output)
    return;
  ScheduleStep step;
  step.kind = StepKind::copy;
  step.counted = counted;
  step.piece = into;
  append(step, {local(from)});
}

void ScheduleBuilder::clear(int64_t rank, const Piece &piece) {
  if (!isMine(rank) || piece.bytes == 0)
    return;
  ScheduleStep step;
  step.kind = StepKind::clear;
  step.piece = piece;
  append(step, {});
}

ByteUses &ScheduleBuilder::usesOf(const Piece &piece) {
  switch (piece.space) {
  case Space::scratch:
    return uses[{Space::scratch, 0}]; // one memory for all values
  case Space::input:
    if (!request.values[piece.value].inPlace)
      break;
    [[fallthrough]];
  case Space::output:
    return uses[{Space::output, piece.value}];
  }
  return uses[{Space::input, piece.value}];
}

Piece ScheduleBuilder::countsOf(const Piece &piece) const {
  const auto last = static_cast<uint32_t>(request.values.size() - 1);
  const int64_t part = piece.offset / request.values[piece.value].partBytes;
  const int64_t bytes = request.values[last].partBytes;
  return {piece.space, last, part * bytes, bytes};
}

void ScheduleBuilder::append(ScheduleStep step, const std::vector<StepSource> &sources) {
  const auto number = static_cast<uint32_t>(schedule.steps.size());
  std::vector<uint32_t> after;
  auto reads = [&](const Piece &piece) {
    usesOf(piece).read(piece.offset, piece.end(), number, after);
  };
  if (step.kind == StepKind::send)
    reads(step.piece);
  for (const StepSource &source : sources)
    if (!source.isMessage())
      reads(source.piece);
  if (step.counted)
    reads(countsOf(step.kind == StepKind::copy ? sources[0].piece : step.piece));
  if (step.kind != StepKind::send)
    usesOf(step.piece).write(step.piece.offset, step.piece.end(), number, after);
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  step.firstSource = static_cast<uint32_t>(schedule.sources.size());
  step.numSources = static_cast<uint32_t>(sources.size());
  step.firstDependency = static_cast<uint32_t>(schedule.dependencies.size());
  step.numDependencies = static_cast<uint32_t>(after.size());
  schedule.sources.insert(schedule.sources.end(), sources.begin(), sources.end());
  schedule.dependencies.insert(schedule.dependencies.end(), after.begin(), after.end());
  schedule.steps.push_back(step);
}

} // namespace braid::runtime
