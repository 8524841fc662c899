//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Algorithms and chunks of least time.
//
//===----------------------------------------------------------------------===//
#include "braid/Cost/ScheduleChoice.h"
#include "SampleMachine.h"
#include "Testing.h"
#include "braid/Base/LastLevelCache.h"

#include <gtest/gtest.h>
#include <thread>

using namespace braid::cost;
using namespace braid::cost::testing;
using braid::runtime::CollectiveKind;
using braid::runtime::ScheduleAlgorithm;
using braid::runtime::ScheduleRequest;

namespace {

/// `perHost` ranks on each host.
ScheduleRequest request(CollectiveKind kind, int64_t ranks, int64_t bytes, int64_t perHost) {
  ScheduleRequest r;
  r.kind = kind;
  r.ranks = ranks;
  r.values = {{bytes, 4, false}};
  for (int64_t rank = 0; rank < ranks; ++rank)
    r.topology.places.push_back({rank / perHost, 0});
  return r;
}

/// Hosts of two ranks, whose links have 50 us and 100 MB/s.
Network hosts() {
  Network network = *networkOf(sampleMachine(), "threads", 2);
  network.between.latencySeconds = 5e-5;
  network.between.bytesPerSecond = 1e8;
  return network;
}

ScheduleChoice choice(const ScheduleRequest &request, bool anyOrder = true) {
  ChoiceOptions options;
  options.anyOrder = anyOrder;
  const Result<ScheduleChoice> chosen = leastTime(request, hosts(), options);
  EXPECT_OK(chosen.status());
  return chosen.ok() ? *chosen : ScheduleChoice();
}

} // namespace

TEST(ScheduleChoice, FewBytesGoInOneStep) {
  // Of 8 hosts, one step with all bytes to all: alpha + 7 S / beta; in two: 2 alpha + 14/8 S /
  // beta.
  EXPECT_EQ(choice(request(CollectiveKind::allReduce, 8, 512, 1)).algorithm,
            ScheduleAlgorithm::oneShot);
  EXPECT_EQ(choice(request(CollectiveKind::allReduce, 8, 16384, 1)).algorithm,
            ScheduleAlgorithm::direct);
}

TEST(ScheduleChoice, ManyRanksOfAHostSendOnce) {
  // Four hosts of two ranks: what goes to another host goes once.
  const ScheduleChoice large = choice(request(CollectiveKind::allReduce, 8, 1 << 20, 2));
  EXPECT_EQ(large.algorithm, ScheduleAlgorithm::hierarchical);
  // Where sums must have the bits of rank order, it does not come into question.
  const ScheduleChoice ordered = choice(request(CollectiveKind::allReduce, 8, 1 << 20, 2), false);
  EXPECT_EQ(ordered.algorithm, ScheduleAlgorithm::direct);
  EXPECT_GT(ordered.seconds, large.seconds);
  for (const AlgorithmTime &one : ordered.considered)
    EXPECT_TRUE(keepsRankOrder(one.algorithm, CollectiveKind::allReduce, 8));
}

TEST(ScheduleChoice, ABroadcastOfManyBytesGoesAlongTheHosts) {
  // A chain in chunks takes S / beta; the root's card sends seven times as much to seven others.
  const ScheduleChoice large = choice(request(CollectiveKind::broadcast, 8, 16 << 20, 1));
  EXPECT_EQ(large.algorithm, ScheduleAlgorithm::ring);
  EXPECT_LT(large.chunkBytes, 4 << 20);
  EXPECT_LT(large.seconds, 1.3 * (16 << 20) / 1e8);
  EXPECT_NE(choice(request(CollectiveKind::broadcast, 8, 64, 1)).algorithm,
            ScheduleAlgorithm::ring);
}

TEST(ScheduleChoice, DoesNotShrinkWhereBytesGrow) {
  for (const CollectiveKind kind :
       {CollectiveKind::allReduce, CollectiveKind::reduceScatter, CollectiveKind::allGather,
        CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::allToAll}) {
    double last = 0;
    for (int64_t bytes = 256; bytes <= 4 << 20; bytes *= 4) {
      const ScheduleChoice chosen = choice(request(kind, 4, bytes, 2));
      EXPECT_GE(chosen.seconds, last) << name(kind) << " " << bytes;
      last = chosen.seconds;
      ASSERT_FALSE(chosen.considered.empty());
      EXPECT_EQ(chosen.considered.front().seconds, chosen.seconds);
      for (size_t i = 1; i < chosen.considered.size(); ++i)
        EXPECT_GE(chosen.considered[i].seconds, chosen.considered[i - 1].seconds);
    }
  }
}

