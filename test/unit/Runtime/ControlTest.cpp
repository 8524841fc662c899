//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ControlTesting.h"

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::net::testing;
using namespace braid::runtime::testing;
using ::testing::MatchesRegex;

namespace {

TEST(Control, PlacesOfAllRanksAreKnown) {
  expectAllDone(onProcesses(3, 20, [](Process &process) -> Status {
    process.run.begin();
    process.control->begin(process.run, 1);
    const TestCommand command("matmul", "m" + std::to_string(process.rank));
    process.at(0, command);
    for (int64_t other = 0; other < 3; ++other)
      RETURN_IF_ERROR(process.expectPosition(other, "at matmul 'm" + std::to_string(other) +
                                                        "' in @main on its compute queue"));
    process.meet("known");
    // Of a rank that has ended its run nothing is known in it.
    if (process.rank == 2)
      process.control->end();
    else
      RETURN_IF_ERROR(process.expectPosition(2, "not at any command of its compute queue"));
    process.meet("ended");
    process.control->end();
    return {};
  }));
}

TEST(Control, AFailureEndsTheRunOnAllAndTheNextOneRuns) {
  auto results = onProcesses(3, 20, [](Process &process) -> Status {
    Status failure;
    for (uint64_t run : {1, 2}) {
      process.run.begin();
      process.control->begin(process.run, run);
      if (run == 2) {
        // Nothing of the first failure is left.
        sleepFor(0.3);
        if (process.run.failed())
          return Status::error("again: ", process.run.failure().message());
        process.meet("second");
      } else if (process.rank == 1) {
        process.run.fail(Status::error("rank 1: id 7 is outside of its table"));
        failure = process.run.failure();
      } else {
        failure = process.waitFor({{1, 1}});
      }
      process.control->end();
    }
    return failure;
  });
  for (const std::string &result : results)
    EXPECT_EQ(result, "rank 1: id 7 is outside of its table");
}

TEST(Control, AFailureOfARunThatHasNotBegunHere) {
  auto results = onProcesses(2, 20, [](Process &process) -> Status {
    if (process.rank == 1) {
      process.run.begin();
      process.control->begin(process.run, 5);
      process.run.fail(Status::error("rank 1: no memory"));
      process.control->end();
    }
    process.meet("failed");
    sleepFor(0.3);
    if (process.rank == 1)
      return {};
    process.run.begin();
    process.control->begin(process.run, 5);
    process.control->end();
    return process.run.failure();
  });
  EXPECT_EQ(results[0], "rank 1: no memory");
}

/// Rank 1 fails run 1 when rank 0 has ended it already.
TEST(Control, AFailureOfARunThatIsOverHereFailsTheNextOneOfTheModel) {
  for (const bool isRunning : {false, true})
    for (const bool isNewModel : {false, true}) {
      auto results = onProcesses(2, 20, [&](Process &process) -> Status {
        process.run.begin();
        process.control->begin(process.run, 1, true);
        if (process.rank == 1) {
          process.meet("over");
          process.run.fail(Status::error("rank 1: id 7 is outside of its table"));
          process.control->end();
          process.meet("told");
          process.meet("end");
          return {};
        }
        process.control->end();
        process.run.begin();
        if (isRunning)
          process.control->begin(process.run, 2, isNewModel);
        process.meet("over");
        process.meet("told");
        sleepFor(0.3);
        if (!isRunning)
          process.control->begin(process.run, 2, isNewModel);
        Status failure = process.run.failure();
        process.control->end();
        process.meet("end");
        return failure;
      });
      EXPECT_EQ(results[0], isNewModel ? "done" : "rank 1: id 7 is outside of its table");
      EXPECT_EQ(results[1], "done");
    }
}

TEST(Control, AFailureThatIsOverHereTooIsForgotten) {
  auto results = onProcesses(2, 20, [&](Process &process) -> Status {
    for (uint64_t run : {1, 2}) {
      process.run.begin();
      process.control->begin(process.run, run, run == 1);
      process.meet("run " + std::to_string(run));
      if (run == 1)
        process.run.fail(Status::error("rank " + std::to_string(process.rank) + " fails"));
      else
        sleepFor(0.3);
      process.control->end();
    }
    process.meet("end");
    return process.run.failure();
  });
  expectAllDone(results);
}

/// A rank that ends says why, and is lost; whoever notices the loss first waits for the reason.
TEST(Control, ALossHasTheReasonThatComesAfterIt) {
  auto results = onProcesses(3, 20, [&](Process &process) -> Status {
    process.run.begin();
    process.control->begin(process.run, 1);
    process.meet("begun");
    Status status;
    if (process.rank == 0) {
      status = process.control->describeLoss(1, Status::error("the connection to rank 1 is lost"));
    } else if (process.rank == 1) {
      sleepFor(0.2);
      process.run.fail(Status::error("rank 1: id 7 is outside of its table"));
    } else {
      // Nothing else is said of this one.
      const Status other = process.waitFor({{1, 1}});
      status = process.control->describeLoss(0, other);
    }
    process.control->end();
    process.meet("end");
    return status;
  });
  EXPECT_EQ(results[0], "rank 1: id 7 is outside of its table");
  EXPECT_EQ(results[2], "rank 1: id 7 is outside of its table");
  results = onProcesses(2, 20, [&](Process &process) -> Status {
    process.run.begin();
    process.control->begin(process.run, 1);
    process.meet("begun");
    Status status;
    if (process.rank == 0)
      status = process.control->describeLoss(1, Status::error("the connection is lost"));
    process.meet("end");
    process.control->end();
    return status;
  });
  EXPECT_THAT(results[0], MatchesRegex("the connection is lost while it was not at any command of "
                                       "its compute queue"));
}

/// So it has where the rank that notices it has done its part of the run before.
TEST(Control, ALossHasTheReasonOfARunThatIsOverHere) {
  auto results = onProcesses(2, 20, [&](Process &process) -> Status {
    process.run.begin();
    process.control->begin(process.run, 1);
    process.meet("begun");
    if (process.rank == 1) {
      sleepFor(0.2);
      process.run.fail(Status::error("rank 1: id 7 is outside of its table", Code::invalid));
      process.control->end();
      return {};
    }
    process.control->end();
    Status status = process.control->describeLoss(1, Status::error("the connection is lost"));
    return status.code() == Code::invalid ? status : Status::error("another code");
  });
  EXPECT_EQ(results[0], "rank 1: id 7 is outside of its table");
  EXPECT_EQ(results[1], "done");
}

TEST(Control, AKilledRankIsNamedWithItsPlace) {
  auto results = onProcesses(
      3, 20,
      [](Process &process) -> Status {
        process.run.begin();
        process.control->begin(process.run, 1);
        if (process.rank == 2) {
          const TestCommand command("matmul", "query");
          process.at(0, command);
          process.meet("there");
          sleepFor(60);
        }
        std::thread there([&] {
          (void)process.expectPosition(2, "at matmul 'query' in @main on its compute queue");
          process.meet("there");
        });
        const Status status = process.waitFor({{2, 1}});
        there.join();
        process.control->end();
        // The other rank may have told of it first.
        for (const int64_t until = nowNs() + 20 * kSecond;
             process.control->state().ok() && nowNs() < until; sleepFor(0.01))
          ;
        // A later run cannot begin.
        process.run.begin();
        process.control->begin(process.run, 2);
        process.control->end();
        if (!process.run.failed() || process.control->state().ok())
          return Status::error("a later run begins");
        return status;
      },
      [](const Board &board, RankProcessesOfTest &processes) {
        board.read("there0"), board.read("there1"), board.read("there2");
        sleepFor(0.2);
        processes.signal(2, SIGKILL);
      });
  EXPECT_EQ(results[2], "signal 9");
  for (int64_t rank : {0, 1})
    EXPECT_THAT(results[static_cast<size_t>(rank)],
                MatchesRegex("the connection to rank 2 \\(.*\\) is lost: .* while it was at matmul "
                             "'query' in @main on its compute queue, rank [01] waits for it at "
                             "all_reduce 'sum' in @main"));
}

TEST(Control, AStoppedRankIsNamed) {
  auto results = onProcesses(
      2, 30,
      [](Process &process) -> Status {
        process.run.begin();
        process.control->begin(process.run, 1);
        const TestCommand command("kernel", "gelu");
        if (process.rank == 1) {
          process.at(0, command);
          process.meet("there");
          sleepFor(60);
        }
        RETURN_IF_ERROR(
            process.expectPosition(1, "at kernel 'gelu' in @main on its compute queue"));
        process.meet("there");
        // Progress here leaves the silence as the only reason.
        for (const int64_t until = nowNs() + 20 * kSecond; !process.run.failed() && nowNs() < until;
             sleepFor(0.01))
          ++process.run.queue(0, 0).progress;
        process.control->end();
        return process.run.failure();
      },
      [](const Board &board, RankProcessesOfTest &processes) {
        board.read("there0");
        processes.signal(1, SIGSTOP);
        EXPECT_THAT(
            processes.result(0, 20),
            MatchesRegex("rank 1 \\(.*\\) has not been heard of for 3\\.[0-9] s while it was at "
                         "kernel 'gelu' in @main on its compute queue"));
        processes.signal(1, SIGKILL);
      },
      3);
  EXPECT_EQ(results[1], "signal 9");
}

TEST(Control, AStallIsToldAsOnOneHost) {
  auto results = onProcesses(2, 1, [](Process &process) -> Status {
    process.run.begin();
    process.control->begin(process.run, 1);
    const TestCommand command("matmul", "late");
    Status status;
    if (process.rank == 0) {
      status = process.waitFor({{1, 1}});
    } else {
      process.at(0, command);
      // Until rank 0 gives up.
      for (const int64_t until = nowNs() + 20 * kSecond; !process.run.failed() && nowNs() < until;)
        sleepFor(0.01);
      status = process.run.failure();
    }
    process.control->end();
    process.meet("end");
    return status;
  });
  const std::string expected =
      "rank 0: all_reduce 'sum' in @main on the communication queue waited 1\\.[0-9] s for rank 1 "
      "\\(.*\\), which has not arrived \\(rank 1 is at matmul 'late' in @main on its compute "
      "queue\\)";
  EXPECT_THAT(results[0], MatchesRegex(expected));
  EXPECT_EQ(results[1], results[0]);
}

TEST(Control, ASlowRankIsNoStall) {
  expectAllDone(onProcesses(2, 1, [](Process &process) -> Status {
    process.run.begin();
    process.control->begin(process.run, 1);
    std::thread end;
    if (process.rank == 1) {
      // Three limits long it does a little.
      for (const int64_t until = nowNs() + 3 * kSecond; nowNs() < until; sleepFor(0.05))
        ++process.run.queue(1, 0).progress;
      process.board.write("done", "");
    } else {
      end = std::thread([&] {
        process.board.read("done");
        process.counter.increment();
      });
      (void)process.waitFor({{1, 1}});
      end.join();
    }
    const Status status = process.run.failure();
    process.meet("end");
    process.control->end();
    return status;
  }));
}

TEST(Control, ARankThatLeavesIsNoFailureUnlessItIsWaitedFor) {
  for (const bool isAwaited : {false, true}) {
    auto results = onProcesses(2, 20, [&](Process &process) -> Status {
      process.run.begin();
      process.control->begin(process.run, 1);
      process.meet("begun");
      if (process.rank == 1) {
        process.control->end();
        return {}; // says goodbye
      }
      Status status;
      if (isAwaited) {
        status = process.waitFor({{1, 1}});
      } else {
        sleepFor(2);
        status = process.run.failure();
      }
      process.control->end();
      return status;
    });
    EXPECT_EQ(results[1], "done");
    if (isAwaited)
      EXPECT_THAT(
          results[0],
          MatchesRegex("rank 1 \\(.*\\) has ended its part of the job while it was not at any "
                       "command of its compute queue, rank 0 waits for it at all_reduce "
                       "'sum' in @main"));
    else
      EXPECT_EQ(results[0], "done");
  }
}

/// Rank 1 sends frames by itself; rank 0 has a Control and returns the failure of its run.
std::vector<std::string>
withForger(const std::function<void(Link &, const Job &, const Board &)> &forge) {
  Board board;
  const uint16_t port = freePort();
  RankProcessesOfTest processes(2, [&](int64_t rank) {
    if (rank == 0)
      return text(onProcess(
          board, 0, 2, port, 1.5, 3,
          [](Process &process) -> Status {
            process.run.begin();
            process.control->begin(process.run, 1);
            for (const int64_t until = nowNs() + 10 * kSecond;
                 !process.run.failed() && nowNs() < until;)
              sleepFor(0.01);
            process.control->end();
            return process.run.failure();
          },
          64));
    auto networks = openNetworks({});
    auto link = Link::create(*networks, 1, 2);
    Result<Job> job = joinJob(*networks, optionsOf(1, 2, onLoopback(port)), **link);
    if (!job.ok())
      return job.status().message();
    forge(**link, *job, board);
    return std::string("done");
  });
  return {processes.result(0, 30), processes.result(1, 30)};
}

void sendForged(Link &link, const std::string &key, uint64_t number, const Frame &frame) {
  FrameBytes message;
  appendRelayed(message, Reach::all,
                EnvelopeSeal(key, "braid control").seal(1, kAllRanks, number, encode(frame)));
  for (const int64_t until = nowNs() + 5 * kSecond;
       link.state(0).ok() && !link.sendControl(0, message) && nowNs() < until;)
    (void)link.progress(nowNs() + kSecond / 1000);
  for (const int64_t until = nowNs() + kSecond / 5; nowNs() < until;)
    (void)link.progress(until);
}

TEST(Control, FramesWithoutTheKeyAreNotHeard) {
  auto results = withForger([](Link &link, const Job &, const Board &) {
    // Until rank 0 gives up.
    for (uint64_t number = 1; number < 50 && link.state(0).ok(); ++number)
      sendForged(link, "another key", number, Places());
  });
  EXPECT_THAT(results[0], MatchesRegex("rank 1 \\(.*\\) has not been heard of for 3\\.[0-9] s"));
}

TEST(Control, RepeatedFramesAreNotHeard) {
  auto results = withForger([](Link &link, const Job &job, const Board &) {
    sendForged(link, job.key, 7, Places());
    for (uint64_t number : {7, 6, 1})
      sendForged(link, job.key, number, Failure{1, 3, "repeated"});
    sendForged(link, job.key, 8, Failure{1, 3, "genuine"});
  });
  EXPECT_EQ(results[0], "genuine");
}

TEST(Mirror, RefusesPlacesThatDoNotExist) {
  RunControl run(2, {{QueueKind::compute, "compute"}}, 1, {});
  Mirror mirror;
  Places places{1, true, {}};
  QueuePlace place;
  place.isAtCommand = true;
  place.operation = "matmul";
  auto positionWith = [&](const std::function<void(QueuePlace &)> &change) {
    QueuePlace changed = place;
    change(changed);
    places.queues = {changed};
    mirror.write(run, 1, places, 1);
    return run.describePosition(1);
  };
  const std::string there = "at matmul on its compute queue";
  EXPECT_EQ(positionWith([](QueuePlace &) {}), there);
  // It stays where it is.
  EXPECT_EQ(positionWith([](QueuePlace &p) { p.queue = 1, p.operation = "copy"; }), there);
  EXPECT_EQ(positionWith([](QueuePlace &p) { p.waiting = 9, p.operation = "copy"; }), there);
  const std::string nowhere = "not at any command of its compute queue";
  EXPECT_EQ(positionWith([](QueuePlace &p) { p.awaitedQueue = 3; }), nowhere);
  EXPECT_EQ(positionWith([](QueuePlace &p) { p.missing = {{0, 3}}; }), nowhere);
  // A rank that does not exist is not waited for.
  EXPECT_EQ(positionWith([](QueuePlace &p) { p.missing = {{7, 0}}; }), there);
  EXPECT_EQ(positionWith([](QueuePlace &p) { p.waiting = 2, p.missing = {{7, 0}, {0, 0}}; }),
            there);
  EXPECT_EQ(run.waiter(0), "rank 1 waits for it at matmul");
}

/// What is said of three ranks in one all_reduce that wait for these, or are at a matmul instead.
std::string saidOf(const std::vector<std::vector<RankQueue>> &missing) {
  RunControl run(3, {{QueueKind::compute, "compute"}, {QueueKind::communication, "communication"}},
                 0.05, {});
  run.begin();
  std::deque<TestCommand> commands;
  for (int64_t rank = 0; rank < 3; ++rank) {
    const auto &its = missing[static_cast<size_t>(rank)];
    commands.emplace_back(its.empty() ? "matmul" : "all_reduce", "sum", its);
    QueueState &queue = run.queue(rank, its.empty() ? 0 : 1);
    queue.at.store(&commands.back());
    queue.since.store(nowNs());
    queue.waiting.store(its.empty() ? Waiting::nothing : Waiting::peer);
  }
  RunControl::Watch watch;
  while (run.poll(watch))
    sleepFor(0.005);
  return run.failure().message();
}

TEST(RunControl, InOneCollectiveTheRankThatDoesNotWaitIsNamed) {
  EXPECT_THAT(saidOf({{{1, 1}}, {{0, 1}}, {{0, 1}, {1, 1}}}),
              MatchesRegex("ranks 0 and 1 wait for each other in all_reduce 'sum' in @main: what "
                           "they send does not arrive"));
  EXPECT_THAT(saidOf({{{2, 1}, {1, 1}}, {}, {{0, 1}, {1, 1}}}),
              MatchesRegex("rank 0: all_reduce 'sum' in @main on the communication queue waited "
                           "0\\.[0-9] s for ranks 2 and 1, which have not arrived \\(rank 2 is at "
                           "all_reduce 'sum' in @main on its communication queue; rank 1 is at "
                           "matmul 'sum' in @main on its compute queue\\)"));
}

} // namespace
