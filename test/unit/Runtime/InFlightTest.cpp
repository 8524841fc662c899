//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives of a queue that are under way at the same time.
//
//===----------------------------------------------------------------------===//
#include "Streams.h"
#include "Testing.h"
#include "TransportOfTest.h"
#include "runtime/lib/Collective/CollectiveParts.h"
#include "runtime/lib/Executor/Executor.h"

#include <chrono>
#include <thread>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

/// A rank of two; the test says when a collective is done.
class Held : public TransportOfTest {
public:
  CollectiveRun *begin(const Collective &c, const SymmetricHeap &, RunControl &control,
                       QueueState &) override {
    log += "+" + c.name;
    ++begun;
    runs.push_back(std::make_unique<Run>(*this, c.name, control));
    return runs.back().get();
  }

  std::string log;  ///< what begins, "+a", and what is done, "-a"
  size_t begun = 0; ///< collectives
  size_t least = 1; ///< none is done before so many have begun
  int patience = 10000;

private:
  struct Run : CollectiveRun {
    Run(Held &transport, std::string name, RunControl &control)
        : transport(transport), name(std::move(name)), control(control) {}
    bool advance() override {
      if (transport.begun < transport.least)
        return false;
      if (!isDone)
        transport.log += "-" + name;
      return isDone = true;
    }
    bool wait() override {
      // Nothing else would begin the next one.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (++waits < transport.patience)
        return true;
      control.fail(
          Status::error("'", name, "' waits for collectives that do not begin", Code::rankFailed));
      return false;
    }
    Held &transport;
    const std::string name;
    RunControl &control;
    bool isDone = false;
    int waits = 0;
  };
  std::vector<std::unique_ptr<Run>> runs;
};

constexpr uint64_t kBytes = 256;

/// A collective that reads and writes these rows of 64 floats.
Command collective(Transport &transport, const std::string &name, uint64_t input, uint64_t output,
                   uint32_t number) {
  CollectiveCommand op{};
  Collective &c = op.collective;
  c.name = name;
  c.group = transport.group({0, 1}, kCommunicationQueue);
  c.queue = kCommunicationQueue;
  CollectiveValue value;
  value.input = {input * kBytes, {kBytes / 4}, {1}};
  value.output = {output * kBytes, {kBytes / 4}, {1}};
  setParts(c, 2, value);
  c.values.push_back(value);
  op.event = number;
  op.index = number;
  Command command;
  command.name = name;
  command.operation = "all_reduce";
  command.op = std::move(op);
  return command;
}
Command other(decltype(Command::op) op) {
  Command command;
  command.op = std::move(op);
  return command;
}

/// Collectives "ab" by name, with input and output rows; 'r' stands for a record, 'w' for a wait.
struct Written {
  char what;
  uint64_t input = 0, output = 0;
};

RankProgram programOf(Transport &transport, const std::vector<Written> &commands) {
  RankProgram program;
  program.queues.resize(2);
  program.ownThread.assign(2, true);
  std::vector<Command> &queue = program.queues[kCommunicationQueue];
  const auto marks = static_cast<uint32_t>(commands.size());
  program.numEvents = marks + 1;
  program.queues[kComputeQueue].push_back(other(RecordCommand{marks}));
  for (const Written &one : commands)
    if (one.what == 'r') {
      queue.push_back(other(RecordCommand{static_cast<uint32_t>(program.numEvents++)}));
    } else if (one.what == 'w') {
      queue.push_back(other(AwaitCommand{marks}));
    } else {
      queue.push_back(collective(transport, std::string(1, one.what), one.input, one.output,
                                 static_cast<uint32_t>(program.collectives.size())));
      program.collectives.emplace_back();
    }
  findInFlight(program, transport.heap(0).peer(0, 0));
  return program;
}

/// How many collectives each may begin beside: "012".
std::string besides(const std::vector<Written> &commands) {
  Held transport;
  EXPECT_OK(transport.allocate(64 * kBytes));
  std::string text;
  const RankProgram program = programOf(transport, commands);
  for (const Command &command : program.queues[kCommunicationQueue])
    if (std::holds_alternative<CollectiveCommand>(command.op))
      text += std::to_string(command.besides);
  return text;
}

TEST(InFlight, CollectivesWithoutAConflict) {
  EXPECT_EQ(besides({{'a', 0, 1}, {'b', 2, 3}, {'c', 4, 5}}), "012");
  // Some may read the same.
  EXPECT_EQ(besides({{'a', 0, 1}, {'b', 0, 2}}), "01");
  // In place.
  EXPECT_EQ(besides({{'a', 0, 0}, {'b', 1, 1}}), "01");
  // As many as the transport has room for.
  EXPECT_EQ(besides({{'a', 0, 1}, {'b', 2, 3}, {'c', 4, 5}, {'d', 6, 7}, {'e', 8, 9}}), "01233");
  // A wait in between delays, but separates nothing.
  EXPECT_EQ(besides({{'a', 0, 1}, {'w'}, {'b', 2, 3}}), "01");
}

TEST(InFlight, CollectivesWithAConflict) {
  EXPECT_EQ(besides({{'a', 0, 1}, {'b', 1, 2}}), "00") << "b reads what a writes";
  EXPECT_EQ(besides({{'a', 0, 1}, {'b', 2, 1}}), "00") << "both write";
  EXPECT_EQ(besides({{'a', 0, 1}, {'b', 2, 0}}), "00") << "b writes what a reads";
  EXPECT_EQ(besides({{'a', 0, 1}, {'b', 2, 3}, {'c', 1, 4}}), "011");
  EXPECT_EQ(besides({{'a', 0, 1}, {'r'}, {'b', 2, 3}}), "00") << "the record is of what is done";
}

/// What begins and ends, when none is done before `least` have begun; or the failure.
std::string runOf(const std::vector<Written> &commands, size_t least, int patience = 10000) {
  Held transport;
  transport.patience = patience;
  transport.least = least;
  EXPECT_OK(transport.allocate(64 * kBytes));
  RankProgram program = programOf(transport, commands);
  auto workers =
      std::make_shared<Workers>(1, RankRange{0, 1}, computeAndCommunication(), 1, 60, &transport);
  Rank &rank = *workers->ranks[0];
  const auto events = std::make_unique<Counter[]>(program.numEvents);
  rank.program = &program;
  rank.events = events.get();
  rank.hasThread = program.ownThread;
  std::vector<std::thread> threads;
  EXPECT_OK(startThreads(*workers, workers, threads));
  const Status status = workers->run();
  stopThreads(*workers, threads);
  return status.ok() ? transport.log : status.message();
}

TEST(InFlight, BeginInOrderAndEndInOrder) {
  EXPECT_EQ(runOf({{'a', 0, 1}, {'b', 2, 3}}, 1), "+a-a+b-b");
  EXPECT_EQ(runOf({{'a', 0, 1}, {'w'}, {'b', 2, 3}}, 2), "+a+b-b-a");
  EXPECT_EQ(runOf({{'a', 0, 1}, {'b', 2, 3}, {'c', 4, 5}}, 3), "+a+b+c-c-a-b");
  EXPECT_EQ(runOf({{'a', 0, 1}, {'b', 1, 2}}, 2, 10),
            "'a' waits for collectives that do not begin");
}

} // namespace
