//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "BootstrapTesting.h"
#include "runtime/lib/Net/Address.h"
#include "runtime/lib/Net/Port.h"

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::net::testing;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

namespace {

TEST(Bootstrap, AllRanksLearnOfEachOther) {
  for (int64_t ranks : {1, 2, 4})
    expectStarted(startAll(ranks, [](int64_t, JobOptions &) {}));
}

TEST(Bootstrap, APortCanBeUsedAgainAtOnce) {
  const uint16_t port = freePort();
  for (int i = 0; i < 3; ++i)
    expectStarted(startAll(3, [](int64_t, JobOptions &) {}, port));
  // Also after a start that failed.
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(startAll(
                    2, [](int64_t rank, JobOptions &options) { options.size = 2 + rank; }, port)[0],
                HasSubstr("is one of 3 ranks, rank 0 of 2"));
}

TEST(Bootstrap, KeysDifferFromStartToStart) {
  std::vector<std::string> keys;
  for (int i = 0; i < 2; ++i)
    keys.push_back(startAll(2, [](int64_t, JobOptions &) {})[1]);
  EXPECT_NE(keys[0], keys[1]);
}

TEST(Bootstrap, WithoutASecret) {
  expectStarted(startAll(2, [](int64_t, JobOptions &options) { options.secret = {}; }));
}

TEST(Bootstrap, ThroughAFile) {
  Board board;
  Rendezvous rendezvous;
  rendezvous.file = board.path("where");
  // Left by a job that was killed.
  put(rendezvous.file, "braid-rendezvous-1 127.0.0.1:9 job6\n");
  expectStarted(startAll(3, [&](int64_t rank, JobOptions &options) {
    options.rendezvous = rendezvous;
    if (rank == 0)
      sleepFor(0.3);
  }));
  EXPECT_FALSE(std::filesystem::exists(rendezvous.file));
}

TEST(Bootstrap, IPv6IsRefused) {
  auto results = startAll(2, [](int64_t, JobOptions &options) {
    options.rendezvous.host = "::1";
    options.rendezvous.port = 4000;
  });
  const std::string reason =
      "tcp://[::1]:4000: '::1' has IPv6 addresses only, and ranks meet over IPv4";
  EXPECT_EQ(results[0], "rank 0 cannot listen at " + reason);
  EXPECT_EQ(results[1], "rank 1 cannot reach rank 0 at " + reason);
}

TEST(Bootstrap, RanksMayComeBeforeRankZero) {
  expectStarted(startAll(3, [](int64_t rank, JobOptions &) {
    if (rank == 0)
      sleepFor(0.5);
  }));
}

TEST(Bootstrap, LargeTables) {
  // Ten ranks whose addresses do not fit into one frame together.
  const uint16_t port = freePort();
  RankProcessesOfTest processes(10, [&](int64_t rank) {
    return start(optionsOf(rank, 10, onLoopback(port)),
                 {std::string(10000, static_cast<char>('a' + rank))});
  });
  const std::string first = processes.result(0);
  EXPECT_GT(first.size(), 100000U);
  for (int64_t rank = 1; rank < 10; ++rank)
    EXPECT_EQ(processes.result(rank), first);
}

TEST(Bootstrap, MissingRanksAreNamed) {
  const uint16_t port = freePort();
  auto results = startAll(
      2,
      [](int64_t, JobOptions &options) {
        options.size = 4;
        options.timeLimitSeconds = 1;
      },
      port);
  const std::string expected =
      "ranks 2 and 3 of 4 have not come to tcp://127.0.0.1:" + std::to_string(port) +
      " within 1.0 s";
  EXPECT_EQ(results[0], expected);
  EXPECT_EQ(results[1], expected);
}

TEST(Bootstrap, AMissingRankZeroIsNamed) {
  const uint16_t port = freePort();
  auto results = startAll(
      1,
      [](int64_t, JobOptions &options) {
        options.rank = 1;
        options.size = 2;
        options.timeLimitSeconds = 1;
      },
      port);
  EXPECT_THAT(results[0], StartsWith("rank 1 cannot reach rank 0 at tcp://127.0.0.1:" +
                                     std::to_string(port) + " within 1.0 s: "));
}

TEST(Bootstrap, AProgramThatDoesNotAnswerIsAskedAgain) {
  // One that listens and accepts nothing, and, behind it at the same port, rank 0.
  const uint16_t port = freePort();
  auto silent = std::make_unique<Port>();
  SocketAddress bound;
  ASSERT_EQ(silent->listen(resolve("127.0.0.1", port)->front(), bound), 0);
  RankProcessesOfTest processes(2, [&](int64_t rank) {
    silent->stopListening(); // of this process
    if (rank == 0)
      sleepFor(2);
    return start(optionsOf(rank, 2, onLoopback(port)));
  });
  sleepFor(1);
  silent.reset();
  expectStarted({processes.result(0), processes.result(1)});
}

TEST(Bootstrap, ARankTwice) {
  auto results = startAll(3, [](int64_t rank, JobOptions &options) {
    options.rank = std::min<int64_t>(rank, 1);
    options.size = 3;
  });
  for (const std::string &result : results)
    EXPECT_THAT(result, MatchesRegex("two processes are rank 1: process [0-9]+ of host '.*' and "
                                     "process [0-9]+ of host '.*'"));
}

TEST(Bootstrap, ASecondRankZeroFindsThePortTaken) {
  const uint16_t port = freePort();
  auto results = startAll(
      2,
      [](int64_t rank, JobOptions &options) {
        options.rank = 0;
        options.timeLimitSeconds = 1;
        if (rank == 1)
          sleepFor(0.3);
      },
      port);
  const std::string place = "tcp://127.0.0.1:" + std::to_string(port);
  EXPECT_EQ(results[0], "rank 1 of 2 has not come to " + place + " within 1.0 s");
  EXPECT_EQ(results[1],
            "rank 0 cannot listen at " + place + ": the port is taken by another program");
}

TEST(Bootstrap, WhatRanksDisagreeIn) {
  struct Case {
    const char *message;
    std::function<void(JobOptions &)> change;
  };
  const std::vector<Case> cases{
      {"is one of 3 ranks, rank 0 of 2", [](JobOptions &o) { o.size = 3; }},
      {"is outside of the ranks 0 to 1", [](JobOptions &o) { o.rank = 5, o.size = 6; }},
      {"has the bundle with SHA-256 cd34, rank 0 has ab12",
       [](JobOptions &o) { o.bundle = "cd34"; }},
      {"has mesh dp=2, rank 0 has tp=2", [](JobOptions &o) { o.mesh = "dp=2"; }},
      {"chooses collectives by the machine file with SHA-256 ef56, rank 0 by no machine file: "
       "expects one file on all hosts",
       [](JobOptions &o) { o.machine = "ef56"; }},
  };
  for (const Case &c : cases) {
    auto results = startAll(2, [&](int64_t rank, JobOptions &options) {
      if (rank == 1)
        c.change(options);
    });
    const std::string rank = std::string(c.message).find("outside") == 3 ? "5" : "1";
    const std::string expected = rank == "5" ? "is one of 6 ranks, rank 0 of 2" : c.message;
    for (const std::string &result : results)
      EXPECT_THAT(result,
                  MatchesRegex("rank " + rank + " \\(host '.*', process [0-9]+\\) " + expected));
  }
}

/// Those that are still connecting when the start fails are told why, too.
TEST(Bootstrap, RanksThatComeWhenTheStartHasFailed) {
  for (int round = 0; round < 20; ++round) {
    const auto results = startAll(10, [&](int64_t rank, JobOptions &options) {
      if (rank == 1)
        options.size = 3;
      sleepFor(0.002 * static_cast<double>(rank * round % 7));
    });
    for (const std::string &result : results)
      EXPECT_THAT(result, MatchesRegex("rank 1 \\(host '.*', process [0-9]+\\) is one of 3 ranks, "
                                       "rank 0 of 10"))
          << "round " << round;
  }
}

TEST(Bootstrap, AnotherSecret) {
  const uint16_t port = freePort();
  const std::string place = "tcp://127.0.0.1:" + std::to_string(port);
  auto results = startAll(
      3,
      [](int64_t rank, JobOptions &options) {
        options.timeLimitSeconds = 1.5;
        if (rank == 2)
          options.secret = secretOf("the secret of another job");
      },
      port);
  EXPECT_EQ(results[2], "rank 2 and rank 0 at " + place + " have different job secrets");
  const std::string expected = "rank 2 of 3 has not come to " + place +
                               " within 1.5 s; refused: a process at 127.0.0.1 has another job "
                               "secret";
  EXPECT_EQ(results[0], expected);
  EXPECT_EQ(results[1], expected);
}

TEST(Bootstrap, AnotherVersion) {
  const uint16_t port = freePort();
  const std::string place = "tcp://127.0.0.1:" + std::to_string(port);
  auto results = startAll(
      2,
      [](int64_t rank, JobOptions &options) {
        options.timeLimitSeconds = 1;
        if (rank == 1)
          options.version = 9;
      },
      port);
  EXPECT_EQ(results[0], "rank 1 of 2 has not come to " + place +
                            " within 1.0 s; refused: a process at 127.0.0.1 speaks version 9 of "
                            "the protocol, rank 0 speaks version 7");
  EXPECT_EQ(results[1], "rank 1 is refused by rank 0 at " + place +
                            ": this process speaks version 9 of the protocol, rank 0 speaks "
                            "version 7");
}

TEST(Bootstrap, AnotherJob) {
  // Its rank 1 comes by mistake; the right one comes later.
  auto results = startAll(3, [](int64_t rank, JobOptions &options) {
    options.size = 2;
    if (rank == 2) {
      options.rank = 1;
      sleepFor(0.3);
    } else if (rank == 1) {
      options.job = "job8";
    }
  });
  EXPECT_THAT(results[1], MatchesRegex("rank 1 \\(host '.*', process [0-9]+\\) belongs to job "
                                       "'job8', rank 0 to job 'job7'"));
  EXPECT_THAT(results[0], MatchesRegex("a0 b0 a1 b1 [0-9]+"));
  EXPECT_EQ(results[2], results[0]);
}

TEST(Bootstrap, AKilledRankEndsTheStart) {
  const uint16_t port = freePort();
  RankProcessesOfTest processes(
      2, [&](int64_t rank) { return start(optionsOf(rank, 3, onLoopback(port))); });
  awaitConnections(port, 1);
  // It has said hello, and both wait for rank 2.
  processes.awaitRest(1);
  processes.awaitRest(0);
  processes.signal(1, SIGKILL);
  EXPECT_THAT(processes.result(0),
              MatchesRegex("rank 1 \\(host '.*', process [0-9]+\\) is gone before the job has "
                           "started: .*"));
}

TEST(Bootstrap, AKilledRankZeroEndsTheStart) {
  const uint16_t port = freePort();
  RankProcessesOfTest processes(
      2, [&](int64_t rank) { return start(optionsOf(rank, 3, onLoopback(port))); });
  awaitConnections(port, 1);
  processes.awaitRest(1);
  processes.awaitRest(0);
  processes.signal(0, SIGKILL);
  EXPECT_THAT(processes.result(1), MatchesRegex("rank 0 at tcp://127.0.0.1:[0-9]+ is gone before "
                                                "the job has started: .*"));
}

TEST(Bootstrap, BadOptions) {
  EXPECT_ERROR(startJob(optionsOf(2, 2, onLoopback(9)), {}), "rank 2 is outside of 0 to 1");
  EXPECT_ERROR(startJob(optionsOf(0, 0, onLoopback(9)), {}),
               "a job expects 1 to 65536 ranks, got 0");
  JobOptions options = optionsOf(0, 2, onLoopback(9));
  options.job = "two words";
  EXPECT_ERROR(startJob(options, {}),
               "the name of a job expects 1 to 256 bytes without spaces, got 'two words'");
  EXPECT_ERROR(
      startJob(optionsOf(0, 2, onLoopback(9)), std::vector<std::string>(65)),
      "rank 0 has 65 links and says 12 bytes of itself, at most 64 and 32768 are expected");
}

TEST(Bootstrap, NamesThatDoNotResolve) {
  auto results = startAll(2, [](int64_t, JobOptions &options) {
    options.rendezvous.host = "no-such-host.invalid";
    options.rendezvous.port = 4000;
  });
  EXPECT_THAT(results[0], StartsWith("rank 0 cannot listen at tcp://no-such-host.invalid:4000: "
                                     "cannot resolve 'no-such-host.invalid': "));
  EXPECT_THAT(results[1],
              StartsWith("rank 1 cannot reach rank 0 at tcp://no-such-host.invalid:4000: "
                         "cannot resolve 'no-such-host.invalid': "));
}

TEST(Bootstrap, AnAddressOfAnotherHost) {
  auto results = startAll(1, [](int64_t, JobOptions &options) {
    options.size = 2;
    options.rendezvous.host = "198.51.100.7"; // of no host
  });
  EXPECT_THAT(results[0], MatchesRegex("rank 0 cannot listen at tcp://198.51.100.7:[0-9]+: .* "
                                       "\\(it expects an address of the host that it is on\\)"));
}

} // namespace
