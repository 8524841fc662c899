//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MessageEngine.h"

#include "CollectiveParts.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

/// In chunks of which several are under way, one link is never idle.
static constexpr int64_t kChunkBytes = int64_t(256) << 10;
/// For the end of a link whose messages do not end by themselves.
static constexpr int64_t kCloseNs = 500000000;
/// Message numbers have 16 bits of a tag.
static constexpr size_t kMostMessages = size_t(1) << 16;

static ScheduleRequest requestOf(const Collective &c) {
  ScheduleRequest request;
  request.kind = c.kind;
  request.ranks = static_cast<int64_t>(c.group->ranks.size());
  request.root = c.root;
  request.pairs = c.pairs;
  request.chunkBytes = kChunkBytes;
  for (const CollectiveValue &value : c.values) {
    ScheduleValue one{value.bytes(), byteSize(value.dtype), false};
    one.inPlace = c.kind == CollectiveKind::allReduce && value.input.offset == value.output.offset;
    request.values.push_back(one);
    // Fewer messages of a large value.
    while (one.partBytes / request.chunkBytes >= static_cast<int64_t>(kMostMessages / 4))
      request.chunkBytes *= 2;
  }
  return request;
}

Result<std::unique_ptr<MessagePlan>> MessagePlan::create(const Collective &c, uint64_t tag) {
  auto plan = std::make_unique<MessagePlan>();
  plan->tag = tag;
  ASSIGN_OR_RETURN(plan->schedule, makeSchedule(requestOf(c), c.position));
  plan->scratch.resize(static_cast<size_t>(plan->schedule.scratchBytes));
  plan->steps.resize(plan->schedule.steps.size());
  size_t mostSources = 0;
  auto add = [&](size_t step, int64_t peer, uint32_t number, int64_t bytes) -> Status {
    if (number >= kMostMessages)
      return Status::error("more than ", kMostMessages, " messages between two ranks");
    plan->steps[step].messages.push_back(plan->messages.size());
    plan->messages.push_back(std::make_unique<Message>());
    Message &message = *plan->messages.back();
    message.step = static_cast<uint32_t>(step);
    message.peer = peer;
    message.bytes = bytes;
    message.number = number;
    message.staging.resize(static_cast<size_t>(bytes));
    return {};
  };
  for (size_t i = 0; i < plan->steps.size(); ++i) {
    const ScheduleStep &step = plan->schedule.steps[i];
    if (step.kind == StepKind::send)
      RETURN_IF_ERROR(add(i, step.peer, step.message, step.piece.bytes));
    const Items<StepSource> sources = plan->schedule.sourcesOf(step);
    mostSources = std::max(mostSources, sources.size());
    for (const StepSource &source : sources)
      if (source.isMessage())
        RETURN_IF_ERROR(add(i, source.peer, source.message, source.piece.bytes));
  }
  plan->sources.resize(mostSources);
  return plan;
}

uint64_t MessageEngine::tagOf(const Message &message) const {
  return plan.tag | (static_cast<uint64_t>(plan.runs & 0xffff) << 16) | message.number;
}

void MessageEngine::begin() {
  ++plan.runs;
  remaining = plan.steps.size();
  for (auto &step : plan.steps)
    step.isDone = false;
  for (auto &message : plan.messages)
    message->isPosted = false;
  // Before anything is sent, so that what comes finds its place.
  for (size_t i = 0; i < plan.steps.size(); ++i)
    post(i);
}

void MessageEngine::post(size_t number) {
  const ScheduleStep &step = plan.schedule.steps[number];
  if (step.kind == StepKind::send)
    return;
  for (size_t m : plan.steps[number].messages) {
    Message &message = *plan.messages[m];
    void *to = message.staging.data();
    // What is only written may come to its place, once nothing before it uses the place.
    if (step.kind == StepKind::receive && inPlace(step.piece)) {
      if (!areDependenciesDone(step))
        continue;
      to = inPlace(step.piece);
    }
    if (!message.isPosted)
      link.receive(message.transfer, rankOf(message.peer), tagOf(message), to,
                   static_cast<size_t>(message.bytes));
    message.isPosted = true;
  }
}

