//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Net/ProcessExchange.h"
#include "NetTesting.h"
#include "ProcessTesting.h"
#include "braid/Base/StatusMacros.h"

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::net::testing;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;

namespace {

using Work = std::function<Result<std::string>(ProcessExchange &, int64_t rank)>;

Result<std::string> onProcess(int64_t rank, int64_t ranks, uint16_t port, double limit,
                              const Work &work) {
  ASSIGN_OR_RETURN(auto networks, openNetworks({}));
  std::vector<std::unique_ptr<Link>> links;
  std::vector<std::string> addresses;
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<Link> link, Link::create(networks, rank, ranks));
    ASSIGN_OR_RETURN(addresses.emplace_back(), link->address());
    links.push_back(std::move(link));
  }
  ASSIGN_OR_RETURN(const Job job, startJob(optionsOf(rank, ranks, onLoopback(port)), addresses));
  for (size_t i = 0; i < links.size(); ++i)
    for (int64_t peer = 0; peer < ranks; ++peer)
      if (peer != rank)
        RETURN_IF_ERROR(
            links[i]->connect(peer, job.members[static_cast<size_t>(peer)].addresses[i], "here"));
  ASSIGN_OR_RETURN(const std::unique_ptr<Control> control,
                   Control::start(std::move(links[0]), job, {}));
  ProcessExchange exchange(std::move(links[1]), *control, limit);
  Result<std::string> said = work(exchange, rank);
  exchange.leave();
  return said;
}

/// What each rank's work returns, or its error.
std::vector<std::string> onProcesses(int64_t ranks, const Work &work, double limit = 20) {
  const uint16_t port = freePort();
  RankProcessesOfTest processes(ranks, [&](int64_t rank) {
    Result<std::string> said = onProcess(rank, ranks, port, limit, work);
    return said.ok() ? *said : said.status().message();
  });
  std::vector<std::string> results;
  for (int64_t rank = 0; rank < ranks; ++rank)
    results.push_back(processes.result(rank));
  return results;
}

