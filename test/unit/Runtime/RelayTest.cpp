//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Control (Control.h) where processes of several hosts hear each other through relays. Six ranks
// on three hosts: 0, 2 and 4 are the relays.
//
//===----------------------------------------------------------------------===//
#include "ControlTesting.h"

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::net::testing;
using ::testing::MatchesRegex;

namespace {

constexpr int64_t kRanks = 6, kRanksOfHost = 2;

std::vector<std::string>
onHosts(const Work &work,
        const std::function<void(const Board &, RankProcessesOfTest &)> &meanwhile = {},
        double silence = 30) {
  return onProcesses(kRanks, 40, work, meanwhile, silence, kRanksOfHost);
}

std::string matmul(const std::string &name) {
  return "at matmul '" + name + "' in @main on its compute queue";
}

TEST(Relay, PlacesOfAllRanksAreKnown) {
  expectAllDone(onHosts([](Process &process) -> Status {
    process.run.begin();
    process.control->begin(process.run, 1);
    process.at(0, TestCommand("matmul", "m" + std::to_string(process.rank)));
    for (int64_t other = 0; other < kRanks; ++other)
      RETURN_IF_ERROR(process.expectPosition(other, matmul("m" + std::to_string(other))));
    process.meet("known");
    process.control->end();
    return {};
  }));
}

TEST(Relay, AFailureOfAnyRankEndsTheRunOnAll) {
  for (int64_t failing : {0, 3, 4}) {
    const std::string expected = "rank " + std::to_string(failing) + ": id 7 is outside";
    for (const std::string &result : onHosts([&](Process &process) -> Status {
           process.run.begin();
           process.control->begin(process.run, 1);
           process.meet("begun");
           Status status;
           if (process.rank == failing) {
             process.run.fail(Status::error(expected));
             status = process.run.failure();
           } else {
             status = process.waitFor({{failing, 1}});
           }
           process.control->end();
           return status;
         }))
      EXPECT_EQ(result, expected);
  }
}

/// One that relays, one that does not.
TEST(Relay, AKilledRankIsNamedOnAllHosts) {
  for (int64_t killed : {2, 5}) {
    auto results = onHosts(
        [&](Process &process) -> Status {
          process.run.begin();
          process.control->begin(process.run, 1);
          if (process.rank == killed) {
            process.at(0, TestCommand("matmul", "query"));
            process.meet("there");
            sleepFor(60);
          }
          RETURN_IF_ERROR(process.expectPosition(killed, matmul("query")));
          process.meet("there");
          const Status status = process.waitFor({{killed, 1}});
          process.control->end();
          // Later runs cannot begin, on hosts that were not connected to it either.
          for (const int64_t until = nowNs() + 20 * kSecond;
               process.control->state().ok() && nowNs() < until; sleepFor(0.01))
            ;
          return process.control->state().ok() ? Status::error("nothing is lost") : status;
        },
        [&](const Board &board, RankProcessesOfTest &processes) {
          for (int64_t rank = 0; rank < kRanks; ++rank)
            board.read("there" + std::to_string(rank));
          processes.signal(killed, SIGKILL);
        });
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      const std::string &result = results[static_cast<size_t>(rank)];
      if (rank == killed)
        EXPECT_EQ(result, "signal 9");
      else
        EXPECT_THAT(result, MatchesRegex("the connection to rank " + std::to_string(killed) +
                                         " \\(.*\\) is lost: .* while it was " + matmul("query") +
                                         ", rank [0-5] (waits for it|is) at all_reduce 'sum' in "
                                         "@main.*"));
    }
  }
}

/// While it is stopped, the next rank of its host passes on what the others say.
TEST(Relay, AStoppedRankIsNamedOnAllHostsWhichStillHearTheOthers) {
  for (int64_t stopped : {2, 5}) {
    const int64_t besides = stopped == 2 ? 3 : 4;
    auto results = onHosts(
        [&](Process &process) -> Status {
          process.run.begin();
          process.control->begin(process.run, 1);
          if (process.rank == stopped) {
            process.at(0, TestCommand("matmul", "query"));
            process.meet("there");
            sleepFor(60);
          }
          RETURN_IF_ERROR(process.expectPosition(stopped, matmul("query")));
          process.meet("there");
          process.board.read("stopped");
          if (process.rank == besides)
            process.at(0, TestCommand("matmul", "later"));
          RETURN_IF_ERROR(process.expectPosition(besides, matmul("later")));
          if (process.run.failed())
            return Status::error("too late: ", process.run.failure().message());
          for (const int64_t until = nowNs() + 20 * kSecond;
               !process.run.failed() && nowNs() < until; sleepFor(0.01))
            ++process.run.queue(process.rank, 0).progress;
          process.control->end();
          return process.run.failure();
        },
        [&](const Board &board, RankProcessesOfTest &processes) {
          for (int64_t rank = 0; rank < kRanks; ++rank)
            board.read("there" + std::to_string(rank));
          processes.signal(stopped, SIGSTOP);
          board.write("stopped", "");
          for (int64_t rank = 0; rank < kRanks; ++rank)
            if (rank != stopped)
              EXPECT_THAT(processes.result(rank, 30),
                          MatchesRegex("rank " + std::to_string(stopped) +
                                       " \\(.*\\) has not been heard of for 4\\.[0-9] s while it "
                                       "was " +
                                       matmul("query") + ".*"));
          processes.signal(stopped, SIGKILL);
        },
        4);
    EXPECT_EQ(results[static_cast<size_t>(stopped)], "signal 9");
  }
}

/// A relay that ends while others of its host go on is followed by the next rank.
TEST(Relay, TheOthersOfAHostGoOnWithoutTheirRelay) {
  auto results = onHosts([](Process &process) -> Status {
    process.run.begin();
    process.control->begin(process.run, 1);
    process.meet("begun");
    if (process.rank == 2) {
      process.control->end();
      process.control.reset();
      process.board.write("gone", "");
      return {};
    }
    process.board.read("gone");
    process.at(0, TestCommand("matmul", "m" + std::to_string(process.rank)));
    for (int64_t other : {0, 1, 3, 4, 5})
      RETURN_IF_ERROR(process.expectPosition(other, matmul("m" + std::to_string(other))));
    process.board.write("known" + std::to_string(process.rank), "");
    for (int64_t rank : {0, 1, 3, 4, 5})
      process.board.read("known" + std::to_string(rank));
    Status status;
    if (process.rank == 3) {
      process.run.fail(Status::error("rank 3 fails"));
      status = process.run.failure();
    } else {
      status = process.waitFor({{3, 1}});
    }
    process.control->end();
    return status;
  });
  for (int64_t rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(results[static_cast<size_t>(rank)], rank == 2 ? "done" : "rank 3 fails");
}

} // namespace
