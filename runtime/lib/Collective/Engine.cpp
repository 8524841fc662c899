//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Engine.h"
#include "Staging.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <utility>

namespace braid::runtime {

/// So many steps beyond the first that is not done may run before it; more with many ranks, as
/// steps of one chunk stand together. With many more, messages that are not needed yet take links
/// from those that are: four hosts then took up to a tenth longer.
static constexpr uint32_t kWindow = 24, kWindowOfRank = 4;
/// Memory for messages that are packed or reduced, of a run.
static constexpr int64_t kStagedBytes = int64_t(8) << 20;
/// For the end of a link whose messages do not end by themselves.
static constexpr int64_t kCloseNs = 500000000;

Status Engine::begin(const Collective &collective, GroupMember &itsMember,
                     const SymmetricHeap &itsHeap, std::byte *itsScratch) {
  heap = &itsHeap;
  memory.resize(collective.values.size());
  for (size_t v = 0; v < memory.size(); ++v)
    memory[v] = {itsHeap.peer(itsHeap.rank, collective.values[v].input.offset),
                 itsHeap.peer(itsHeap.rank, collective.values[v].output.offset)};
  return start(collective, itsMember, itsScratch);
}

Status Engine::begin(const Collective &collective, GroupMember &itsMember,
                     const std::vector<OperandMemory> &itsMemory, std::byte *itsScratch) {
  heap = nullptr;
  memory = itsMemory;
  return start(collective, itsMember, itsScratch);
}

void Engine::reserve(const Collective &collective) {
  const CollectivePlan &its = *collective.plan;
  const size_t ranks = its.pairs.size();
  memory.reserve(collective.values.size());
  sendsBefore.reserve(ranks);
  takesBefore.reserve(ranks);
  isCompared.reserve(ranks);
  isDone.reserve(its.schedule.steps.size());
  if (places.size() < its.mostSources) {
    places.resize(its.mostSources);
    addresses.resize(its.mostSources);
  }
  posted.reserve(its.messages.size());
}

Status Engine::start(const Collective &collective, GroupMember &itsMember, std::byte *itsScratch) {
  c = &collective;
  plan = c->plan.get();
  member = &itsMember;
  scratch = itsScratch;
  lost = -1;
  RETURN_IF_ERROR(checkCounts());
  const size_t ranks = c->group->ranks.size();
  sendsBefore.assign(member->sends, member->sends + ranks);
  takesBefore.assign(member->takes, member->takes + ranks);
  for (size_t i = 0; i < ranks; ++i) {
    if (plan->pairs[i] == PairKind::link)
      continue;
    member->sends[i] += plan->sends[i];
    member->takes[i] += plan->takes[i];
  }
  isCompared.assign(ranks, false);
  isDone.assign(plan->schedule.steps.size(), false);
  front = sentUpTo = awaitsTaken = 0;
  lateness.begin();
  if (places.size() < plan->mostSources) {
    places.resize(plan->mostSources);
    addresses.resize(plan->mostSources);
  }
  posted.assign(plan->messages.size(), nullptr);
  sequence = ++member->progress->sequence;
  Arrival &mine = *member->arrival;
  uint64_t &history = member->progress->history;
  if (c->shared)
    history =
        (history ^ c->shared->operation ^ c->shared->identity << 1) * 1099511628211U + sequence;
  // Whoever sees one of these sees that the ones before them have been reached (compare).
  std::atomic_thread_fence(std::memory_order_release);
  Arrival::Reached &reached = mine.reached[sequence % Arrival::kSlots];
  reached.collective.store(c->shared, std::memory_order_relaxed);
  reached.scratch.store(scratch, std::memory_order_relaxed);
  reached.history.store(history, std::memory_order_relaxed);
  atSchedulePoint("reached a collective");
  mine.arrivals.set(sequence);
  return {};
}

Result<bool> Engine::advance() {
  if (member->staging)
    bellBefore = member->staging->bell().value();
  ASSIGN_OR_RETURN(bool done, plan->isInTurn ? runInTurn() : runWindow());
  if (!done)
    return false;
  // A rank that left now could overwrite memory that a slower peer still reads. Messages are taken
  // in their order, so the last one tells of all.
  for (; awaitsTaken < isCompared.size(); ++awaitsTaken) {
    if (kindOf(awaitsTaken) != PairKind::direct || plan->sends[awaitsTaken] == 0)
      continue;
    ASSIGN_OR_RETURN(const bool isReading,
                     isMissing(Arrival::taken, awaitsTaken, plan->sends[awaitsTaken] - 1));
    if (isReading)
      return false;
  }
  if (plan->hasLinks)
    RETURN_IF_ERROR(releaseSent());
  if (sentUpTo < front && plan->hasLinks) {
    (void)isMissing(Arrival::link, plan->schedule.steps[sentUpTo].peer, 0);
    return false;
  }
  atSchedulePoint("exchanged");
  member->arrival->what.store(Arrival::nothing, std::memory_order_relaxed);
  member->arrival->oldest.store(sequence + 1, std::memory_order_relaxed);
  return true;
}

Result<bool> Engine::runInTurn() {
  for (const auto count = static_cast<uint32_t>(isDone.size()); front < count; ++front) {
    ASSIGN_OR_RETURN(bool done, perform(front));
    if (!done)
      return false;
    ++steps;
  }
  return true;
}

Result<bool> Engine::runWindow() {
  const auto count = static_cast<uint32_t>(isDone.size());
  const uint32_t window = kWindow + kWindowOfRank * static_cast<uint32_t>(isCompared.size());
  // A step waits for earlier ones only. So all have been seen, but for those that come into the
  // window, and the front, for which alone there is always memory.
  for (uint32_t next = front; front < count;) {
    RETURN_IF_ERROR(releaseSent());
    ASSIGN_OR_RETURN(const bool moved, tryStep(front));
    const Awaited first = lacking;
    const uint32_t end = std::min(count, front + window);
    for (next = std::max(next, front + 1); next < end; ++next)
      RETURN_IF_ERROR(tryStep(next).status());
    lacking = first;
    if (!moved)
      return false;
    while (front < count && isDone[front])
      ++front;
  }
  return true;
}

Result<bool> Engine::tryStep(uint32_t number) {
  if (isDone[number])
    return true;
  RETURN_IF_ERROR(post(number));
  ASSIGN_OR_RETURN(const bool done, perform(number));
  isDone[number] = done;
  steps += done ? 1 : 0;
  return done;
}

Result<bool> Engine::isMissing(Arrival::What what, int64_t position, uint32_t message) {
  const auto at = static_cast<size_t>(position);
  uint32_t target = 0, told = 0;
  Counter *counter = nullptr;
  if (what != Arrival::link) {
    const bool taken = what == Arrival::taken;
    counter = taken ? &member->to[at]->taken : &member->from[at]->sent;
    target = told = (taken ? sendsBefore : takesBefore)[at] + message + 1;
    // A rank that has reached another collective sends other messages, or none.
    if (!isCompared[at]) {
      Counter &arrivals = member->arrivals[at]->arrivals;
      if (arrivals.reached(sequence)) {
        RETURN_IF_ERROR(compare(position));
      } else {
        counter = &arrivals;
        target = sequence;
      }
    }
    if (isCompared[at] && counter->reached(target))
      return false;
  }
  lacking = {counter, target, rankOf(position)};
  // The explanation is of the oldest collective.
  Arrival &mine = *member->arrival;
  if (mine.oldest.load(std::memory_order_relaxed) == sequence) {
    mine.target.store(told, std::memory_order_relaxed);
    mine.awaited.store(position, std::memory_order_relaxed);
    mine.what.store(what, std::memory_order_relaxed);
  }
  return true;
}

const SharedCollective &Engine::sharedOf(int64_t position) const {
  const auto at = static_cast<size_t>(position);
  const SharedCollective *theirs =
      member->arrivals[at]->at(sequence).collective.load(std::memory_order_relaxed);
  return *reinterpret_cast<const SharedCollective *>(reinterpret_cast<const std::byte *>(theirs) +
                                                     member->shift[at]);
}

Status Engine::compare(int64_t position) {
  const auto at = static_cast<size_t>(position);
  isCompared[at] = true;
  const Arrival &peer = *member->arrivals[at];
  const uint64_t history = peer.at(sequence).history.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  // It has ended this collective long since, and may have overwritten this. What it has run before
  // is compared in the next one in which we exchange messages.
  if (peer.arrivals.value() - sequence >= Arrival::kSlots - 1)
    return {};
  if (history == member->arrival->at(sequence).history.load(std::memory_order_relaxed))
    return {};
  const SharedCollective &mine = *c->shared, &theirs = sharedOf(position);
  const bool alike = mine.operation == theirs.operation;
  const bool isSame = alike && mine.identity == theirs.identity;
  return Status::error(mine.signature(), " does not match ", theirs.signature(), " of rank ",
                       rankOf(position),
                       isSame  ? ", as these ranks have run different collectives before"
                       : alike ? ", as these ranks reach them in different orders"
                               : "",
                       Code::rankFailed);
}

Result<bool> Engine::areDependenciesDone(const ScheduleStep &step) {
  for (uint32_t other : plan->schedule.dependenciesOf(step)) {
    const ScheduleStep &before = plan->schedule.steps[other];
    // In turn, other steps are done, as they come before.
    if (!plan->isInTurn && !isDone[other])
      return false;
    if (before.kind != StepKind::send)
      continue;
    if (kindOf(before.peer) == PairKind::direct) {
      ASSIGN_OR_RETURN(const bool isReading,
                       isMissing(Arrival::taken, before.peer, before.message));
      if (isReading)
        return false;
    } else if (const uint32_t message = plan->firstMessage[other];
               posted[message] && !isComplete(message)) {
      (void)isMissing(Arrival::link, before.peer, 0);
      return false;
    }
  }
  return true;
}

/// Whether the messages of a step are there, and all before them have been taken.
Result<bool> Engine::areMessagesThere(uint32_t number) {
  const ScheduleStep &step = plan->schedule.steps[number];
  uint32_t message = plan->firstMessage[number];
  for (const StepSource &source : plan->schedule.sourcesOf(step)) {
    if (!source.isMessage())
      continue;
    const auto peer = static_cast<size_t>(source.peer);
    if (plan->pairs[peer] == PairKind::staged) {
      ASSIGN_OR_RETURN(const bool isThere, isStaged(step, source, message++));
      if (!isThere)
        return false;
      continue;
    }
    if (plan->pairs[peer] == PairKind::link) {
      const uint32_t own = message++;
      if (step.counted && countedBytes(step) == 0)
        continue; // not sent
      if (!posted[own] || !isComplete(own)) {
        (void)isMissing(Arrival::link, source.peer, 0);
        return false;
      }
      if (!posted[own]->inLink)
        RETURN_IF_ERROR(outcome(own));
      continue;
    }
    ASSIGN_OR_RETURN(const bool missing, isMissing(Arrival::sent, source.peer, source.message));
    if (missing || member->from[peer]->taken.value() != takesBefore[peer] + source.message)
      return false; // taken by an older collective
  }
  return true;
}

Result<bool> Engine::perform(uint32_t number) {
  const ScheduleStep &step = plan->schedule.steps[number];
  lacking = {};
  ASSIGN_OR_RETURN(const bool isReady, areDependenciesDone(step));
  if (!isReady)
    return false;
  if (step.kind == StepKind::send)
    return send(number);
  ASSIGN_OR_RETURN(const bool there, areMessagesThere(number));
  if (!there)
    return false;
  const uint32_t firstMessage = plan->firstMessage[number];
  if (!isWorkDone(step, firstMessage))
    work(number);
  uint32_t message = firstMessage;
  int64_t received = 0;
  for (const StepSource &source : plan->schedule.sourcesOf(step)) {
    if (!source.isMessage())
      continue;
    const auto peer = static_cast<size_t>(source.peer);
    if (plan->pairs[peer] == PairKind::link)
      received += source.piece.bytes;
    else
      member->from[peer]->taken.set(takesBefore[peer] + source.message + 1);
    if (plan->pairs[peer] == PairKind::staged)
      member->staging->ring(peer);
    if (plan->pairs[peer] != PairKind::direct)
      release(message++);
  }
  if (received > 0)
    lateness.note(received);
  return true;
}

void Engine::work(uint32_t number) {
  const ScheduleStep &step = plan->schedule.steps[number];
  const int64_t begin = trace ? nowNs() : 0;
  const uint32_t firstMessage = plan->firstMessage[number];
  if (step.kind == StepKind::reduce) {
    reduce(step, firstMessage);
  } else if (step.kind == StepKind::clear) {
    clear(step.piece, 0, step.piece.bytes);
  } else if (!c->readInPlace) {
    const Place from = placeOf(step.firstSource, firstMessage), to = placeOf(step.piece);
    if (!step.counted)
      copy(step.piece, from, to, 0, step.piece.bytes);
    else
      copyCounted(step, from, to);
  }
  if (trace)
    trace->push_back({number, begin, nowNs()});
}

Result<bool> Engine::send(uint32_t number) {
  const ScheduleStep &step = plan->schedule.steps[number];
  const auto peer = static_cast<size_t>(step.peer);
  if (plan->pairs[peer] == PairKind::staged)
    return sendStaged(number);
  if (plan->pairs[peer] == PairKind::direct) {
    Counter &sent = member->to[peer]->sent;
    const uint32_t before = sendsBefore[peer] + step.message;
    if (sent.value() != before)
      return false; // by an older collective
    sent.set(before + 1);
    return true;
  }
  const int64_t begin = trace ? nowNs() : 0;
  const uint32_t message = plan->firstMessage[number];
  const int64_t bytes = step.counted ? countedBytes(step) : step.piece.bytes;
  if (step.counted && bytes == 0)
    return true;
  const std::byte *from = bytes == step.piece.bytes ? inPlace(step.piece) : nullptr;
  if (!from && number != front && stagedBytes + bytes > kStagedBytes)
    return false;
  LinkMessage &entry = acquire(message, from ? 0 : bytes);
  if (!from) {
    const Place packed{Space::scratch, entry.data(), -1}, piece = placeOf(step.piece);
    if (step.counted)
      packCounted(step, piece, packed);
    else
      copy(step.piece, piece, packed, 0, bytes);
    from = entry.data();
  }
  link->send(entry.transfer, rankOf(step.peer), tagOf(message), from, static_cast<size_t>(bytes));
  if (trace)
    trace->push_back({number, begin, nowNs()});
  return true;
}

//===----------------------------------------------------------------------===//
// Through staging
//===----------------------------------------------------------------------===//

Status Engine::awaitBell(int64_t position) {
  const int64_t rank = rankOf(position);
  lacking = {&member->staging->bell(), bellBefore + 1, rank};
  if (!link || link->state(rank).ok())
    return {};
  lost = rank;
  return link->state(rank);
}

Result<bool> Engine::sendStaged(uint32_t number) {
  const ScheduleStep &step = plan->schedule.steps[number];
  const auto peer = static_cast<size_t>(step.peer);
  Staging &staging = *member->staging;
  DirectPair &pair = *member->to[peer];
  const uint32_t message = sendsBefore[peer] + step.message;
  if (pair.sent.value() != message || !staging.hasRoom(pair)) {
    // Where an older collective sends, it waits for this, too.
    RETURN_IF_ERROR(awaitBell(step.peer));
    return false;
  }
  const int64_t begin = trace ? nowNs() : 0;
  // What goes to several ranks is copied once.
  const uint64_t stamp = static_cast<uint64_t>(sequence) << 32 | plan->sameBytes[number];
  int64_t slot = staging.slotWith(stamp);
  const int64_t bytes = step.counted ? countedBytes(step) : step.piece.bytes;
  if (slot < 0) {
    slot = staging.acquire(stamp, member->to);
    const Place packed{Space::scratch, staging.data(static_cast<uint32_t>(slot)), -1};
    if (step.counted)
      packCounted(step, placeOf(step.piece), packed);
    else
      copy(step.piece, placeOf(step.piece), packed, 0, bytes);
  }
  const int64_t told = step.counted ? bytes : plan->messages[plan->firstMessage[number]].bytes;
  staging.send(peer, pair, message, {stagedTag(), told, static_cast<uint32_t>(slot)});
  if (trace)
    trace->push_back({number, begin, nowNs()});
  return true;
}

Result<bool> Engine::isStaged(const ScheduleStep &step, const StepSource &source,
                              uint32_t message) {
  const auto peer = static_cast<size_t>(source.peer);
  const DirectPair &pair = *member->from[peer];
  const uint32_t number = takesBefore[peer] + source.message;
  const Staging::Message &sent = member->staging->from(peer, number);
  // Whoever runs another collective there is told so by those that compare what ranks run.
  if (!pair.sent.reached(number + 1) || pair.taken.value() != number || sent.tag != stagedTag()) {
    RETURN_IF_ERROR(awaitBell(source.peer));
    return false;
  }
  const int64_t expected = step.counted ? countedBytes(step) : plan->messages[message].bytes;
  if (sent.bytes == expected)
    return true;
  const int64_t rank = rankOf(source.peer);
  return Status::error(link ? link->describe(rank) : "rank " + std::to_string(rank), " sent ",
                       sent.bytes, " bytes where rank ", rankOf(c->position), " expects ", expected,
                       Code::rankFailed);
}

//===----------------------------------------------------------------------===//
// Over the link
//===----------------------------------------------------------------------===//

uint64_t Engine::tagOf(uint32_t message) const {
  return c->linkTag | static_cast<uint64_t>(sequence & 0xffff) << 16 |
         plan->messages[message].number;
}

Engine::LinkMessage &Engine::acquire(uint32_t message, int64_t bufferBytes) {
  if (idle.empty()) {
    linkMessages.push_back(std::make_unique<LinkMessage>(*this));
    idle.push_back(linkMessages.back().get());
  }
  LinkMessage *entry = idle.back();
  idle.pop_back();
  if (const auto wanted = static_cast<size_t>(bufferBytes); wanted > 0) {
    // The one that was used last and is long enough, or else any.
    auto isLongEnough = [&](const Buffer &buffer) { return buffer.bytes >= wanted; };
    auto found = std::find_if(idleBuffers.rbegin(), idleBuffers.rend(), isLongEnough);
    if (found == idleBuffers.rend())
      found = idleBuffers.rbegin();
    if (found != idleBuffers.rend()) {
      std::swap(*found, idleBuffers.back());
      entry->buffer = std::move(idleBuffers.back());
      idleBuffers.pop_back();
    }
    if (entry->buffer.bytes < wanted) {
      entry->buffer = {}; // before the longer one is allocated
      entry->buffer = {std::unique_ptr<std::byte[]>(new std::byte[wanted]), wanted};
    }
  }
  entry->bufferBytes = bufferBytes;
  entry->isUsed = false;
  stagedBytes += bufferBytes;
  posted[message] = entry;
  return *entry;
}

void Engine::release(uint32_t message) {
  LinkMessage *&entry = posted[message];
  if (!entry)
    return;
  stagedBytes -= entry->bufferBytes;
  if (entry->buffer.memory)
    idleBuffers.push_back(std::exchange(entry->buffer, {}));
  idle.push_back(entry);
  entry = nullptr;
}

Status Engine::releaseSent() {
  for (; sentUpTo < front; ++sentUpTo) {
    if (plan->schedule.steps[sentUpTo].kind != StepKind::send)
      continue;
    // Where the peer is direct there is no message of this number.
    const uint32_t message = plan->firstMessage[sentUpTo];
    if (kindOf(plan->schedule.steps[sentUpTo].peer) != PairKind::link || !posted[message])
      continue;
    if (!isComplete(message))
      break;
    RETURN_IF_ERROR(outcome(message));
    release(message);
  }
  return {};
}

Status Engine::outcome(uint32_t message) {
  const Status &status = posted[message]->transfer.status();
  if (!status.ok())
    lost = rankOf(plan->messages[message].peer);
  return status;
}

Status Engine::post(uint32_t number) {
  const ScheduleStep &step = plan->schedule.steps[number];
  if (step.kind == StepKind::send)
    return {};
  uint32_t message = plan->firstMessage[number];
  for (const StepSource &source : plan->schedule.sourcesOf(step)) {
    if (!source.isMessage() || kindOf(source.peer) == PairKind::direct)
      continue;
    const uint32_t own = message++;
    if (posted[own] || kindOf(source.peer) == PairKind::staged)
      continue;
    // What is only written may come to its place, once nothing before it uses the place.
    const bool comesToPlace =
        step.kind == StepKind::receive && !step.counted && inPlace(step.piece);
    // The length of a counted message is known when its counts are.
    if (comesToPlace || step.counted) {
      ASSIGN_OR_RETURN(const bool isReady, areDependenciesDone(step));
      if (!isReady)
        continue;
    }
    const int64_t bytes = step.counted ? countedBytes(step) : source.piece.bytes;
    if ((step.counted && bytes == 0) ||
        (!comesToPlace && number != front && stagedBytes + bytes > kStagedBytes))
      continue;
    LinkMessage &entry = acquire(own, comesToPlace ? 0 : bytes);
    entry.step = number;
    std::byte *to = comesToPlace ? inPlace(step.piece) : entry.data();
    link->receive(entry.transfer, rankOf(source.peer), tagOf(own), to, static_cast<size_t>(bytes),
                  comesToPlace ? nullptr : &entry);
  }
  return {};
}

bool Engine::workOnArrival(LinkMessage &last, const std::byte *bytes) {
  const ScheduleStep &step = plan->schedule.steps[last.step];
  last.inLink = bytes;
  // An error is found again, and told, when the step is performed.
  auto holds = [](const Result<bool> &result) { return result.ok() && *result; };
  last.isUsed = holds(areDependenciesDone(step)) && holds(areMessagesThere(last.step));
  if (last.isUsed)
    work(last.step);
  last.inLink = nullptr;
  return last.isUsed;
}

bool Engine::isWorkDone(const ScheduleStep &step, uint32_t message) const {
  for (const StepSource &source : plan->schedule.sourcesOf(step))
    if (source.isMessage() && kindOf(source.peer) != PairKind::direct)
      if (const LinkMessage *entry = posted[message++]; entry && entry->isUsed)
        return true;
  return false;
}

int64_t Engine::latenessNs() const {
  // With other algorithms messages wait for each other in long chains, each link of which would be
  // late.
  const bool isShallow = plan && (plan->algorithm == ScheduleAlgorithm::direct ||
                                  plan->algorithm == ScheduleAlgorithm::oneShot);
  return isShallow && plan->hasLinks ? lateness.latenessNs(plan->receivedBytes) : 0;
}

void Engine::abandon(int64_t until) {
  auto isUnderWay = [](const LinkMessage *entry) { return entry && !entry->transfer.done(); };
  auto anyUnderWay = [&] { return std::any_of(posted.begin(), posted.end(), isUnderWay); };
  for (LinkMessage *entry : posted)
    if (isUnderWay(entry))
      link->cancel(entry->transfer);
  while (anyUnderWay() && nowNs() < until && link->progress(until).ok()) {
  }
  // The memory of messages must not be in use any more.
  if (anyUnderWay())
    (void)link->close(until + kCloseNs);
  for (uint32_t m = 0; m < posted.size(); ++m)
    release(m);
}

} // namespace braid::runtime
