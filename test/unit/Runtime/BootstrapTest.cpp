//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Net/Bootstrap.h"
#include "NetTesting.h"
#include "ProcessTesting.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Net/Address.h"
#include "runtime/lib/Net/Channel.h"
#include "runtime/lib/Net/Host.h"
#include "runtime/lib/Net/Port.h"

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::net::testing;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

namespace {

/// The addresses of a job's ranks and a number made of its key, or the error.
std::string start(const JobOptions &options, const std::vector<std::string> &addresses) {
  const int64_t begin = nowNs();
  Result<Job> job = startJob(options, addresses);
  const double took = static_cast<double>(nowNs() - begin) * 1e-9;
  if (took > options.timeLimitSeconds + 2)
    return "took " + std::to_string(took) + " s";
  if (!job.ok())
    return job.status().message();
  std::string text;
  for (const Member &member : job->members) {
    for (const std::string &address : member.addresses)
      text += address + " ";
    if (member.hostId != hostId() || member.host != hostName())
      text += "of another host ";
  }
  return text + std::to_string(std::hash<std::string>()(job->key));
}

std::string start(const JobOptions &options) {
  return start(options, {"a" + std::to_string(options.rank), "b" + std::to_string(options.rank)});
}

/// What each of the ranks says; `change` makes their options differ.
std::vector<std::string> startAll(int64_t ranks,
                                  const std::function<void(int64_t, JobOptions &)> &change,
                                  uint16_t port = freePort()) {
  RankProcessesOfTest processes(ranks, [&](int64_t rank) {
    JobOptions options = optionsOf(rank, ranks, onLoopback(port));
    change(rank, options);
    return start(options);
  });
  std::vector<std::string> results;
  for (int64_t rank = 0; rank < ranks; ++rank)
    results.push_back(processes.result(rank));
  return results;
}

void expectStarted(const std::vector<std::string> &results) {
  std::string all;
  for (size_t rank = 0; rank < results.size(); ++rank)
    all += "a" + std::to_string(rank) + " b" + std::to_string(rank) + " ";
  EXPECT_THAT(results[0], MatchesRegex(all + "[0-9]+"));
  for (const std::string &result : results)
    EXPECT_EQ(result, results[0]);
}

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
                            "the protocol, rank 0 speaks version 6");
  EXPECT_EQ(results[1], "rank 1 is refused by rank 0 at " + place +
                            ": this process speaks version 9 of the protocol, rank 0 speaks "
                            "version 6");
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

/// Opens a connection to the port and writes bytes, as a stranger.
int connectTo(uint16_t port, const std::string &bytes) {
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  const SocketAddress address = resolve("127.0.0.1", port)->front();
  for (int i = 0; i < 1000 && connect(file, address.get(), address.length) != 0; ++i)
    sleepFor(0.01);
  (void)!write(file, bytes.data(), bytes.size());
  return file;
}

TEST(Bootstrap, StrangersOnThePortChangeNothing) {
  const uint16_t port = freePort();
  Board board;
  RankProcessesOfTest processes(3, [&](int64_t rank) {
    if (rank > 0)
      board.read("noise");
    return start(optionsOf(rank, 3, onLoopback(port)));
  });
  std::vector<int> files;
  uint64_t state = 1;
  for (int i = 0; i < 40; ++i) {
    std::string bytes(static_cast<size_t>(1) << (i % 14), '\0');
    for (char &byte : bytes)
      byte = static_cast<char>((state = state * 6364136223846793005u + 1) >> 56);
    // Some say nothing, some close at once, some ask for a web page.
    if (i % 5 == 0)
      bytes = i % 2 == 0 ? "" : "GET / HTTP/1.1\r\nHost: braid\r\n\r\n";
    // Some announce less than they send: as a number of 4 or 8 bytes, of 100 and of none.
    if (i % 5 == 1)
      bytes = std::string(1, i % 2 == 0 ? 'd' : '\0') + std::string(i % 3 == 0 ? 3 : 7, '\0') +
              std::string(300, 'a');
    if (i % 5 == 2)
      bytes = std::string(4096, i % 2 == 0 ? '\0' : '\xff');
    files.push_back(connectTo(port, bytes));
    if (i % 3 == 0) {
      close(files.back());
      files.pop_back();
    }
  }
  sleepFor(0.2);
  board.write("noise", "");
  std::vector<std::string> results;
  for (int64_t rank = 0; rank < 3; ++rank)
    results.push_back(processes.result(rank));
  expectStarted(results);
  for (int file : files)
    close(file);
}

