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
  network.between.latencySeconds = kAlpha;
  network.between.bytesPerSecond = kBeta;
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

TEST(ScheduleTime, CardsOfMeasuredLinks) {
  // Each of three ranks sends to two others: a card passes less than two flows get.
  ScheduleRequest gather =
      request(CollectiveKind::allGather, ScheduleAlgorithm::direct, 3, 1 << 16);
  place(gather, 1);
  Network network = links();
  network.between.hostBytesPerSecond = 1.5 * kBeta;
  EXPECT_CLOSE(seconds(gather, network), kAlpha + 2.0 * (1 << 16) / (1.5 * kBeta));
  // While it sends and receives, three quarters of that.
  network.between.bothWaysBytesPerSecond = 0.75 * kBeta;
  EXPECT_CLOSE(seconds(gather, network), kAlpha + 2.0 * (1 << 16) / (0.75 * 1.5 * kBeta));
}

TEST(ScheduleTime, HostsThatSendToEachOther) {
  Network network = links();
  network.between.exchanges = {{1 << 16, 3 * kAlpha + (1 << 16) / kBeta}};
  // A step of an exchange takes what that of two hosts takes, ...
  ScheduleRequest gather =
      request(CollectiveKind::allGather, ScheduleAlgorithm::direct, 2, 1 << 16);
  place(gather, 1);
  EXPECT_CLOSE(seconds(gather, network), 3 * kAlpha + (1 << 16) / kBeta);
  // ... but who only receives has the latency.
  ScheduleRequest broadcast =
      request(CollectiveKind::broadcast, ScheduleAlgorithm::direct, 2, 1 << 16);
  place(broadcast, 1);
  EXPECT_CLOSE(seconds(broadcast, network), kAlpha + (1 << 16) / kBeta);
}

TEST(ScheduleTime, WhatHostsSend) {
  ScheduleRequest gather = request(CollectiveKind::allGather, ScheduleAlgorithm::direct, 4, 1000);
  place(gather, 2);
  // Each of a host's two ranks sends to two of the other one.
  EXPECT_EQ(timeOf(gather, links())->hostBytesSent, std::vector<double>(4, 4000));
  ScheduleRequest broadcast =
      request(CollectiveKind::broadcast, ScheduleAlgorithm::direct, 2, 1000);
  place(broadcast, 1);
  EXPECT_EQ(timeOf(broadcast, links())->hostBytesSent, (std::vector<double>{1000, 0}));
  gather.topology.places.clear();
  place(gather, 4);
  EXPECT_EQ(timeOf(gather, links())->hostBytesSent, std::vector<double>(4, 0));
}

/// Of the sample's two sizes, at `bytes` between them.
double perByte(double first, double second, double bytes) {
  return (first + (bytes - 1000) * (second - first) / 99000) / bytes;
}

TEST(ScheduleTime, OnOneHost) {
  const Network network = *networkOf(sampleMachine(), "threads", 2);
  // The sample: start 4 us, message 1 us. Input and output are 61440 bytes; a rank receives 20480
  // and then copies its own, which its peer has read.
  const double copied = perByte(1e-6, 1e-5, 61440), received = perByte(1.5e-6, 1.5e-5, 61440),
               reduced = perByte(2e-6, 4e-5, 61440), shared = perByte(1e-7, 1e-6, 61440);
  EXPECT_CLOSE(
      seconds(request(CollectiveKind::allGather, ScheduleAlgorithm::direct, 2, 20480), network),
      4e-6 + 1e-6 + 20480 * (received + copied + shared));
  // It sees a message later that the peer has read its bytes.
  EXPECT_CLOSE(
      seconds(request(CollectiveKind::reduceScatter, ScheduleAlgorithm::direct, 2, 20480), network),
      4e-6 + 1e-6 + 20480 * reduced + 1e-6);
  // An all_reduce in two steps: a half is summed where the peer reads it, the other half comes from
  // the peer.
  EXPECT_CLOSE(
      seconds(request(CollectiveKind::allReduce, ScheduleAlgorithm::direct, 2, 30720), network),
      4e-6 + 1e-6 + 15360 * (perByte(2e-6, 4e-5, 61440) + perByte(1e-7, 1e-6, 61440)) + 1e-6 +
          15360 * perByte(1.5e-6, 1.5e-5, 61440) + 1e-6);
  // In one step both read both inputs at the same time.
  EXPECT_CLOSE(
      seconds(request(CollectiveKind::allReduce, ScheduleAlgorithm::oneShot, 2, 30720), network),
      4e-6 + 1e-6 + 30720 * (reduced + shared / 2) + 1e-6);
}