bool MessageEngine::areDependenciesDone(const ScheduleStep &step) const {
  const Items<uint32_t> dependencies = plan.schedule.dependenciesOf(step);
  return std::all_of(dependencies.begin(), dependencies.end(),
                     [&](uint32_t other) { return plan.steps[other].isDone; });
}

Status MessageEngine::advance() {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      if (plan.steps[i].isDone)
        continue;
      ASSIGN_OR_RETURN(bool done, perform(i));
      if (!done)
        continue;
      plan.steps[i].isDone = moved = true;
      --remaining;
    }
  }
  return {};
}

Result<bool> MessageEngine::perform(size_t number) {
  const ScheduleStep &step = plan.schedule.steps[number];
  MessagePlan::StepState &state = plan.steps[number];
  const bool isReady = areDependenciesDone(step);
  if (step.kind == StepKind::send) {
    Message &message = *plan.messages[state.messages[0]];
    if (!message.isPosted && isReady) {
      const std::byte *from = inPlace(step.piece);
      if (!from) {
        pack(step.piece, message.staging.data());
        from = message.staging.data();
      }
      link.send(message.transfer, rankOf(step.peer), tagOf(message), from,
                static_cast<size_t>(message.bytes));
      message.isPosted = true;
    }
    if (message.isPosted && message.transfer.done())
      RETURN_IF_ERROR(message.transfer.status());
    return message.isPosted && message.transfer.done();
  }
  if (isReady)
    post(number);
  bool isHere = true;
  for (size_t m : state.messages) {
    const Message &message = *plan.messages[m];
    isHere = isHere && message.isPosted && message.transfer.done();
    if (message.isPosted && message.transfer.done())
      RETURN_IF_ERROR(message.transfer.status());
  }
  if (!isReady || !isHere)
    return false;
  switch (step.kind) {
  case StepKind::send:
    break;
  case StepKind::receive:
    if (!inPlace(step.piece))
      unpack(step.piece, plan.messages[state.messages[0]]->staging.data());
    break;
  case StepKind::reduce:
    reduce(step, state);
    break;
  case StepKind::copy: {
    const Piece &from = plan.schedule.sourcesOf(step)[0].piece;
    int64_t at = 0; // runs of both may end anywhere
    forEachRunOf(from, 0, from.bytes, [&](std::byte *source, int64_t bytes) {
      forEachRunOf(step.piece, at, at + bytes, [&](std::byte *to, int64_t part) {
        if (to != source)
          std::memcpy(to, source, static_cast<size_t>(part));
        source += part;
      });
      at += bytes;
    });
    break;
  }
  case StepKind::clear:
    forEachRunOf(step.piece, 0, step.piece.bytes, [](std::byte *at, int64_t bytes) {
      std::memset(at, 0, static_cast<size_t>(bytes));
    });
    break;
  }
  if (step.counted)
    clearUncounted(step);
  return true;
}

void MessageEngine::reduce(const ScheduleStep &step, const MessagePlan::StepState &state) {
  const CollectiveValue &value = c.values[step.piece.value];
  const Items<StepSource> sources = plan.schedule.sourcesOf(step);
  // In the runs of what is written; local sources have the same runs or are packed.
  int64_t at = 0;
  forEachRunOf(step.piece, 0, step.piece.bytes, [&](std::byte *to, int64_t whole) {
    for (int64_t begin = at; begin < at + whole;) {
      int64_t bytes = at + whole - begin;
      size_t message = 0;
      for (size_t i = 0; i < sources.size(); ++i) {
        if (sources[i].isMessage()) {
          plan.sources[i] = plan.messages[state.messages[message++]]->staging.data() + begin;
          continue;
        }
        // As far as this source is one run.
        bool isFirst = true;
        forEachRunOf(sources[i].piece, begin, begin + bytes, [&](std::byte *from, int64_t run) {
          if (isFirst) {
            plan.sources[i] = from;
            bytes = std::min(bytes, run);
          }
          isFirst = false;
        });
      }
      kernels.reduce(static_cast<int>(c.reduce), static_cast<int>(value.dtype), to + (begin - at),
                     plan.sources.data(), static_cast<int>(sources.size()),
                     bytes / byteSize(value.dtype));
      begin += bytes;
    }
    at += whole;
  });
}