std::vector<std::byte> bytesOf(const std::string &text) {
  const auto *begin = reinterpret_cast<const std::byte *>(text.data());
  return {begin, begin + text.size()};
}
std::string textOf(const std::vector<std::byte> &bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

TEST(ProcessExchange, ValuesGoToRankZeroAndBack) {
  // More processes than are served at a time, and a part that is longer than a message that is sent
  // without waiting.
  constexpr int64_t kRanks = 11;
  std::vector<size_t> bytes;
  for (int64_t rank = 0; rank < kRanks; ++rank)
    bytes.push_back(rank == 10 ? 2000000 : static_cast<size_t>(rank));
  auto partOf = [&](int64_t rank) {
    return std::string(bytes[static_cast<size_t>(rank)], static_cast<char>('a' + rank));
  };
  auto results =
      onProcesses(kRanks, [&](ProcessExchange &exchange, int64_t rank) -> Result<std::string> {
        ASSIGN_OR_RETURN(auto part, exchange.scatter(
                                        [&](RankRange ranks) -> Result<std::vector<std::byte>> {
                                          return bytesOf(partOf(ranks.first));
                                        },
                                        bytes));
        if (textOf(part) != partOf(rank))
          return Status::error("got another part");
        ASSIGN_OR_RETURN(auto all, exchange.gather(std::move(part), bytes));
        std::string text;
        for (const Contribution &given : all)
          text += textOf(given.bytes) == partOf(given.ranks.first) ? "right " : "wrong ";
        uint64_t number = rank == 0 ? 4711 : 0;
        RETURN_IF_ERROR(exchange.broadcast(&number, sizeof number));
        return text + std::to_string(number);
      });
  std::string all;
  for (int64_t rank = 0; rank < kRanks; ++rank)
    all += "right ";
  EXPECT_EQ(results[0], all + "4711");
  for (int64_t rank = 1; rank < kRanks; ++rank)
    EXPECT_EQ(results[static_cast<size_t>(rank)], "4711");
}

TEST(ProcessExchange, AnErrorOfRankZeroIsOneOfAll) {
  auto results = onProcesses(3, [](ProcessExchange &exchange, int64_t) -> Result<std::string> {
    const Status first = exchange
                             .scatter(
                                 [](RankRange ranks) -> Result<std::vector<std::byte>> {
                                   if (ranks.first == 1)
                                     return Status::error("no part of rank 1");
                                   return std::vector<std::byte>(4);
                                 },
                                 {4, 4, 4})
                             .status();
    // The next call works.
    ASSIGN_OR_RETURN(auto all, exchange.gather(bytesOf("x"), {1, 1, 1}));
    return first.message() + ", then " + std::to_string(all.size());
  });
  EXPECT_EQ(results[0], "no part of rank 1, then 3");
  EXPECT_EQ(results[1], "no part of rank 1, then 0");
  EXPECT_EQ(results[2], "no part of rank 1, then 0");
}

/// The pieces that each rank gives: rank r gives r + 1 of them.
Communicator::NextPiece piecesOf(int64_t rank) {
  return [rank, given = int64_t(0)]() mutable -> Result<std::string> {
    if (given > rank)
      return std::string();
    return std::string(given++ == 1 ? Communicator::kMaxPieceBytes : 3,
                       static_cast<char>('a' + rank));
  };
}

TEST(ProcessExchange, PiecesOfAllComeToRankZero) {
  constexpr int64_t kRanks = 10;
  auto results =
      onProcesses(kRanks, [](ProcessExchange &exchange, int64_t rank) -> Result<std::string> {
        std::vector<size_t> pieces(kRanks), bytes(kRanks);
        RETURN_IF_ERROR(
            exchange.collect(piecesOf(rank), [&](RankRange ranks, const std::string &piece) {
              ++pieces[static_cast<size_t>(ranks.first)];
              bytes[static_cast<size_t>(ranks.first)] += piece.size();
              const auto letter = static_cast<char>('a' + ranks.first);
              return piece.find_first_not_of(letter) == std::string::npos
                         ? Status()
                         : Status::error("of another rank");
            }));
        for (size_t i = 0; rank == 0 && i < kRanks; ++i)
          if (pieces[i] != i + 1 ||
              bytes[i] != 3 * (i + 1) + (i > 0 ? Communicator::kMaxPieceBytes - 3 : 0))
            return Status::error("rank ", i, " gave ", pieces[i], " pieces and ", bytes[i],
                                 " bytes");
        return std::string("done");
      });
  for (const std::string &result : results)
    EXPECT_EQ(result, "done");
}

TEST(ProcessExchange, ErrorsOfPieces) {
  // One of a process that gives is one of rank 0, too; the others have none.
  auto failsOnRankTwo = [](ProcessExchange &exchange, int64_t rank) -> Result<std::string> {
    Communicator::NextPiece next = piecesOf(rank);
    if (rank == 2)
      next = []() -> Result<std::string> { return Status::error("nothing was traced"); };
    const Status status =
        exchange.collect(next, [](RankRange, const std::string &) { return Status(); });
    uint64_t number = 7;
    RETURN_IF_ERROR(exchange.broadcast(&number, sizeof number));
    return status.ok() ? "done" : status.message();
  };
  auto results = onProcesses(4, failsOnRankTwo);
  EXPECT_EQ(results[0], "rank 2 (here): nothing was traced");
  EXPECT_EQ(results[1], "done");
  EXPECT_EQ(results[2], "nothing was traced");
  EXPECT_EQ(results[3], "done");
  // One of rank 0's is its own.
  results = onProcesses(4, [](ProcessExchange &exchange, int64_t rank) -> Result<std::string> {
    size_t taken = 0;
    const Status status = exchange.collect(piecesOf(rank), [&](RankRange, const std::string &) {
      return ++taken < 5 ? Status() : Status::error("the disk is full");
    });
    uint64_t number = 7;
    RETURN_IF_ERROR(exchange.broadcast(&number, sizeof number));
    return status.ok() ? "done" : status.message();
  });
  EXPECT_EQ(results[0], "the disk is full");
  for (size_t rank = 1; rank < 4; ++rank)
    EXPECT_EQ(results[rank], "done");
}

TEST(ProcessExchange, WhoDoesNotComeIsNamed) {
  Board board;
  auto results = onProcesses(
      3,
      [&](ProcessExchange &exchange, int64_t rank) -> Result<std::string> {
        if (rank == 1) {
          board.read("over"); // alive, but elsewhere
          return std::string("was elsewhere");
        }
        Status status = exchange.gather(std::vector<std::byte>(4), {4, 4, 4}).status();
        if (rank == 0)
          board.write("over", "");
        return status.ok() ? "done" : status.message();
      },
      0.5);
  EXPECT_EQ(results[0], "processes have not exchanged what they have within 0.5 s: rank 1 (here) "
                        "has not given its part");
  EXPECT_EQ(results[1], "was elsewhere");
  EXPECT_EQ(results[2], "done");
}

TEST(ProcessExchange, AKilledProcessIsNamed) {
  auto results =
      onProcesses(3, [&](ProcessExchange &exchange, int64_t rank) -> Result<std::string> {
        if (rank == 2)
          raise(SIGKILL);
        ASSIGN_OR_RETURN(auto all, exchange.gather(std::vector<std::byte>(4), {4, 4, 4}));
        return std::string("done");
      });
  EXPECT_THAT(results[0], HasSubstr("rank 2 (here)"));
  EXPECT_EQ(results[2], "signal 9");
}

TEST(ProcessExchange, ClocksOfOneHostAgree) {
  auto results = onProcesses(4, [](ProcessExchange &exchange, int64_t rank) -> Result<std::string> {
    for (int i = 0; i < 3; ++i) {
      ASSIGN_OR_RETURN(const ClockMap clock, exchange.measureClock());
      const ClockMap::Reading &last = clock.last;
      if (rank == 0 ? last.offsetNs != 0 || last.errorNs != 0
                    : last.errorNs <= 0 || std::abs(last.offsetNs) > last.errorNs)
        return Status::error("an offset of ", last.offsetNs, " ns, and an error of ", last.errorNs);
      if (rank > 0 && clock.first.atNs + (i > 0 ? 1 : 0) > last.atNs)
        return Status::error("a reading is not kept");
    }
    return std::string("done");
  });
  for (const std::string &result : results)
    EXPECT_EQ(result, "done");
}

TEST(ClockMap, ARoundTripBoundsTheOffset) {
  // The other clock is 1000 ahead. A message takes 10 there and 30 back, and waits for 100.
  const ClockMap::Reading reading = readingOf(0, 1010, 1110, 140);
  EXPECT_EQ(reading.offsetNs, 990);
  EXPECT_EQ(reading.errorNs, 20);
  EXPECT_EQ(reading.atNs, 140);
  // Whatever the way takes in each direction, the offset is within the error.
  for (int64_t there = 0; there <= 50; ++there)
    for (int64_t offset : {-1000000, 0, 12345}) {
      const ClockMap::Reading r =
          readingOf(77, 77 + there + offset, 77 + there + offset + 5, 77 + 50 + 5);
      EXPECT_LE(std::abs(r.offsetNs - offset), r.errorNs);
      EXPECT_EQ(r.errorNs, 25);
    }
}

TEST(ClockMap, OffsetsChangeEvenly) {
  ClockMap clock;
  EXPECT_EQ(clock.offsetAt(12345), 0);
  clock.first = {1000, 500, 20};
  clock.last = {2000, 600, 10};
  EXPECT_EQ(clock.offsetAt(1000), 500);
  EXPECT_EQ(clock.offsetAt(1500), 550);
  EXPECT_EQ(clock.offsetAt(2000), 600);
  EXPECT_EQ(clock.offsetAt(2500), 650); // after the last reading, as before it
  EXPECT_EQ(clock.errorNs(), 20);
  clock.first = clock.last;
  EXPECT_EQ(clock.offsetAt(0), 600);
}

} // namespace
