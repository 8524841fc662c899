//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Times of collectives on topologies, computed by hand.
//
//===----------------------------------------------------------------------===//
#include "braid/Cost/ScheduleTime.h"
#include "SampleMachine.h"
#include "Testing.h"

#include <gtest/gtest.h>

using namespace braid::cost;
using namespace braid::cost::testing;
using braid::runtime::CollectiveKind;
using braid::runtime::ScheduleAlgorithm;
using braid::runtime::ScheduleRequest;

namespace {

constexpr double kAlpha = 5e-5, kBeta = 1e8;

/// Bytes of a part, in one chunk.
ScheduleRequest request(CollectiveKind kind, ScheduleAlgorithm algorithm, int64_t ranks,
                        int64_t bytes) {
  ScheduleRequest r;
  r.kind = kind;
  r.algorithm = algorithm;
  r.ranks = ranks;
  r.values = {{bytes, 4, false}};
  r.chunkBytes = bytes;
  return r;
}

/// `perHost` ranks on each host.
void place(ScheduleRequest &request, int64_t perHost) {
  for (int64_t r = 0; r < request.ranks; ++r)
    request.topology.places.push_back({r / perHost, 0});
}

Network links() {
  Network network;
  network.between = {"link", kAlpha, kBeta};
  return network;
}

double seconds(const ScheduleRequest &request, const Network &network) {
  const Result<CollectiveTime> time = timeOf(request, network);
  EXPECT_OK(time.status());
  return time.ok() ? time->seconds : -1;
}

} // namespace

#define EXPECT_CLOSE(got, expected) EXPECT_NEAR(got, expected, 1e-9 * (expected))

TEST(ScheduleTime, ARingBetweenHosts) {
  for (const int64_t n : {2, 3, 4, 8}) {
    const int64_t bytes = n << 16;
    ScheduleRequest ring = request(CollectiveKind::allReduce, ScheduleAlgorithm::ring, n, bytes);
    place(ring, 1);
    const auto steps = static_cast<double>(2 * (n - 1));
    EXPECT_CLOSE(seconds(ring, links()),
                 steps * (kAlpha + static_cast<double>(bytes) / static_cast<double>(n) / kBeta))
        << n;
  }
}

TEST(ScheduleTime, AChainOfBroadcastIsPipelinedInChunks) {
  ScheduleRequest chain = request(CollectiveKind::broadcast, ScheduleAlgorithm::ring, 4, 1 << 20);
  place(chain, 1);
  EXPECT_CLOSE(seconds(chain, links()), 3 * (kAlpha + (1 << 20) / kBeta));
  // In 16 chunks the last one follows 15 others on the first link, and is then passed on twice.
  chain.chunkBytes = 1 << 16;
  EXPECT_CLOSE(seconds(chain, links()), 3 * kAlpha + (16 + 2) * (1 << 16) / kBeta);
}

TEST(ScheduleTime, RanksOfAHostShareItsCard) {
  // A rank sends its part to each of three others: one after the other, or all at once.
  ScheduleRequest gather =
      request(CollectiveKind::allGather, ScheduleAlgorithm::direct, 4, 1 << 16);
  place(gather, 1);
  EXPECT_CLOSE(seconds(gather, links()), kAlpha + 3.0 * (1 << 16) / kBeta);
  // Two hosts of two ranks: each rank sends to two of the other host, four parts a host.
  gather.topology.places.clear();
  place(gather, 2);
  EXPECT_CLOSE(seconds(gather, links()), kAlpha + 4.0 * (1 << 16) / kBeta);
}