TEST(Bootstrap, StrangersThatAreSlowChangeNothing) {
  // They open connections and send a byte now and then, as if more came, for as long as the start
  // takes; the limit for a hello is longer than that of the start.
  const uint16_t port = freePort();
  Board board;
  RankProcessesOfTest processes(4, [&](int64_t rank) -> std::string {
    JobOptions options = optionsOf(rank, 3, onLoopback(port));
    options.helloLimitSeconds = 60;
    if (rank < 3) {
      if (rank > 0)
        board.read("slow");
      const std::string said = start(options);
      board.write("done" + std::to_string(rank), "");
      return said;
    }
    std::vector<int> files;
    for (int i = 0; i < 8; ++i)
      files.push_back(connectTo(port, "\1"));
    signal(SIGPIPE, SIG_IGN); // NOLINT: a process of its own
    board.write("slow", "");
    for (int i = 0; !std::filesystem::exists(board.path("done0")); ++i) {
      (void)!write(files[static_cast<size_t>(i) % files.size()], &i, 1);
      sleepFor(0.005);
    }
    return "done";
  });
  std::vector<std::string> results;
  for (int64_t rank = 0; rank < 3; ++rank)
    results.push_back(processes.result(rank));
  expectStarted(results);
  EXPECT_EQ(processes.result(3), "done");
}

/// A process that sends frames, but what it likes.
class Stranger {
public:
  static Result<std::unique_ptr<Stranger>> create(uint16_t port) {
    auto stranger = std::make_unique<Stranger>();
    stranger->address = resolve("127.0.0.1", port)->front();
    ::close(connectTo(port, "")); // rank 0 listens by then
    return stranger;
  }
  /// Connects, sends, and returns the answer of rank 0; nothing when it ends the connection or says
  /// nothing for 2 s.
  FrameBytes say(const FrameBytes &bytes) {
    if (endpoint == 0 && !port.connect(address, endpoint).ok())
      return {};
    port.send(endpoint, bytes);
    for (const int64_t until = nowNs() + 2 * kSecond; nowNs() < until;) {
      (void)port.wait(until);
      if (auto arrivals = port.takeArrivals(); !arrivals.empty())
        return arrivals.back().bytes;
      if (!port.takeLosses().empty()) {
        disconnect();
        return {};
      }
    }
    return {};
  }
  void disconnect() {
    if (endpoint != 0)
      port.end(std::exchange(endpoint, 0));
  }
  void close() { port.close(nowNs() + kSecond); }

private:
  SocketAddress address;
  Port port;
  Port::Endpoint endpoint = 0;
};

TEST(Bootstrap, FramesOfStrangersChangeNothing) {
  const uint16_t port = freePort();
  Board board;
  RankProcessesOfTest processes(4, [&](int64_t rank) -> std::string {
    JobOptions options = optionsOf(rank, 3, onLoopback(port));
    options.helloLimitSeconds = 0.5;
    if (rank < 3) {
      if (rank > 0)
        board.read("noise");
      return start(options);
    }
    auto stranger = Stranger::create(port);
    if (!stranger.ok())
      return stranger.status().message();
    // No frame; a frame that is too large; one that does not come first; silence after a challenge.
    for (const FrameBytes &bytes : {FrameBytes(10, std::byte(1)), FrameBytes(100000, std::byte(2)),
                                    encode(Go()), encode(Introduction())}) {
      (*stranger)->say(bytes);
      (*stranger)->disconnect();
    }
    // A hello without the secret.
    (*stranger)->say(encode(Introduction()));
    FrameBytes hello = encode(Hello());
    hello.resize(hello.size() + 32);
    (*stranger)->say(hello);
    board.write("noise", "");
    (*stranger)->close();
    return "done";
  });
  EXPECT_EQ(processes.result(3), "done");
  std::vector<std::string> results;
  for (int64_t rank = 0; rank < 3; ++rank)
    results.push_back(processes.result(rank));
  expectStarted(results);
}

