//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives of the threads transport without a program: all kinds, types and groups, ranks that
// arrive at random times, and ranks that disagree.
//
//===----------------------------------------------------------------------===//
#include "LimitTesting.h"
#include "Testing.h"
#include "TransportTesting.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::MatchesRegex;

namespace {

template <typename E> class Collectives : public ::testing::Test {};
TYPED_TEST_SUITE(Collectives, Types);

/// Reductions and gathers on 1, 2 and 4 ranks, the last also in two groups of two, with sleeps at
/// random points and every buffer overwritten as soon as its collective is complete.
TYPED_TEST(Collectives, ReductionsAndGathersUnderUnevenArrival) {
  using T = typename TypeParam::Storage;
  const uint32_t seed = testSeed();
  SCOPED_TRACE("BRAID_TEST_SEED=" + std::to_string(seed));
  struct Case {
    int64_t ranks;
    std::vector<std::vector<int64_t>> groups;
  };
  for (const Case &world : {Case{1, {{0}}}, Case{2, {{0, 1}}}, Case{4, {{0, 1, 2, 3}}},
                            Case{4, {{0, 2}, {1, 3}}}, Case{4, {{3, 1}, {2, 0}}}}) {
    constexpr int64_t kOuter = 3,
                      kInner = 37; // a chunk has kInner elements in each of kOuter blocks
    const int64_t groupSize = static_cast<int64_t>(world.groups[0].size());
    const int64_t small = kOuter * kInner, big = small * groupSize;
    const uint64_t outputOffset = 65536;
    TestWorld w(world.ranks, 2 * outputOffset);
    std::atomic<int> wrong{0};
    // Groups are created before the threads run, as in a session.
    for (const auto &group : world.groups)
      w.transport->group(group, kCommunicationQueue);
    w.run([&](int64_t rank) {
      std::mt19937 random(seed + static_cast<uint32_t>(rank));
      const auto &group =
          *std::find_if(world.groups.begin(), world.groups.end(), [&](const auto &g) {
            return std::find(g.begin(), g.end(), rank) != g.end();
          });
      int64_t position = std::find(group.begin(), group.end(), rank) - group.begin();
      T *in = w.memory<T>(rank, 0), *out = w.memory<T>(rank, outputOffset);
      for (int round = 0; round < 30; ++round) {
        auto kind = static_cast<CollectiveKind>(round % 3);
        auto reduce = kind == CollectiveKind::allGather ? ReduceKind::sum
                                                        : static_cast<ReduceKind>(round / 3 % 3);
        const bool inPlace = kind == CollectiveKind::allReduce && round % 2 == 0;
        int64_t inCount = kind == CollectiveKind::allGather ? small : big;
        for (int64_t i = 0; i < inCount; ++i)
          fromDouble(contribution(rank, i, round), in[i]);
        Part part{TypeParam::type, {kOuter, kInner}, 0, inPlace ? 0 : outputOffset};
        if (kind == CollectiveKind::allReduce)
          part.shape = {big};
        Command c = command(w, kind, group, rank, {part}, reduce, "c", 1);
        if (random() % 4 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
        if (!w.collective(rank, c))
          return;
        const T *result = inPlace ? in : out;
        int64_t outCount = kind == CollectiveKind::reduceScatter ? small : big;
        for (int64_t i = 0; i < outCount; ++i) {
          double expected;
          if (kind == CollectiveKind::allReduce) {
            expected = expectedReduce(reduce, group, i, round);
          } else if (kind == CollectiveKind::reduceScatter) {
            int64_t block = i / kInner, k = i % kInner;
            expected =
                expectedReduce(reduce, group, (block * groupSize + position) * kInner + k, round);
          } else {
            int64_t block = i / (kInner * groupSize), from = i / kInner % groupSize, k = i % kInner;
            expected = contribution(group[static_cast<size_t>(from)], block * kInner + k, round);
          }
          if (toDouble(result[i]) != expected)
            wrong.fetch_add(1);
        }
        for (int64_t i = 0; i < big; ++i) { // detects a peer that still reads
          fromDouble(99, in[i]);
          fromDouble(77, out[i]);
        }
      }
    });
    EXPECT_EQ(wrong.load(), 0) << world.ranks << " ranks in groups of " << groupSize;
    EXPECT_FALSE(w.control.failed()) << w.control.failure().message();
  }
}

TEST(ThreadsTransport, SeveralValuesTravelTogether) {
  TestWorld w(2, 4096);
  w.transport->group({0, 1}, kCommunicationQueue);
  w.run([&](int64_t rank) {
    float *a = w.memory<float>(rank, 0);
    int64_t *b = w.memory<int64_t>(rank, 1024);
    for (int i = 0; i < 5; ++i)
      a[i] = static_cast<float>(i + rank);
    for (int i = 0; i < 3; ++i)
      b[i] = 10 * rank + i;
    Command c = command(w, CollectiveKind::allReduce, {0, 1}, rank,
                        {{DType::f32, {5}, 0, 512}, {DType::i64, {3}, 1024, 2048}});
    ASSERT_TRUE(w.collective(rank, c));
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(w.memory<float>(rank, 512)[i], static_cast<float>(2 * i + 1));
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(w.memory<int64_t>(rank, 2048)[i], 10 + 2 * i);
  });
}

/// Sums that round must be in rank order and bitwise equal on all ranks, not within a tolerance.
TEST(ThreadsTransport, SumsAreInRankOrder) {
  constexpr int64_t kCount = 1000;
  TestWorld w(4, 1 << 16);
  w.transport->group({0, 1, 2, 3}, kCommunicationQueue);
  std::vector<std::vector<float>> inputs(4, std::vector<float>(kCount));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (auto &input : inputs)
    for (float &x : input)
      x = normal(random);
  w.run([&](int64_t rank) {
    std::copy(inputs[static_cast<size_t>(rank)].begin(), inputs[static_cast<size_t>(rank)].end(),
              w.memory<float>(rank, 0));
    Command c = command(w, CollectiveKind::allReduce, {0, 1, 2, 3}, rank,
                        {{DType::f32, {kCount}, 0, 8192}});
    ASSERT_TRUE(w.collective(rank, c));
    for (size_t i = 0; i < kCount; ++i) {
      volatile float sum = inputs[0][i] + inputs[1][i];
      sum = sum + inputs[2][i];
      sum = sum + inputs[3][i];
      ASSERT_EQ(w.memory<float>(rank, 8192)[i], sum);
    }
  });
}

/// f16 and bf16 are summed in f32 and rounded once: 2048 + 1 + 1 is 2050 in f16, while rounding
/// after every step loses both ones.
TEST(ThreadsTransport, HalfPrecisionRoundsOnce) {
  TestWorld w(3, 4096);
  w.transport->group({0, 1, 2}, kCommunicationQueue);
  w.run([&](int64_t rank) {
    *w.memory<uint16_t>(rank, 0) = floatToF16(rank == 0 ? 2048.0f : 1.0f);
    *w.memory<uint16_t>(rank, 64) = floatToBf16(rank == 0 ? 256.0f : 1.0f);
    Command c = command(w, CollectiveKind::allReduce, {0, 1, 2}, rank,
                        {{DType::f16, {1}, 0, 128}, {DType::bf16, {1}, 64, 192}});
    ASSERT_TRUE(w.collective(rank, c));
    EXPECT_EQ(f16ToFloat(*w.memory<uint16_t>(rank, 128)), 2050.0f);
    EXPECT_EQ(bf16ToFloat(*w.memory<uint16_t>(rank, 192)), 258.0f);
  });
}

TEST(ThreadsTransport, NanOfAnyRankReachesAll) {
  for (ReduceKind reduce : {ReduceKind::sum, ReduceKind::max, ReduceKind::min}) {
    for (int64_t source = 0; source < 2; ++source) {
      TestWorld w(2, 4096);
      w.transport->group({0, 1}, kCommunicationQueue);
      w.run([&](int64_t rank) {
        *w.memory<float>(rank, 0) = rank == source ? NAN : 1.0f;
        Command c =
            command(w, CollectiveKind::allReduce, {0, 1}, rank, {{DType::f32, {1}, 0, 64}}, reduce);
        ASSERT_TRUE(w.collective(rank, c));
        EXPECT_TRUE(std::isnan(*w.memory<float>(rank, 64)));
      });
    }
  }
}

TEST(ThreadsTransport, AMissingRankIsNamedWithinTheLimit) {
  expectRankFailed(
      MatchesRegex("rank [013]: all_reduce 'attention\\.out' on the communication queue waited "
                   "[0-9.]+ s for rank 2, which has not arrived \\(rank 2 is not at any command of "
                   "its compute queue\\)"),
      [](double limit) {
        TestWorld w(4, 4096, limit);
        w.transport->group({0, 1, 2, 3}, kCommunicationQueue);
        auto begin = std::chrono::steady_clock::now();
        w.run([&](int64_t rank) {
          if (rank == 2)
            return;
          Command c = command(w, CollectiveKind::allReduce, {0, 1, 2, 3}, rank,
                              {{DType::f32, {8}, 0, 1024}}, ReduceKind::sum, "attention.out");
          EXPECT_FALSE(w.collective(rank, c));
        });
        std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
        EXPECT_GE(waited.count(), limit);
        EXPECT_LT(waited.count(), limit + 30);
        return w.control.failure();
      });
}

/// Sends of rank 0 to rank 1, of which the last has no room until rank 1 receives one.
std::vector<Command> sendsBeyondRoom(TestWorld &w) {
  const size_t count = static_cast<size_t>(kMessagesInFlight) + 1;
  std::vector<Command> sends;
  std::vector<MessageSlot *> slots;
  for (size_t i = 0; i < count; ++i)
    for (int64_t rank : {0, 1}) {
      Command c = command(w, rank == 0 ? CollectiveKind::send : CollectiveKind::recv, {0, 1}, rank,
                          {{DType::f32, {8}, 0, 1024}}, ReduceKind::sum, "activation");
      Collective &collective = std::get<CollectiveCommand>(c.op).collective;
      collective.pairs = {{0, 1}};
      collective.messageSlot = w.transport->messageSlot(collective, i);
      if (rank == 0) {
        slots.push_back(collective.messageSlot);
        sends.push_back(std::move(c));
      }
    }
  EXPECT_OK(w.transport->prepare());
  EXPECT_EQ(slots.front(), slots.back());
  EXPECT_NE(slots.front(), slots[1]);
  return sends;
}

TEST(ThreadsTransport, ASendWithoutRoomNamesItsTarget) {
  expectRankFailed(
      MatchesRegex("rank 0: send 'activation' on the communication queue waited [0-9.]+ s for rank "
                   "1, which has not received earlier messages \\(rank 1 is not at any command of "
                   "its compute queue\\)"),
      [](double limit) {
        TestWorld w(2, 4096, limit);
        const std::vector<Command> sends = sendsBeyondRoom(w);
        w.run([&](int64_t rank) {
          for (size_t i = 0; rank == 0 && i < sends.size(); ++i)
            EXPECT_EQ(w.collective(0, sends[i]), i + 1 < sends.size()) << i;
        });
        return w.control.failure();
      });
}

/// A slow rank is not stalled: the limit counts from the last progress of any rank.
TEST(ThreadsTransport, ProgressElsewhereProlongsTheWait) {
  expectOk([](double limit) {
    TestWorld w(2, 4096, limit);
    w.transport->group({0, 1}, kCommunicationQueue);
    w.run([&](int64_t rank) {
      if (rank == 1)
        for (int i = 0; i < 10; ++i) { // in total more than three times the limit
          std::this_thread::sleep_for(std::chrono::duration<double>(limit / 3));
          w.control.queue(1, kComputeQueue).progress.fetch_add(1);
        }
      w.collective(
          rank, command(w, CollectiveKind::allReduce, {0, 1}, rank, {{DType::f32, {8}, 0, 1024}}));
    });
    return w.control.failure();
  });
}

TEST(ThreadsTransport, WorksAgainAfterAFailedRun) {
  expectOk([](double limit) {
    TestWorld w(2, 4096, limit);
    w.transport->group({0, 1}, kCommunicationQueue);
    auto meet = [&](int64_t rank) {
      return w.collective(
          rank, command(w, CollectiveKind::allReduce, {0, 1}, rank, {{DType::f32, {8}, 0, 1024}}));
    };
    w.run([&](int64_t rank) {
      if (rank == 0)
        EXPECT_FALSE(meet(rank));
    });
    w.transport->reset();
    w.control.begin();
    std::atomic<int> met{0};
    w.run([&](int64_t rank) {
      for (int i = 0; i < 3 && meet(rank); ++i)
        met.fetch_add(1);
    });
    return met == 6 ? w.control.failure() : Status::error("met " + std::to_string(met) + " times");
  });
}

} // namespace