int64_t MessageEngine::awaitedRank() const {
  for (const auto &message : plan.messages)
    if (message->isPosted && !message->transfer.done())
      return rankOf(message->peer);
  return -1;
}

void MessageEngine::abandon(int64_t until) {
  auto isUnderWay = [](const auto &message) {
    return message->isPosted && !message->transfer.done();
  };
  auto anyUnderWay = [&] {
    return std::any_of(plan.messages.begin(), plan.messages.end(), isUnderWay);
  };
  for (auto &message : plan.messages)
    if (isUnderWay(message))
      link.cancel(message->transfer);
  while (anyUnderWay() && nowNs() < until && link.progress(until).ok()) {
  }
  // The memory of messages must not be in use any more.
  if (anyUnderWay())
    (void)link.close(until + kCloseNs);
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

template <typename Visit>
void MessageEngine::forEachRunOf(const Piece &piece, int64_t begin, int64_t end,
                                 Visit visit) const {
  if (begin >= end)
    return;
  if (piece.space == Space::scratch)
    return visit(plan.scratch.data() + piece.offset + begin, end - begin);
  const CollectiveValue &value = c.values[piece.value];
  const bool isInput = piece.space == Space::input;
  const int64_t part = piece.offset / value.bytes(), first = piece.offset % value.bytes();
  std::byte *base = heap.peer(heap.rank, isInput ? value.input.offset : value.output.offset) +
                    part * (isInput ? value.sourceStep : value.destStep);
  forEachRun(value.part, first + begin, first + end,
             [&](int64_t source, int64_t dest, int64_t bytes) {
               visit(base + (isInput ? source : dest), bytes);
             });
}

std::byte *MessageEngine::inPlace(const Piece &piece) const {
  std::byte *begin = nullptr;
  int64_t runs = 0;
  forEachRunOf(piece, 0, piece.bytes, [&](std::byte *at, int64_t) {
    if (runs++ == 0)
      begin = at;
  });
  return runs == 1 ? begin : nullptr;
}

void MessageEngine::pack(const Piece &piece, std::byte *packed) const {
  forEachRunOf(piece, 0, piece.bytes, [&](std::byte *at, int64_t bytes) {
    std::memcpy(packed, at, static_cast<size_t>(bytes));
    packed += bytes;
  });
}

void MessageEngine::unpack(const Piece &piece, const std::byte *packed) const {
  forEachRunOf(piece, 0, piece.bytes, [&](std::byte *at, int64_t bytes) {
    std::memcpy(at, packed, static_cast<size_t>(bytes));
    packed += bytes;
  });
}

void MessageEngine::clearUncounted(const ScheduleStep &step) const {
  const CollectiveValue &value = c.values[step.piece.value], &counts = c.values.back();
  const CountedBlocks blocks = blocksOf(value, static_cast<int64_t>(c.group->ranks.size()));
  const int64_t blockBytes = blocks.rows * blocks.rowBytes;
  // The counts of a message have come before it; those of the rank's own part are its own.
  const StepSource &source = plan.schedule.sourcesOf(step)[0];
  const Piece &counted = source.isMessage() ? step.piece : source.piece;
  const StridedView &view = source.isMessage() ? counts.output : counts.input;
  const int64_t part = counted.offset / value.bytes(), first = counted.offset % value.bytes();
  for (int64_t begin = 0; begin < step.piece.bytes;) {
    const int64_t block = (first + begin) / blockBytes, inBlock = (first + begin) % blockBytes;
    const int64_t end = std::min(step.piece.bytes, begin + blockBytes - inBlock);
    const int64_t count = countOfBlock(heap.peer(heap.rank, view.offset), counts.dtype,
                                       view.strides[0], part * blocks.blocks + block);
    const int64_t rows = std::clamp<int64_t>(count, 0, blocks.rows);
    const int64_t middle = std::clamp(begin - inBlock + rows * blocks.rowBytes, begin, end);
    forEachRunOf(step.piece, middle, end, [](std::byte *at, int64_t bytes) {
      std::memset(at, 0, static_cast<size_t>(bytes));
    });
    begin = end;
  }
}

} // namespace braid::runtime
