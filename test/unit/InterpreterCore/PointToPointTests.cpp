//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "braid/Base/MessagesInFlight.h"
#include "braid/Interpreter/Core/ProcessGrid.h"

#include <atomic>
#include <thread>

using namespace braid::interp;
using namespace braid::interp::testing;
using braid::runtime::Mesh;
using std::chrono::milliseconds;

namespace {
Mesh line(int64_t ranks) {
  Mesh mesh;
  mesh.axes = {{"pp", ranks}};
  return mesh;
}

Collective half(CollectiveKind kind, std::vector<std::pair<int64_t, int64_t>> pairs,
                int64_t tag = 0) {
  Collective result;
  result.kind = kind;
  result.axes = {{"pp"}};
  result.pairs = std::move(pairs);
  result.tag = tag;
  if (kind == CollectiveKind::recv)
    result.received = {{DType::f32, {1}}};
  return result;
}
Collective send(std::vector<std::pair<int64_t, int64_t>> pairs, int64_t tag = 0) {
  return half(CollectiveKind::send, std::move(pairs), tag);
}
Collective recv(std::vector<std::pair<int64_t, int64_t>> pairs, int64_t tag = 0) {
  return half(CollectiveKind::recv, std::move(pairs), tag);
}
Tensor scalar(double value) { return floats({1}, {value}); }

/// Receives one element.
Result<double> take(Process &process, const Collective &op) {
  Result<std::vector<Tensor>> got = process.run(op, {});
  if (!got.ok())
    return got.status();
  return got->front().floats()[0];
}
} // namespace

