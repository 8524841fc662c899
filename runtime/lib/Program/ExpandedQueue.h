//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Walks a queue of a verified call tree, and tells which events a command sets and awaits.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_LIB_PROGRAM_EXPANDEDQUEUE_H
#define BRAID_RUNTIME_LIB_PROGRAM_EXPANDEDQUEUE_H

#include "ProgramVerifier.h"

namespace braid::runtime {

/// A rank, and the mesh that says what it runs.
struct RankInMesh {
  const Mesh *mesh;
  int64_t rank;
};

/// Walks one queue with its calls expanded: every command except calls. With a rank, those that the
/// rank runs.
class ExpandedQueue {
public:
  ExpandedQueue(const program::Program &program, uint32_t root, Queue queue,
                std::optional<RankInMesh> rank = std::nullopt)
      : program(program), queue(queue), rank(rank) {
    enter(root, 0, {});
    settle();
  }
  bool done() const { return frames.empty(); }
  const program::Command &command() const {
    const Frame &frame = frames.back();
    return *commands(*frame.procedure, queue).Get(frame.index);
  }
  /// The number in the expanded program of an event that the current command names.
  uint64_t event(uint32_t local) const { return frames.back().event(local); }
  void advance() {
    ++frames.back().index;
    settle();
  }
  const program::Procedure &procedure() const { return *frames.back().procedure; }
  /// The current command's index in its procedure's queue.
  unsigned index() const { return frames.back().index; }
  std::string describe() const { return runtime::describe(program, procedure(), queue, index()); }

private:
  struct Frame {
    const program::Procedure *procedure;
    unsigned index;
    uint64_t eventBase;
    std::vector<uint64_t> eventArguments;
    uint64_t event(uint32_t local) const {
      const uint32_t own = procedure->num_events();
      return local < own ? eventBase + local : eventArguments[local - own];
    }
  };
  void enter(uint32_t procedure, uint64_t eventBase, std::vector<uint64_t> eventArguments) {
    frames.push_back(
        {program.procedures()->Get(procedure), 0, eventBase, std::move(eventArguments)});
  }
  bool runs(const program::Command &command) const {
    return !rank || !command.on() || ranksOf(command).contains(*rank->mesh, rank->rank);
  }
  /// Enters calls and leaves ended procedures until it reaches a command that is no call and that
  /// the rank runs, or the end.
  void settle() {
    while (!frames.empty()) {
      Frame &frame = frames.back();
      const Commands &all = commands(*frame.procedure, queue);
      if (frame.index == all.size()) {
        frames.pop_back();
        if (!frames.empty())
          ++frames.back().index;
        continue;
      }
      if (!runs(*all.Get(frame.index))) {
        ++frame.index;
        continue;
      }
      const program::Call *call = all.Get(frame.index)->op_as_Call();
      if (!call)
        return;
      std::vector<uint64_t> eventArguments;
      if (call->event_arguments())
        for (uint32_t event : *call->event_arguments())
          eventArguments.push_back(frame.event(event));
      enter(call->procedure(), frame.eventBase + call->event_base(), std::move(eventArguments));
    }
  }

  const program::Program &program;
  Queue queue;
  std::optional<RankInMesh> rank;
  std::vector<Frame> frames;
};

enum class Setter : uint8_t { none, record, collective };

/// The event that a command sets, and the kind of command.
inline std::pair<Setter, uint32_t> setBy(const program::Command &command) {
  if (const program::Record *record = command.op_as_Record())
    return {Setter::record, record->event()};
  if (const program::CollectiveStart *start = command.op_as_CollectiveStart())
    return {Setter::collective, start->done()};
  return {Setter::none, 0};
}

/// The event that a command waits for, and the kind of command that sets it.
inline std::pair<Setter, uint32_t> waitedBy(const program::Command &command) {
  if (const program::Await *await = command.op_as_Await())
    return {Setter::record, await->event()};
  if (const program::CollectiveWait *wait = command.op_as_CollectiveWait())
    return {Setter::collective, wait->event()};
  return {Setter::none, 0};
}

} // namespace braid::runtime
#endif // BRAID_RUNTIME_LIB_PROGRAM_EXPANDEDQUEUE_H