/// Opens connections and introduces itself in each; returns in how many rank 0 has answered, and in
/// how many it has not.
Result<std::pair<int, int>> introduceOften(uint16_t port, int times, const Board &board) {
  // Rank 0 listens by then, and has ended this connection.
  const int first = connectTo(port, "no frame");
  char answer = 0;
  (void)!read(first, &answer, 1);
  ::close(first);
  Port own;
  const SocketAddress address = resolve("127.0.0.1", port)->front();
  for (int i = 0; i < times; ++i) {
    Port::Endpoint endpoint = 0;
    RETURN_IF_ERROR(own.connect(address, endpoint));
    own.send(endpoint, encode(Introduction()));
  }
  std::pair<int, int> counts;
  bool isKnown = false;
  for (const int64_t until = nowNs() + 60 * kSecond;
       nowNs() < until && !std::filesystem::exists(board.path("done0"));) {
    (void)own.wait(nowNs() + kSecond / 100);
    counts.first += static_cast<int>(own.takeArrivals().size());
    for (const Port::Loss &loss : own.takeLosses()) {
      ++counts.second;
      own.end(loss.endpoint);
    }
    if (counts.first + counts.second >= times && !std::exchange(isKnown, true))
      board.write("many", "");
  }
  own.close(nowNs() + kSecond);
  return counts;
}

TEST(Bootstrap, ManyConnectionsOfStrangersChangeNothing) {
  // More than rank 0 keeps. A rank that comes then is let in once their time is over.
  const uint16_t port = freePort();
  Board board;
  constexpr int kKept = 4 * 2 + 64, kStrangers = kKept + 20;
  RankProcessesOfTest processes(3, [&](int64_t rank) -> std::string {
    JobOptions options = optionsOf(rank, 2, onLoopback(port));
    options.helloLimitSeconds = 3;
    if (rank == 2) {
      auto counts = introduceOften(port, kStrangers, board);
      return counts.ok() ? std::to_string(counts->first) : counts.status().message();
    }
    if (rank > 0)
      board.read("many");
    const std::string said = start(options);
    board.write("done" + std::to_string(rank), "");
    return said;
  });
  expectStarted({processes.result(0), processes.result(1)});
  EXPECT_EQ(processes.result(2), std::to_string(kKept));
}

TEST(Bootstrap, AHelloThatIsReplayedIsRefused) {
  const uint16_t port = freePort();
  const JobSecret secret = secretOf("a secret of the job");
  RankProcessesOfTest processes(2, [&](int64_t rank) -> std::string {
    JobOptions options = optionsOf(0, 2, onLoopback(port));
    options.timeLimitSeconds = 4;
    if (rank == 0)
      return start(options);
    auto stranger = Stranger::create(port);
    if (!stranger.ok())
      return stranger.status().message();
    // A right conversation, of a rank that is none, so that rank 0 goes on; it says another job.
    Channel channel(secret, false);
    channel.clientNonce = *randomBlock();
    const FrameBytes introduction = encode(Introduction{kProtocolVersion, channel.clientNonce});
    const FrameBytes challenge = (*stranger)->say(introduction);
    auto sealed = parseSealed(challenge.data(), challenge.size());
    if (!sealed.ok())
      return "no challenge";
    auto frame = parseFrame(challenge.data(), sealed->bytes);
    Hello hello;
    hello.challenge = channel.serverNonce = std::get<Challenge>(*frame).nonce;
    hello.job = "recorded";
    hello.rank = 1, hello.size = 2;
    const FrameBytes recorded = channel.seal(hello);
    (*stranger)->say(recorded);
    (*stranger)->disconnect();
    // The same bytes once more, in a connection of their own.
    (*stranger)->say(introduction);
    (*stranger)->say(recorded);
    (*stranger)->close();
    return "done";
  });
  EXPECT_EQ(processes.result(1), "done");
  EXPECT_THAT(processes.result(0),
              HasSubstr("; a process at 127.0.0.1 repeated the hello of an earlier connection"));
}

} // namespace
