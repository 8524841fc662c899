//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The bytes that collectives send, compared with numbers computed by hand: 4 ranks with 1200 bytes
// each unless a test says otherwise.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/Algorithm.h"

#include <gtest/gtest.h>
#include <limits>

using namespace braid::runtime;

namespace {

constexpr Algorithm kAlgorithms[] = {Algorithm::direct, Algorithm::nccl};
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

int64_t direct(CollectiveKind kind, int64_t bytes, int64_t ranks, bool isSource = true) {
  return bytesSent(Algorithm::direct, kind, bytes, ranks, isSource);
}

} // namespace

TEST(BytesSent, AllReduce) {
  for (Algorithm algorithm : kAlgorithms) {
    // Each rank sends quarters to three other ranks, twice.
    EXPECT_EQ(bytesSent(algorithm, CollectiveKind::allReduce, 1200, 4), 2 * 3 * 300);
    EXPECT_EQ(bytesSent(algorithm, CollectiveKind::allReduce, 1200, 2), 1200);
  }
}

TEST(BytesSent, AllReduceOfPartsThatDiffer) {
  // Five numbers of 4 bytes on three ranks: two shares of 8 bytes and one of 4. Ranks with 8 bytes
  // send 12 to reduce and 16 after reducing, the third one 16 and 8; 80 in all.
  EXPECT_EQ(direct(CollectiveKind::allReduce, 20, 3), 80 / 3);
  // Three numbers on four ranks, one of which has no share: three times 8 + 12, and 12; 72.
  EXPECT_EQ(direct(CollectiveKind::allReduce, 12, 4), 72 / 4);
}

TEST(BytesSent, ReduceScatter) {
  for (Algorithm algorithm : kAlgorithms)
    EXPECT_EQ(bytesSent(algorithm, CollectiveKind::reduceScatter, 1200, 4), 3 * 300);
  EXPECT_EQ(direct(CollectiveKind::reduceScatter, 36, 3), 24);
}

TEST(BytesSent, AllGather) {
  for (Algorithm algorithm : kAlgorithms)
    EXPECT_EQ(bytesSent(algorithm, CollectiveKind::allGather, 1200, 4), 3 * 1200);
  EXPECT_EQ(direct(CollectiveKind::allGather, 20, 3), 40);
}

TEST(BytesSent, AllToAll) {
  for (Algorithm algorithm : kAlgorithms)
    for (CollectiveKind kind : {CollectiveKind::allToAll, CollectiveKind::allToAllV})
      EXPECT_EQ(bytesSent(algorithm, kind, 1200, 4), 3 * 300);
  // Blocks of 7 bytes for three ranks.
  EXPECT_EQ(direct(CollectiveKind::allToAllV, 21, 3), 14);
}

TEST(BytesSent, Broadcast) {
  // All others read the root's value; NCCL passes it on from rank to rank.
  EXPECT_EQ(bytesSent(Algorithm::direct, CollectiveKind::broadcast, 1200, 4), 3 * 1200);
  EXPECT_EQ(bytesSent(Algorithm::nccl, CollectiveKind::broadcast, 1200, 4), 1200);
  for (Algorithm algorithm : kAlgorithms)
    EXPECT_EQ(bytesSent(algorithm, CollectiveKind::broadcast, 1200, 4, /*isSource=*/false), 0);
}

TEST(BytesSent, Reduce) {
  for (Algorithm algorithm : kAlgorithms) {
    EXPECT_EQ(bytesSent(algorithm, CollectiveKind::reduce, 1200, 4), 1200);
    EXPECT_EQ(bytesSent(algorithm, CollectiveKind::reduce, 1200, 4, /*isSource=*/false), 0);
  }
}

TEST(BytesSent, FromRankToRank) {
  for (Algorithm algorithm : kAlgorithms) {
    for (CollectiveKind kind : {CollectiveKind::permute, CollectiveKind::send}) {
      EXPECT_EQ(bytesSent(algorithm, kind, 1201, 4), 1201);
      EXPECT_EQ(bytesSent(algorithm, kind, 1201, 4, /*isSource=*/false), 0);
    }
    EXPECT_EQ(bytesSent(algorithm, CollectiveKind::recv, 1200, 4), 0);
  }
}

TEST(BytesSent, NothingToOneself) {
  for (int kind = 0; kind <= static_cast<int>(CollectiveKind::recv); ++kind)
    EXPECT_EQ(direct(static_cast<CollectiveKind>(kind), 1200, 1), 0)
        << name(static_cast<CollectiveKind>(kind));
}

TEST(BytesSent, CountsToTheEndOfItsRange) {
  // Twice the input exceeds the range, but the bytes sent do not.
  EXPECT_EQ(direct(CollectiveKind::allReduce, int64_t(1) << 62, 2), int64_t(1) << 62);
  EXPECT_EQ(direct(CollectiveKind::allReduce, kMost, 4), kMost);
  EXPECT_EQ(direct(CollectiveKind::allGather, int64_t(1) << 62, 4), kMost);
  EXPECT_EQ(direct(CollectiveKind::allToAll, kMost, 2), kMost / 2);
}

TEST(Algorithm, IsChosenByTheTransport) {
  EXPECT_EQ(*chooseAlgorithm(CollectiveKind::allReduce, 1, 2, "threads"), Algorithm::direct);
  EXPECT_EQ(*chooseAlgorithm(CollectiveKind::allReduce, 1, 2, "shm", "direct"), Algorithm::direct);
  EXPECT_EQ(*chooseAlgorithm(CollectiveKind::allReduce, 1, 2, "nccl", "auto"), Algorithm::nccl);
  EXPECT_EQ(chooseAlgorithm(CollectiveKind::allReduce, 1, 2, "threads", "ring").status().message(),
            "all_reduce expects algorithm 'auto' or 'direct', got 'ring'");
  EXPECT_EQ(chooseAlgorithm(CollectiveKind::reduce, 1, 2, "tcp").status().message(),
            "no algorithm for reduce on transport 'tcp'");
}