TEST(ScheduleTime, OnOneHost) {
  const Network network = *networkOf(sampleMachine(), "threads", 2);
  // The sample: start 4 us, message 1 us, 1000 bytes copied in 1 us and reduced in 2.
  EXPECT_CLOSE(
      seconds(request(CollectiveKind::allGather, ScheduleAlgorithm::direct, 2, 1000), network),
      4e-6 + 2 * 1e-6); // its own bytes are copied while the message comes
  EXPECT_CLOSE(
      seconds(request(CollectiveKind::reduceScatter, ScheduleAlgorithm::direct, 2, 1000), network),
      4e-6 + 1e-6 + 2e-6);
  // An all_reduce of 3000 bytes has values as an all_gather of 2000; it reduces half of its bytes
  // and copies the other half, and awaits two messages.
  const double perByte = (1e-6 + 1000 * 9e-6 / 99000) / 2000,
               reducePerByte = (2e-6 + 1000 * 38e-6 / 99000) / 2000;
  ScheduleRequest reduce = request(CollectiveKind::allReduce, ScheduleAlgorithm::direct, 2, 3000);
  reduce.values[0].elementBytes = 4;
  const double expected = 4e-6 + 2 * 1e-6 + 1500 * perByte + 1500 * reducePerByte;
  EXPECT_NEAR(seconds(reduce, network), expected, 0.05 * expected); // shares are of whole lines
}

TEST(ScheduleTime, DoesNotShrinkWhereBytesGrow) {
  const Network local = *networkOf(sampleMachine(), "threads", 2);
  for (const CollectiveKind kind :
       {CollectiveKind::allReduce, CollectiveKind::reduceScatter, CollectiveKind::allGather,
        CollectiveKind::allToAll, CollectiveKind::broadcast, CollectiveKind::reduce})
    for (const ScheduleAlgorithm algorithm :
         {ScheduleAlgorithm::direct, ScheduleAlgorithm::oneShot, ScheduleAlgorithm::ring,
          ScheduleAlgorithm::recursiveDoubling, ScheduleAlgorithm::tree,
          ScheduleAlgorithm::hierarchical}) {
      if (!braid::runtime::checkAlgorithm(algorithm, kind, 4).ok())
        continue;
      Network network = local;
      network.between = links().between;
      double last = 0;
      for (int64_t bytes = 1 << 8; bytes <= 1 << 22; bytes *= 4) {
        ScheduleRequest r = request(kind, algorithm, 4, bytes);
        r.chunkBytes = 1 << 16;
        place(r, 2);
        const double time = seconds(r, network);
        EXPECT_GE(time, last) << name(kind) << " " << name(algorithm) << " " << bytes;
        last = time;
      }
    }
}

TEST(ScheduleTime, ChoosesTheFastestAlgorithm) {
  const std::vector<ScheduleAlgorithm> all{ScheduleAlgorithm::direct, ScheduleAlgorithm::oneShot,
                                           ScheduleAlgorithm::ring,
                                           ScheduleAlgorithm::recursiveDoubling};
  auto fastest = [&](int64_t bytes) {
    ScheduleRequest r = request(CollectiveKind::allReduce, ScheduleAlgorithm::direct, 8, bytes);
    place(r, 1);
    return *fastestAlgorithm(r, links(), all);
  };
  // Of 8 hosts, one step with all bytes to all: alpha + 7 S / beta; direct in two: 2 alpha + 14/8
  // S / beta. They are equal at S = 952 bytes.
  EXPECT_EQ(fastest(512), ScheduleAlgorithm::oneShot);
  EXPECT_EQ(fastest(8192), ScheduleAlgorithm::direct);
  EXPECT_ERROR(fastestAlgorithm(request(CollectiveKind::allToAll, ScheduleAlgorithm::direct, 4, 64),
                                links(), {ScheduleAlgorithm::ring})
                   .status(),
               "no algorithm applies to all_to_all of 4 ranks");
}

TEST(ScheduleTime, NamesWhatTheFileLacks) {
  EXPECT_ERROR(networkOf(sampleMachine(), "shm", 2).status(),
               "the machine file has no transport 'shm' of 2 ranks");
  ScheduleRequest gather = request(CollectiveKind::allGather, ScheduleAlgorithm::direct, 2, 64);
  place(gather, 1);
  EXPECT_ERROR(timeOf(gather, Network()).status(), "the machine file has no link between hosts");
}
