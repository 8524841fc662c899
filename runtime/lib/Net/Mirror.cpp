//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Mirror.h"

#include <algorithm>

namespace braid::runtime::net {

// 32 queues of at most 1.9 KiB.
constexpr size_t kMaxName = 256, kMaxPath = 512, kMaxMissing = 64;
constexpr size_t kMaxQueues = 32;
/// Commands that a mirror keeps; a program has fewer. Beyond it a rank's place is unknown.
constexpr size_t kMaxCommands = size_t(1) << 16;

Places placesOf(const RunControl &control, int64_t rank, uint64_t run, bool isRunning) {
  Places places;
  places.run = run;
  places.isRunning = isRunning;
  for (size_t q = 0; q < std::min(control.numQueuesOfRank(), kMaxQueues); ++q) {
    const QueueState &queue = control.queue(rank, q);
    QueuePlace &place = places.queues.emplace_back();
    place.queue = static_cast<uint32_t>(q);
    place.progress = queue.progress.load(std::memory_order_relaxed);
    place.stalled = queue.stalled.load(std::memory_order_acquire);
    const Waiting waiting = queue.waiting.load(std::memory_order_acquire);
    place.waiting = static_cast<uint8_t>(waiting);
    if (waiting != Waiting::nothing)
      place.waitedNs = nowNs() - queue.since.load(std::memory_order_relaxed);
    const NamedCommand *command = isRunning ? queue.at.load(std::memory_order_acquire) : nullptr;
    if (!command)
      continue;
    place.isAtCommand = true;
    place.waitsForRoom = command->waitsForRoom();
    if (const std::optional<Queue> awaited = command->awaitedQueue())
      place.awaitedQueue = static_cast<uint32_t>(*awaited);
    for (const RankQueue &missing : command->missing())
      if (place.missing.size() < kMaxMissing)
        place.missing.push_back({missing.rank, static_cast<uint32_t>(missing.queue)});
    place.operation = std::string(command->operation).substr(0, kMaxName);
    place.name = command->name.substr(0, kMaxName);
    place.path = command->path ? command->path->substr(0, kMaxPath) : "";
  }
  return places;
}

struct Mirror::Command : NamedCommand {
  std::optional<Queue> awaitedQueue() const override { return awaited; }
  std::vector<RankQueue> missing() const override { return missingQueues; }
  bool waitsForRoom() const override { return forRoom; }

  std::string kind, place; ///< what `operation` and `path` point to
  std::optional<Queue> awaited;
  std::vector<RankQueue> missingQueues;
  bool forRoom = false;
};

const NamedCommand *Mirror::commandFor(const QueuePlace &place, int64_t ranks) {
  if (!place.isAtCommand)
    return nullptr;
  QueuePlace identity = place;
  identity.progress = 0, identity.waiting = 0, identity.waitedNs = 0, identity.stalled = false;
  const FrameBytes bytes = encode(Places{0, false, {identity}});
  const std::string key(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (auto found = commands.find(key); found != commands.end())
    return found->second.get();
  if (commands.size() >= kMaxCommands)
    return nullptr;
  auto command = std::make_unique<Command>();
  command->kind = place.operation;
  command->operation = command->kind.c_str();
  command->name = place.name;
  command->place = place.path;
  command->path = command->place.empty() ? nullptr : &command->place;
  if (place.awaitedQueue)
    command->awaited = *place.awaitedQueue;
  for (const QueueOfRank &missing : place.missing)
    if (missing.rank >= 0 && missing.rank < ranks)
      command->missingQueues.push_back({missing.rank, missing.queue});
  command->forRoom = place.waitsForRoom;
  return commands.emplace(key, std::move(command)).first->second.get();
}

void Mirror::write(RunControl &control, int64_t rank, const Places &places, uint64_t run) {
  const bool isThisRun = places.isRunning && places.run == run;
  const size_t numQueues = control.numQueuesOfRank();
  for (size_t q = 0; !isThisRun && q < numQueues; ++q) {
    QueueState &queue = control.queue(rank, q);
    queue.stalled.store(false, std::memory_order_release);
    queue.at.store(nullptr, std::memory_order_release);
    queue.waiting.store(Waiting::nothing, std::memory_order_release);
  }
  for (const QueuePlace &place : places.queues) {
    if (place.queue >= numQueues || place.waiting > static_cast<uint8_t>(Waiting::team))
      continue;
    QueueState &queue = control.queue(rank, place.queue);
    queue.progress.store(place.progress, std::memory_order_relaxed);
    if (!isThisRun)
      continue;
    const bool namesQueues =
        (!place.awaitedQueue || *place.awaitedQueue < numQueues) &&
        std::all_of(place.missing.begin(), place.missing.end(),
                    [&](const QueueOfRank &missing) { return missing.queue < numQueues; });
    queue.stalled.store(place.stalled, std::memory_order_release);
    queue.since.store(nowNs() - place.waitedNs, std::memory_order_relaxed);
    queue.at.store(namesQueues ? commandFor(place, control.numRanks()) : nullptr,
                   std::memory_order_release);
    queue.waiting.store(static_cast<Waiting>(place.waiting), std::memory_order_release);
  }
}

} // namespace braid::runtime::net