TEST(PointToPoint, RanksMayRunDifferentPrograms) {
  // Three stages, each with its own code: no rank runs both the send and the recv of a pair.
  ProcessGrid grid(line(3));
  double last = 0;
  Status status = grid.run([&](Process &process) -> Status {
    for (int i = 0; i < 100; ++i) {
      Result<double> value = static_cast<double>(i);
      if (process.rank() > 0)
        value = take(process, recv({{process.rank() - 1, process.rank()}}));
      if (!value.ok())
        return value.status();
      if (process.rank() < 2) {
        Status sent =
            process.run(send({{process.rank(), process.rank() + 1}}), {scalar(2 * *value)})
                .status();
        if (!sent.ok())
          return sent;
      } else if (*value != 4 * i) {
        return Status::error("wrong value " + std::to_string(*value));
      } else {
        last = *value;
      }
    }
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(last, 396);
}

TEST(PointToPoint, ASenderDoesNotWait) {
  ProcessGrid grid(line(2));
  std::atomic<bool> sent{false};
  Status status = grid.run([&](Process &process) -> Status {
    if (process.rank() == 0) {
      Status outcome = process.run(send({{0, 1}}), {scalar(3)}).status();
      sent = true;
      return outcome;
    }
    while (!sent) // the receive starts after the send has completed
      std::this_thread::sleep_for(milliseconds(1));
    Result<double> value = take(process, recv({{0, 1}}));
    return value.ok() && *value == 3 ? Status() : Status::error("wrong value");
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(PointToPoint, ChannelsAreApartAndEachKeepsItsOrder) {
  ProcessGrid grid(line(2));
  Status status = grid.run([&](Process &process) -> Status {
    for (int i = 0; i < 4; ++i)
      if (Status sent = process.run(send({{0, 1}}, i % 2), {scalar(i)}).status(); !sent.ok())
        return sent;
    for (int tag : {1, 0})
      for (int i : {tag, tag + 2}) {
        Result<double> value = take(process, recv({{0, 1}}, tag));
        double expected = process.rank() == 1 ? i : 0;
        if (!value.ok() || *value != expected)
          return Status::error("wrong value on tag " + std::to_string(tag));
      }
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(PointToPoint, AReceiverNamesTheSenderThatStalls) {
  GridOptions options;
  options.timeLimit = milliseconds(150);
  ProcessGrid grid(line(3), options);
  std::atomic<bool> release{false};
  Status status = grid.run([&](Process &process) -> Status {
    Collective op = recv({{2, 0}});
    op.name = "activation";
    if (process.rank() == 2)
      while (!release)
        std::this_thread::sleep_for(milliseconds(1));
    if (process.rank() != 0)
      return process.progress();
    Status failed = take(process, op).status();
    release = true;
    return failed;
  });
  expectError(status, "rank 0: recv pairs [2 -> 0] over {pp} ('activation') waited 150 ms without "
                      "progress of any rank: rank 2 has not arrived");
}

TEST(PointToPoint, SendsAreWaitedForAndReceivedOnce) {
  ProcessGrid never(line(2));
  expectError(never.run([&](Process &process) -> Status {
    return process.rank() == 0 ? process.start(send({{0, 1}}), {scalar(1)}).status()
                               : take(process, recv({{0, 1}})).status();
  }),
              "rank 0: ended without waiting for send pairs [0 -> 1] over {pp}");
  ProcessGrid unreceived(line(2));
  Status status = unreceived.run([&](Process &process) -> Status {
    for (int i = 0; i < 2; ++i)
      if (Status sent = process.run(send({{0, 1}}), {scalar(1)}).status(); !sent.ok())
        return sent;
    return take(process, recv({{0, 1}})).status();
  });
  expectError(status, "rank 0 sends in send pairs [0 -> 1] over {pp} what rank 1 never receives");
  EXPECT_EQ(status.code(), braid::runtime::Code::rankFailed);
}

TEST(PointToPoint, TypesMustAgree) {
  ProcessGrid grid(line(2));
  Status status = grid.run([&](Process &process) -> Status {
    if (process.rank() == 0)
      return process.run(send({{0, 1}}), {floats({2}, {1, 2})}).status();
    return take(process, recv({{0, 1}})).status();
  });
  EXPECT_NE(
      status.message().find(
          "ranks disagree about value number 0 from rank 0 to rank 1: rank 0 sends with send "
          "pairs [0 -> 1] over {pp} of (f32[2]), rank 1 expects with recv pairs [0 -> 1] over "
          "{pp} of (f32[1])"),
      std::string::npos)
      << status.message();
}

TEST(PointToPoint, PairsAreOfTheGroup) {
  ProcessGrid grid(line(2));
  EXPECT_NE(grid.run([&](Process &process) { return take(process, recv({{0, 2}})).status(); })
                .message()
                .find("expects a position in a group of 2 ranks, got 2"),
            std::string::npos);
  EXPECT_NE(grid.run([&](Process &process) { return take(process, recv({{1, 1}})).status(); })
                .message()
                .find("expects no position to send to itself, got 1"),
            std::string::npos);
}

/// Two ranks that both send all of their messages before they receive.
TEST(PointToPoint, SendsWaitForRoom) {
  for (int64_t messages :
       {braid::runtime::kMessagesInFlight, braid::runtime::kMessagesInFlight + 1}) {
    ProcessGrid grid(line(2));
    Status status = grid.run([&](Process &process) -> Status {
      for (int64_t i = 0; i < messages; ++i)
        if (auto sent = process.run(send({{0, 1}, {1, 0}}), {scalar(static_cast<double>(i))});
            !sent.ok())
          return sent.status();
      for (int64_t i = 0; i < messages; ++i) {
        Result<double> got = take(process, recv({{0, 1}, {1, 0}}));
        if (!got.ok())
          return got.status();
        if (*got != static_cast<double>(i))
          return Status::error("wrong message");
      }
      return {};
    });
    if (messages == braid::runtime::kMessagesInFlight)
      EXPECT_TRUE(status.ok()) << status.message();
    else
      EXPECT_NE(status.message().find("ranks wait for each other: rank 0 waits in send pairs "
                                      "[0 -> 1, 1 -> 0] over {pp} for rank 1; rank 1 waits in send "
                                      "pairs [0 -> 1, 1 -> 0] over {pp} for rank 0"),
                std::string::npos)
          << status.message();
  }
}

TEST(AllToAllV, CountsDecideWhatTravels) {
  // Every rank sends r + 1 rows, at most 3, to every other; element = 100 * sender + 10 * block +
  // row.
  for (int64_t n = 1; n <= 5; ++n) {
    ProcessGrid grid(line(n));
    Status status = grid.run([&](Process &process) -> Status {
      auto rowsOf = [](int64_t rank, int64_t block) { return (rank + block) % 4; };
      Collective op;
      op.kind = CollectiveKind::allToAllV;
      op.axes = {{"pp"}};
      const int64_t blocks = 2 * n, mine = process.rank();
      std::vector<double> values;
      std::vector<int64_t> counts;
      for (int64_t b = 0; b < blocks; ++b) {
        counts.push_back(rowsOf(mine, b));
        for (int64_t row = 0; row < 3; ++row)
          values.push_back(static_cast<double>(100 * mine + 10 * b + row + 1));
      }
      Result<std::vector<Tensor>> got =
          process.run(op, {floats({blocks, 3}, values), ints({blocks}, counts)});
      if (!got.ok())
        return got.status();
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t sender = b / 2, block = 2 * mine + b % 2;
        if (got->at(1).ints()[b] != rowsOf(sender, block))
          return Status::error("wrong count " + std::to_string(b));
        for (int64_t row = 0; row < 3; ++row) {
          double expected = row < rowsOf(sender, block)
                                ? static_cast<double>(100 * sender + 10 * block + row + 1)
                                : 0;
          if (got->at(0).floats()[b * 3 + row] != expected)
            return Status::error("wrong row " + std::to_string(b));
        }
      }
      return {};
    });
    EXPECT_TRUE(status.ok()) << n << ": " << status.message();
  }
}

TEST(AllToAllV, RefusesCountsBeyondTheCapacity) {
  Collective op;
  op.kind = CollectiveKind::allToAllV;
  op.axes = {{"pp"}};
  Tensor values = floats({2, 1}, {1, 2});
  expectError(applyAll(op, {{values, ints({2}, {0, 2})}}, 0).status(),
              "expects counts in [0, 1], got 2 at block 1");
  expectError(applyAll(op, {{values, ints({2}, {-1, 0})}}, 0).status(),
              "expects counts in [0, 1], got -1 at block 0");
  expectError(applyAll(op, {{values, ints({3}, {0, 0, 0})}}, 0).status(),
              "expects blocks by capacity with a count for each block, got f32[2, 1] and i64[3]");
}