TEST(ScheduleChoice, OnGpusOfPublishedMachines) {
  const Machine h100 = *openMachine("h100");
  ScheduleRequest sum = request(CollectiveKind::allReduce, 16, 8 << 20, 8);
  const Network network = *networkOf(h100, "", 16, sum.topology);
  ChoiceOptions options;
  options.anyOrder = true;
  const Result<ScheduleChoice> chosen = leastTime(sum, network, options);
  ASSERT_OK(chosen.status());
  EXPECT_EQ(chosen->algorithm, ScheduleAlgorithm::hierarchical);
}

TEST(ScheduleChoice, OfATransportByItsMachine) {
  // Where messages take long, one step is better than two; where bytes do, fewer of them.
  Machine slowMessages = sampleMachine(), slowBytes = sampleMachine();
  slowMessages.transports[0].messageSeconds = 1e-3;
  slowBytes.transports[0].messageSeconds = 1e-9;
  for (Machine *machine : {&slowMessages, &slowBytes}) {
    machine->processor->cores = 4;
    machine->transports[0].ranks = 4;
  }
  ScheduleRequest sum = request(CollectiveKind::allReduce, 4, 4096, 4);
  auto chosen = [&](const Machine &machine) {
    ScheduleChooser chooser("threads", std::make_shared<const Machine>(machine));
    ScheduleRequest r = sum;
    const std::shared_ptr<const ChosenSchedule> first = chooser.choose(r);
    EXPECT_EQ(r.algorithm, first->algorithm);
    EXPECT_EQ(r.chunkBytes, first->chunkBytes);
    EXPECT_EQ(first->whyByRule, "");
    EXPECT_FALSE(first->considered.empty());
    for (const AlgorithmTime &one : first->considered)
      EXPECT_TRUE(keepsRankOrder(one.algorithm, CollectiveKind::allReduce, 4));
    ScheduleRequest again = sum;
    EXPECT_EQ(chooser.choose(again), first);
    return first->algorithm;
  };
  EXPECT_EQ(chosen(slowMessages), ScheduleAlgorithm::oneShot);
  EXPECT_EQ(chosen(slowBytes), ScheduleAlgorithm::direct);
}

TEST(ScheduleChoice, ByRuleUnlessAnotherIsWorthwhile) {
  // The slower messages are, the more one step gains over two; the rule of four ranks is two.
  bool changed = false;
  double messageSeconds = 1e-8;
  for (int i = 0; i < 28; ++i, messageSeconds *= 1.5) {
    auto machine = std::make_shared<Machine>(sampleMachine());
    machine->processor->cores = 4;
    machine->transports[0].ranks = 4;
    machine->transports[0].messageSeconds = messageSeconds;
    ScheduleChooser chooser("threads", machine);
    ScheduleRequest sum = request(CollectiveKind::allReduce, 4, 4096, 4);
    const std::shared_ptr<const ChosenSchedule> chosen = chooser.choose(sum);
    const double least = chosen->considered.front().seconds;
    EXPECT_LE(least, chosen->ruleSeconds);
    const bool gains = least <= (1 - kWorthwhile) * chosen->ruleSeconds;
    EXPECT_EQ(chosen->algorithm != ScheduleAlgorithm::direct, gains) << messageSeconds;
    EXPECT_TRUE(gains || !changed);
    changed = gains;
  }
  EXPECT_TRUE(changed);
}

