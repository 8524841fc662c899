//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Processes of a job that tell each other where they are.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_CONTROLTESTING_H
#define BRAID_TEST_UNIT_RUNTIME_CONTROLTESTING_H

#include "NetTesting.h"
#include "ProcessTesting.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Net/Control.h"

#include <deque>

namespace braid::runtime::net::testing {

using namespace braid::runtime::testing;

/// A command at which a queue of these tests is.
struct TestCommand : NamedCommand {
  TestCommand(const char *kind, const std::string &label, std::vector<RankQueue> missingQueues = {})
      : queues(std::move(missingQueues)) {
    static const std::string kPath = "@main";
    operation = kind;
    name = label;
    path = &kPath;
  }
  std::optional<Queue> awaitedQueue() const override { return {}; }
  std::vector<RankQueue> missing() const override { return queues; }
  std::vector<RankQueue> queues;
};

/// A process of a job, with a run.
struct Process {
  int64_t rank, ranks;
  const Board &board;
  RunControl run;
  Counter counter;                  ///< that nobody increments
  std::deque<TestCommand> kept;     ///< as commands of a program, which other threads read
  std::unique_ptr<Control> control; ///< last, as it reads the rest

  /// A queue comes to a command.
  void at(Queue queue, const TestCommand &command) {
    kept.push_back(command);
    run.queue(rank, queue).at.store(&kept.back(), std::memory_order_release);
  }
  /// Waits for other ranks at a collective, until the run fails.
  Status waitFor(std::vector<RankQueue> missing) {
    const int64_t first = missing.front().rank;
    at(1, TestCommand("all_reduce", "sum", std::move(missing)));
    run.wait(counter, 1, run.queue(rank, 1), Waiting::peer, first);
    Status status = run.failure();
    run.queue(rank, 1).at.store(nullptr);
    return status;
  }
  void meet(const std::string &name) const { board.meet(name, rank, ranks); }
  /// Returns when what is said here of a rank is this.
  Status expectPosition(int64_t other, const std::string &text) const {
    for (const int64_t until = nowNs() + 20 * kSecond; nowNs() < until; sleepFor(0.01))
      if (run.describePosition(other) == text)
        return {};
    return Status::error("rank ", other, " is ", run.describePosition(other));
  }
};

using Work = std::function<Status(Process &)>;

/// `limit` is that of a run without progress, `silence` that of a process that says nothing. Each
/// `ranksOfHost` ranks take each other for ranks of one host.
inline Status onProcess(const Board &board, int64_t rank, int64_t ranks, uint16_t port,
                        double limit, double silence, const Work &work, int64_t ranksOfHost) {
  ASSIGN_OR_RETURN(auto networks, openNetworks({}));
  ASSIGN_OR_RETURN(std::unique_ptr<Link> link, Link::create(networks, rank, ranks));
  ASSIGN_OR_RETURN(Job job, joinJob(networks, optionsOf(rank, ranks, onLoopback(port)), *link));
  for (size_t r = 0; r < job.members.size(); ++r)
    job.members[r].hostId = "host " + std::to_string(static_cast<int64_t>(r) / ranksOfHost);
  Process process{
      rank,
      ranks,
      board,
      RunControl(ranks,
                 {{QueueKind::compute, "compute"}, {QueueKind::communication, "communication"}},
                 limit, {}),
      Counter(),
      {},
      nullptr};
  ControlOptions options;
  options.timeLimitSeconds = silence;
  options.periodSeconds = 0.05;
  ASSIGN_OR_RETURN(process.control, Control::start(std::move(link), job, options));
  return work(process);
}

inline std::string text(const Status &status) { return status.ok() ? "done" : status.message(); }

/// What the ranks say, or "signal 9"; `meanwhile` runs in the test.
inline std::vector<std::string>
onProcesses(int64_t ranks, double limit, const Work &work,
            const std::function<void(const Board &, RankProcessesOfTest &)> &meanwhile = {},
            double silence = 30, int64_t ranksOfHost = 64) {
  Board board;
  const uint16_t port = freePort();
  RankProcessesOfTest processes(ranks, [&](int64_t rank) {
    return text(onProcess(board, rank, ranks, port, limit, silence, work, ranksOfHost));
  });
  if (meanwhile)
    meanwhile(board, processes);
  std::vector<std::string> results;
  for (int64_t rank = 0; rank < ranks; ++rank)
    results.push_back(processes.result(rank, 30));
  return results;
}

inline void expectAllDone(const std::vector<std::string> &results) {
  for (const std::string &result : results)
    EXPECT_EQ(result, "done");
}

} // namespace braid::runtime::net::testing
#endif // BRAID_TEST_UNIT_RUNTIME_CONTROLTESTING_H
