//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/ProgramOrder.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>

namespace braid::interp {

namespace {

using runtime::kMaxQueues;

/// The number of commands of each queue that must have ended.
using Clock = std::array<uint32_t, kMaxQueues>;

/// Walks the commands in one legal order and derives which commands must have ended before each.
/// One order suffices: two commands are unordered in all orders or in none.
class OrderCheck {
public:
  OrderCheck(const ExpandedProgram &program, const program::OperationUnion *without)
      : program(program), without(without), segments(program.segments.size()),
        readers(program.segments.size() * program.numQueues()), events(program.numEvents),
        isSet(program.numEvents) {}

  std::vector<std::string> run() {
    const std::vector<int64_t> inputs = program.inputsOfSegments();
    for (size_t s = 0; s < segments.size(); ++s)
      segments[s].buffer = inputs[s];
    bool progress = true;
    while (progress) {
      progress = false;
      for (Queue queue = 0; queue < program.numQueues(); ++queue)
        while (step(queue))
          progress = true;
    }
    // verifyProgram has checked that all queues end. A race also changes the value that memory
    // holds, so that only races are reported then.
    return races.empty() ? faults : races;
  }

  /// Waits that no earlier waits of their queue imply.
  std::set<const program::OperationUnion *> effective;

private:
  struct SegmentState {
    int64_t buffer = -1;                    ///< whose value it holds; -1: none
    const ProgramCommand *writer = nullptr; ///< null: not written yet
  };
  /// Of a segment: the last ones since the write, by queue.
  const ProgramCommand **readersOf(uint32_t s) { return &readers[s * program.numQueues()]; }

  bool step(Queue q) {
    const auto &commands = program.commands(q);
    if (next[q] == commands.size())
      return false;
    const ProgramCommand &command = commands[next[q]];
    if (command.waits && command.op != without) {
      if (!isSet[*command.event])
        return false;
      const Clock &then = events[*command.event];
      for (Queue other = 0; other < program.numQueues(); ++other)
        if (then[other] > now[q][other]) {
          now[q][other] = then[other];
          effective.insert(command.op);
        }
    }
    for (const Operand &read : command.reads)
      read.forEachSegment([&](uint32_t s) { checkRead(command, read, s); });
    for (const Operand &write : command.writes)
      write.forEachSegment([&](uint32_t s) { checkWrite(command, write, s); });
    now[q][q] = ++next[q];
    if (command.event && !command.waits) {
      events[*command.event] = now[q];
      isSet[*command.event] = true;
    }
    return true;
  }

  bool isBefore(const ProgramCommand &a, const ProgramCommand &b) const {
    return now[b.queue][a.queue] > a.index;
  }

  void checkRead(const ProgramCommand &command, const Operand &read, uint32_t s) {
    SegmentState &state = segments[s];
    if (state.writer && !isBefore(*state.writer, command))
      race(*state.writer, "writes", command, "reads", read, s);
    else if (state.buffer != read.view.buffer)
      fault(faults, command, state.writer, [&] {
        return command.describe() + " reads " + program.describe(read, s) + ", which " +
               (state.writer ? "holds " + program.buffers[static_cast<size_t>(state.buffer)].name +
                                   " there, written by " + state.writer->describe()
                             : "nothing has written");
      });
    readersOf(s)[command.queue] = &command;
  }

  void checkWrite(const ProgramCommand &command, const Operand &write, uint32_t s) {
    SegmentState &state = segments[s];
    if (state.writer == &command)
      fault(faults, command, &command, [&] {
        return command.describe() + " writes " + program.describe(write, s) + " twice";
      });
    else if (state.writer && !isBefore(*state.writer, command))
      race(*state.writer, "writes", command, "writes", write, s);
    for (Queue queue = 0; queue < program.numQueues(); ++queue) {
      const ProgramCommand *reader = std::exchange(readersOf(s)[queue], nullptr);
      if (reader && reader != &command && !isBefore(*reader, command))
        race(*reader, "reads", command, "writes", write, s);
    }
    for (size_t r = 0; r < command.reads.size(); ++r)
      if (static_cast<int>(r) != write.inPlaceOf && covers(command.reads[r], s))
        fault(faults, command, &command, [&] {
          return command.describe() + " writes " + program.describe(write, s) +
                 " over its own input " + program.buffers[command.reads[r].view.buffer].name +
                 ", which it cannot do in place";
        });
    state.buffer = write.view.buffer;
    state.writer = &command;
  }

