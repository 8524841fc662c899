//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs that are no ranks of the job, on the port at which ranks meet.
//
//===----------------------------------------------------------------------===//
#include "BootstrapTesting.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Net/Address.h"
#include "runtime/lib/Net/Channel.h"
#include "runtime/lib/Net/Port.h"

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::net::testing;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;

namespace {

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
