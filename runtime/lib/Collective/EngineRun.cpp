//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "EngineRun.h"

#include <algorithm>

namespace braid::runtime {

constexpr int64_t kAbandonNs = 200000000; ///< for messages of a run that has failed
/// Where both links and memory are awaited, memory is looked at so often.
constexpr int64_t kNapNs = 100000;

EngineRun *EngineRun::begin(const Collective &c, GroupMember &member, const SymmetricHeap &heap,
                            RunControl &control, QueueState &self) {
  const size_t number = member.progress->sequence % member.runs.size();
  EngineRun &run = *member.runs[number];
  run.control = &control;
  run.self = &self;
  run.spans.clear();
  run.engine.trace = nullptr;
  std::byte *scratch = member.scratch ? member.scratch + number * member.scratchBytes : nullptr;
  if (const Status begun = run.engine.begin(c, member, heap, scratch); !begun.ok()) {
    run.fail(begun);
    return nullptr;
  }
  return &run;
}

void EngineRun::fail(const Status &status) {
  if (const int64_t peer = engine.lostPeer(); peer >= 0 && describeLoss && *describeLoss)
    return control->fail((*describeLoss)(peer, status));
  control->fail(Status::error("rank ", self->rank, ": ", status.message(), status.code()));
}

bool EngineRun::advance() {
  const Result<bool> done = engine.advance();
  if (!done.ok())
    fail(done.status());
  return !done.ok() || *done;
}

bool EngineRun::wait() {
  Engine::Awaited awaited = engine.awaited();
  if (!engine.hasLinks())
    return control->wait(*awaited.counter, awaited.target, *self, Waiting::peer, awaited.rank);
  const uint64_t before = engine.progress();
  return control->waitFor(*self, Waiting::peer, awaited.rank, [&](int64_t until) {
    if (awaited.counter)
      until = std::min(until, nowNs() + kNapNs);
    if (const Status moved = link->progress(until, engine.latenessNs()); !moved.ok()) {
      control->fail(moved);
      return true;
    }
    if (advance() || engine.progress() != before) {
      // A slow link is no standstill.
      self->progress.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    awaited = engine.awaited();
    self->missingRank.store(awaited.rank, std::memory_order_relaxed);
    return false;
  });
}

void EngineRun::abandon() {
  if (engine.hasLinks())
    engine.abandon(nowNs() + kAbandonNs);
}

} // namespace braid::runtime