TEST(ScheduleTime, RanksThatShareACore) {
  ScheduleRequest permute = request(CollectiveKind::permute, ScheduleAlgorithm::direct, 2, 1024);
  permute.pairs = {{0, 1}, {1, 0}};
  Network network;
  network.startSeconds = 5e-6;
  network.messageSeconds = 1e-6;
  network.transfers = {{2048, 0, 8e-6, 0, 0}};
  // Each has a core: one message, 1024 bytes, and the word that they were read.
  network.cores = 2;
  EXPECT_CLOSE(seconds(permute, network), 5e-6 + 1e-6 + 4e-6 + 1e-6);
  // The other one has sent. The last one to come has the core and receives, twice as fast as beside
  // another; then the other one receives and ends, and the last one sees it.
  network.cores = 1;
  EXPECT_CLOSE(seconds(permute, network), 5e-6 + 2e-6 + 1e-6 + 2e-6 + 1e-6);
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

TEST(ScheduleTime, IsAsMeasuredWhereTheKindWas) {
  const Network steps = *networkOf(sampleMachine(), "threads", 2),
                network = *networkOf(sampleMachine(), "shm", 2);
  // As the transport runs it: in one step, of input and output of half as many bytes each.
  auto sum = [](int64_t bytes) {
    ScheduleRequest r = request(CollectiveKind::allReduce, ScheduleAlgorithm::oneShot, 2, bytes);
    r.chunkBytes = 1 << 20;
    return r;
  };
  EXPECT_DOUBLE_EQ(seconds(sum(500), network), 1e-5);
  EXPECT_DOUBLE_EQ(seconds(sum(50500), network), 1.1e-4);
  EXPECT_DOUBLE_EQ(seconds(sum(25500), network), 6e-5);
  // Of fewer bytes than were measured, and of more.
  EXPECT_DOUBLE_EQ(seconds(sum(4), network), 1e-5);
  EXPECT_DOUBLE_EQ(seconds(sum(101000), network), 2.2e-4);
  // Another schedule keeps its proportion to that one.
  ScheduleRequest other = sum(50500);
  other.algorithm = ScheduleAlgorithm::ring;
  EXPECT_NEAR(seconds(other, network) / 1.1e-4, seconds(other, steps) / seconds(sum(50500), steps),
              1e-12);
  // A kind that was not measured takes what its steps take, as do ranks of two hosts.
  const ScheduleRequest gather =
      request(CollectiveKind::allGather, ScheduleAlgorithm::direct, 2, 4096);
  EXPECT_EQ(seconds(gather, network), seconds(gather, steps));
  ScheduleRequest far = sum(500);
  place(far, 1);
  EXPECT_EQ(seconds(far, *networkOf(sampleMachine(), "shm", 2, far.topology)),
            seconds(far, *networkOf(sampleMachine(), "threads", 2, far.topology)));
}

TEST(ScheduleTime, TakesLongerWhereMemoryIsCold) {
  const Network network = *networkOf(sampleMachine(), "shm", 2);
  auto longer = [&](int64_t bytes, double between, bool inPlace = false) {
    ScheduleRequest r = request(CollectiveKind::allReduce, ScheduleAlgorithm::direct, 2, bytes);
    r.values[0].inPlace = inPlace;
    return coldSeconds(r, network, between);
  };
  EXPECT_DOUBLE_EQ(longer(100, 1000), 1e-6);
  EXPECT_DOUBLE_EQ(longer(1000, 100000), 1e-5);
  EXPECT_DOUBLE_EQ(longer(100, 500), 0.5e-6);
  EXPECT_DOUBLE_EQ(longer(100, 50500), 3e-6);
  EXPECT_DOUBLE_EQ(longer(550 / 50 * 50, 1000), 2e-6);
  // Beyond the table as long as at its end, and before it as at its begin.
  EXPECT_DOUBLE_EQ(longer(1 << 20, 1e9), 1e-5);
  EXPECT_DOUBLE_EQ(longer(4, 1000), 1e-6);
  EXPECT_EQ(longer(1000, 0), 0);
  // What is in place was just written; what else the collective needs is as cold.
  EXPECT_DOUBLE_EQ(longer(1000, 1e9, true), 5e-6);
  EXPECT_EQ(coldSeconds(request(CollectiveKind::allReduce, ScheduleAlgorithm::direct, 2, 100),
                        *networkOf(sampleMachine(), "threads", 2), 1e9),
            0);
}

TEST(ScheduleTime, TakesLongerBetweenHostsThatDidOtherWork) {
  ScheduleRequest sum = request(CollectiveKind::allReduce, ScheduleAlgorithm::direct, 2, 100);
  place(sum, 1);
  const Network network = *networkOf(sampleMachine(), "ucx", 2, sum.topology);
  EXPECT_EQ(coldSeconds(sum, network, 0), 0);
  EXPECT_DOUBLE_EQ(coldSeconds(sum, network, 1 << 19), 1e-5);
  EXPECT_DOUBLE_EQ(coldSeconds(sum, network, 1 << 20), 2e-5);
  EXPECT_DOUBLE_EQ(coldSeconds(sum, network, 1e9), 6e-5);
}

TEST(ScheduleTime, NamesWhatTheFileLacks) {
  EXPECT_ERROR(networkOf(sampleMachine(), "shm", 4).status(),
               "the machine file has no transport 'shm' of 4 ranks");
  ScheduleRequest gather = request(CollectiveKind::allGather, ScheduleAlgorithm::direct, 2, 64);
  place(gather, 1);
  EXPECT_ERROR(timeOf(gather, Network()).status(), "the machine file has no link between hosts");
}