  static bool covers(const Operand &operand, uint32_t s) {
    return std::any_of(operand.segments.begin(), operand.segments.end(),
                       [&](auto range) { return range.first <= s && s < range.second; });
  }

  void race(const ProgramCommand &first, const char *does, const ProgramCommand &second,
            const char *doesToo, const Operand &operand, uint32_t s) {
    fault(races, first, &second, [&] {
      return "race between " + first.describe() + " and " + second.describe() + " on " +
             program.describe(operand, s) + ": no event orders what the one " + does +
             " and the other " + doesToo;
    });
  }

  /// Reports one fault for each pair of commands of the serialized program.
  template <typename Message>
  void fault(std::vector<std::string> &list, const ProgramCommand &a, const ProgramCommand *b,
             Message message) {
    if (seen.insert({a.op, b ? b->op : nullptr, &list}).second)
      list.push_back(message());
  }

  const ExpandedProgram &program;
  const program::OperationUnion *without;
  std::vector<SegmentState> segments;
  std::vector<const ProgramCommand *> readers; ///< by segment and queue
  std::vector<Clock> events;
  std::vector<bool> isSet;
  std::array<uint32_t, kMaxQueues> next{};
  std::array<Clock, kMaxQueues> now{};
  std::set<std::tuple<const void *, const void *, const void *>> seen;
  std::vector<std::string> races, faults;
};

} // namespace

std::vector<std::string> checkOrder(const ExpandedProgram &program,
                                    const program::OperationUnion *without) {
  return OrderCheck(program, without).run();
}

std::vector<RedundantWait> findRedundantWaits(const ExpandedProgram &program) {
  OrderCheck complete(program, nullptr);
  complete.run();
  std::vector<RedundantWait> redundant;
  std::set<const program::OperationUnion *> seen;
  for (Queue queue = 0; queue < program.numQueues(); ++queue)
    for (const ProgramCommand &command : program.commands(queue))
      if (command.waits && seen.insert(command.op).second &&
          checkOrder(program, command.op).empty())
        redundant.push_back(
            {command.op, command.describe(), complete.effective.count(command.op) == 0});
  return redundant;
}

std::vector<std::string> checkOrder(const ProgramRoles &program) {
  std::vector<std::string> all;
  for (const ExpandedProgram &role : program.roles)
    for (std::string &fault : checkOrder(role))
      if (std::find(all.begin(), all.end(), fault) == all.end())
        all.push_back(std::move(fault));
  return all;
}

std::vector<RedundantWait> findRedundantWaits(const ProgramRoles &program) {
  std::vector<RedundantWait> found;
  std::set<const program::OperationUnion *> needed;
  for (const ExpandedProgram &role : program.roles) {
    const std::vector<RedundantWait> ofRole = findRedundantWaits(role);
    auto isRedundant = [&](const program::OperationUnion *op) {
      return std::any_of(ofRole.begin(), ofRole.end(),
                         [&](const RedundantWait &wait) { return wait.op == op; });
    };
    for (Queue queue = 0; queue < role.numQueues(); ++queue)
      for (const ProgramCommand &command : role.commands(queue))
        if (command.waits && !isRedundant(command.op))
          needed.insert(command.op);
    for (const RedundantWait &wait : ofRole) {
      auto known = std::find_if(found.begin(), found.end(),
                                [&](const RedundantWait &other) { return other.op == wait.op; });
      if (known == found.end())
        found.push_back(wait);
      else
        known->implied &= wait.implied;
    }
  }
  found.erase(std::remove_if(found.begin(), found.end(),
                             [&](const RedundantWait &wait) { return needed.count(wait.op) != 0; }),
              found.end());
  return found;
}

} // namespace braid::interp