TEST(ScheduleChoice, ByRuleWhereTimesAreNotKnown) {
  auto why = [](ScheduleChooser chooser, int64_t ranks, int64_t perHost) {
    ScheduleRequest r =
        request(CollectiveKind::allGather, ranks, 1 << 20, std::max<int64_t>(1, perHost));
    if (perHost == 0) // not known
      r.topology = {};
    ScheduleRequest rule = r;
    chooseSchedule(rule, "ucx");
    const std::shared_ptr<const ChosenSchedule> chosen = chooser.choose(r);
    EXPECT_EQ(r.algorithm, rule.algorithm);
    EXPECT_EQ(r.chunkBytes, rule.chunkBytes);
    EXPECT_TRUE(chosen->considered.empty());
    return chosen->whyByRule;
  };
  const auto sample = std::make_shared<const Machine>(sampleMachine());
  auto noLinks = std::make_shared<Machine>(sampleMachine());
  noLinks->links.clear();
  EXPECT_EQ(why(ScheduleChooser("ucx"), 4, 2), "no machine file is given");
  EXPECT_EQ(why(ScheduleChooser("ucx", sample), 8, 4),
            "the machine file has no transport 'shm' of 4 ranks");
  EXPECT_EQ(why(ScheduleChooser("ucx", noLinks), 4, 2),
            "the machine file has no link between hosts");
  EXPECT_EQ(why(ScheduleChooser("ucx", sample), 4, 0),
            "it is not known which ranks are on one host");
}

/// Between ranks of one host, chunks of long parts are as long as the last-level cache allows.
TEST(ScheduleChoice, ChunksOfAHostFillACacheInPart) {
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  const int64_t mib = 1 << 20, cache = braid::runtime::lastLevelCacheBytes();
  for (int64_t ranks : {int64_t(2), cores + 1, 2 * cores, 64 * cores})
    for (const char *transport : {"threads", "shm"}) {
      ScheduleRequest r = request(CollectiveKind::allReduce, ranks, 64 * ranks * mib, ranks);
      chooseSchedule(r, transport);
      EXPECT_TRUE(r.chunkBytes == mib || r.chunkBytes * ranks * 16 <= cache) << r.chunkBytes;
      EXPECT_TRUE(r.chunkBytes == 8 * mib || 2 * r.chunkBytes * ranks * 16 > cache) << r.chunkBytes;
      EXPECT_TRUE(r.chunkBytes >= mib && r.chunkBytes <= 8 * mib && r.chunkBytes % mib == 0);
      // A part of one chunk.
      r = request(CollectiveKind::allReduce, ranks, ranks * mib, ranks);
      chooseSchedule(r, transport);
      EXPECT_EQ(r.chunkBytes, mib);
      // Messages are staged.
      r = request(CollectiveKind::allReduce, ranks, 64 * ranks * mib, ranks);
      chooseSchedule(r, "ucx");
      EXPECT_EQ(r.chunkBytes, mib);
    }
}

TEST(ScheduleChoice, PartsForSeveralHostsComeInSeveralMessages) {
  auto chunk = [](CollectiveKind kind, int64_t ranks, int64_t bytes, int64_t perHost = 1) {
    ScheduleRequest r = request(kind, ranks, bytes, perHost);
    chooseSchedule(r, "ucx");
    return r.chunkBytes;
  };
  const int64_t kib = 1024;
  EXPECT_EQ(chunk(CollectiveKind::allReduce, 4, 256 * kib), 32 * kib);
  EXPECT_EQ(chunk(CollectiveKind::allReduce, 4, 512 * kib), 64 * kib);
  EXPECT_EQ(chunk(CollectiveKind::allGather, 4, 64 * kib), 32 * kib);
  EXPECT_EQ(chunk(CollectiveKind::allGather, 4, 128 * kib), 64 * kib);
  // One peer has nothing to wait for, and ranks of one host send no messages.
  EXPECT_EQ(chunk(CollectiveKind::allGather, 2, 64 * kib), 64 * kib);
  EXPECT_EQ(chunk(CollectiveKind::allReduce, 4, 256 * kib, 4), 1024 * kib);
}

TEST(ScheduleChoice, Refusals) {
  ScheduleRequest none = request(CollectiveKind::allReduce, 2, 64, 1);
  ChoiceOptions options;
  options.chunkBytes.clear();
  EXPECT_ERROR(leastTime(none, hosts(), options).status(),
               "a choice of schedules expects lengths of chunks, got none");
  EXPECT_ERROR(leastTime(none, Network()).status(), "the machine file has no link between hosts");
}
