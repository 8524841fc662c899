//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Times of encoded collectives, computed by hand.
//
//===----------------------------------------------------------------------===//
#include "braid/Cost/EncodedTime.h"
#include "SampleMachine.h"
#include "Testing.h"

#include <gmock/gmock.h>

using namespace braid::cost;
using namespace braid::cost::testing;
using braid::runtime::CollectiveKind;
using braid::runtime::DType;
using braid::runtime::EncodingPair;
using braid::runtime::LibraryCall;
using braid::runtime::ScheduleRequest;
using braid::runtime::Topology;

namespace {

/// Hosts of a rank each: a link, codecs of int8:128 at 1e9, 2e9 and 4e9 elements a second, and no
/// other figure, so that nothing else takes time.
std::shared_ptr<Machine> hostsOfARank(double bytesPerSecond = 1.25e8, double latency = 1e-4) {
  auto machine = std::make_shared<Machine>();
  machine->name = "hosts";
  machine->processor = Processor{"Sample Processor", 2, "avx2", {}};
  ComputeRates rates;
  rates.busyCores = 1;
  rates.codecs = {{"int8:128", 1000, 1e9, 2e9, 4e9}};
  machine->compute = {rates};
  Link link;
  link.name = "wire";
  link.latencySeconds = latency;
  link.bytesPerSecond = bytesPerSecond;
  machine->links = {link};
  return machine;
}

/// A rank on each host.
Topology apart(int64_t ranks) {
  Topology topology;
  for (int64_t r = 0; r < ranks; ++r)
    topology.places.push_back({r, 0});
  return topology;
}

EncodableCollective collectiveOf(CollectiveKind kind, int64_t ranks,
                                 const std::vector<int64_t> &shape) {
  EncodableCollective c;
  c.kind = kind;
  c.ranks = ranks;
  c.values = {{DType::f32, shape}};
  c.topology = apart(ranks);
  return c;
}

EncodingPair pairOf(const char *text) { return *EncodingPair::parse(text); }

/// "encode 8x384 for 2; decode_sum 4x384": how many ranks the parts are for, of which one is the
/// rank.
std::string codecsOf(const EncodedSteps &steps) {
  std::string text;
  for (const LibraryCall &call : steps.codecs) {
    EXPECT_OK(call.check());
    const auto &shape = call[braid::runtime::codecRows(call)].shape;
    text += (text.empty() ? "" : "; ") + std::string(call.kernel->name) + " " +
            std::to_string(shape[0]) + "x" + std::to_string(shape[1]);
    if (std::string(call.kernel->name) == "encode" && call.parts > 1)
      text += " for " + std::to_string(call.parts);
  }
  return text;
}

/// "all_to_all 832; all_gather 1600": the bytes of a part.
std::string exchangesOf(const EncodedSteps &steps) {
  std::string text;
  for (const ScheduleRequest &request : steps.exchanges) {
    EXPECT_OK(checkRequest(request));
    text += (text.empty() ? "" : "; ") + std::string(name(request.kind));
    for (const auto &value : request.values)
      text += " " + std::to_string(value.partBytes);
  }
  return text;
}

EncodedSteps stepsOf(const EncodableCollective &c, const char *encodings,
                     const EncodedChunks &chunks = {}) {
  braid::runtime::Result<EncodedSteps> steps = encodedSteps(c, pairOf(encodings), chunks);
  EXPECT_OK(steps.status());
  return steps.ok() ? std::move(*steps) : EncodedSteps();
}

template <typename T> T got(braid::runtime::Result<T> result) {
  EXPECT_OK(result.status());
  return result.ok() ? std::move(*result) : T();
}

/// Equal but for rounding.
#define EXPECT_CLOSE(got, expected) EXPECT_NEAR(got, expected, 1e-10 * (expected))

} // namespace

// The example of the expansion's description: 8 rows of 384 over 2 ranks.
TEST(EncodedSteps, OfAnAllReduce) {
  const EncodedSteps steps =
      stepsOf(collectiveOf(CollectiveKind::allReduce, 2, {2, 4, 384}), "int4:128/int8:128");
  EXPECT_EQ(codecsOf(steps), "encode 8x384 for 2; decode_sum 4x384; encode 4x384; decode 8x384");
  EXPECT_EQ(exchangesOf(steps), "all_to_all 832; all_gather 1600");
  EXPECT_EQ(steps.payloadBytes, 2 * 832 + 1600);
  EXPECT_EQ(steps.chunks, 1);
}

// One row over 4 ranks is cut into pieces of whole groups; if it has none, it is padded.
TEST(EncodedSteps, OfRowsThatDoNotDivide) {
  EXPECT_EQ(codecsOf(stepsOf(collectiveOf(CollectiveKind::allReduce, 4, {1, 4096}), "int8:128")),
            "encode 4x1024 for 4; decode_sum 1x1024; encode 1x1024; decode 4x1024");
  EXPECT_EQ(codecsOf(stepsOf(collectiveOf(CollectiveKind::allReduce, 4, {1, 100}), "int8:128")),
            "encode 1x100 for 4; decode_sum 1x100; encode 1x100; decode 1x100");
}

TEST(EncodedSteps, InChunks) {
  // 2 x 8 rows of 132 bytes behind 16 of a header, of which a chunk has at least 2 x 264.
  const EncodableCollective c = collectiveOf(CollectiveKind::allReduce, 2, {16, 128});
  const EncodedSteps steps = stepsOf(c, "int8:128", {264, 32});
  EXPECT_EQ(steps.chunks, 4);
  EXPECT_EQ(exchangesOf(steps),
            "all_to_all 288; all_gather 288; all_to_all 288; all_gather 288; all_to_all 288; "
            "all_gather 288; all_to_all 288; all_gather 288");
  EXPECT_EQ(stepsOf(c, "int8:128", {264, 3}).chunks, 3);
  EXPECT_EQ(stepsOf(c, "int8:128", {1, 32}).chunks, 8); // rows that a rank adds
  EXPECT_EQ(stepsOf(c, "int8:128", {0, 32}).chunks, 1);
  EXPECT_EQ(stepsOf(c, "int8:128").chunks, 1);
}

TEST(EncodedSteps, OfOtherCollectivesInChunks) {
  auto of = [](CollectiveKind kind, const std::vector<int64_t> &shape, int64_t dim,
               int64_t concatDim, int64_t least) {
    EncodableCollective c = collectiveOf(kind, 2, shape);
    c.dim = dim;
    c.concatDim = concatDim;
    if (kind == CollectiveKind::permute)
      c.pairs = {{0, 1}, {1, 0}};
    const EncodedSteps steps = stepsOf(c, "int8:128", {least, 32});
    return codecsOf(steps) + " | " + exchangesOf(steps);
  };
  // Rows of 132 bytes behind 16 in each part, in multiples of 16. The piece of each rank has a
  // codec of its own,
  EXPECT_EQ(of(CollectiveKind::reduceScatter, {4, 128}, 0, 0, 144),
            "encode 1x128 for 2; encode 1x128 for 2; decode_sum 1x128; encode 1x128 for 2; encode "
            "1x128 for 2; "
            "decode_sum 1x128 | all_to_all 160; all_to_all 160");
  EXPECT_EQ(of(CollectiveKind::allGather, {2, 128}, 0, 0, 144),
            "encode 1x128; decode 1x128; decode 1x128; encode 1x128; decode 1x128; decode 1x128 | "
            "all_gather 160; all_gather 160");
  // unless dimensions are before it.
  EXPECT_EQ(of(CollectiveKind::allGather, {2, 2, 128}, 1, 0, 288),
            "encode 2x128; decode 4x128; encode 2x128; decode 4x128 | "
            "all_gather 320; all_gather 320");
  // A part has two positions of what is split, and as many of what is joined: the first one is cut.
  EXPECT_EQ(of(CollectiveKind::allToAll, {4, 2, 128}, 0, 1, 288),
            "encode 2x128; encode 2x128; decode 4x128; encode 2x128; encode 2x128; decode 4x128 | "
            "all_to_all 288; all_to_all 288");
  // Columns are split, and rows cut, which are joined.
  EXPECT_EQ(of(CollectiveKind::allToAll, {2, 256}, 1, 0, 160),
            "encode 2x128; decode 1x128; decode 1x128; encode 2x128; decode 1x128; decode 1x128 | "
            "all_to_all 160; all_to_all 160");
  for (const char *kind : {"broadcast", "permute"})
    EXPECT_EQ(
        of(kind == std::string("permute") ? CollectiveKind::permute : CollectiveKind::broadcast,
           {1, 3, 128}, 0, 0, 200),
        std::string("encode 1x128; decode 1x128; encode 2x128; decode 2x128 | ") + kind + " 160; " +
            kind + " 288");
  // Counts say how much is sent.
  EXPECT_EQ(of(CollectiveKind::allToAllV, {2, 3, 128}, 0, 0, 1),
            "encode 6x128; decode 6x128 | all_to_all_v 480 8");
}

TEST(EncodedChunks, HaveAtLeastTheBytesThatAreAskedFor) {
  const EncodedChunks limits{256, 32};
  EXPECT_EQ(limits.count(4 * 2 * 256, 2, 100), 4);
  EXPECT_EQ(limits.count(4 * 2 * 256 - 1, 2, 100), 3);
  EXPECT_EQ(limits.count(4 * 2 * 256, 2, 3), 3);
  EXPECT_EQ(limits.count(100 * 2 * 256, 2, 100), 32);
  EXPECT_EQ(limits.count(1, 2, 100), 1);
  EXPECT_EQ((EncodedChunks{0, 32}.count(1 << 20, 2, 100)), 1);
  EXPECT_EQ((EncodedChunks{INT64_MAX, 32}.count(1 << 20, 2, 100)), 1);
}

TEST(EncodedChunks, HaveWholeUnitsButForTheLast) {
  auto rows = [](int64_t all, int64_t unit, int64_t chunks) {
    std::string text;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const ChunkRows own = rowsOfChunk(all, unit, chunk, chunks);
      text += std::to_string(own.from) + "+" + std::to_string(own.size) + " ";
    }
    return text;
  };
  EXPECT_EQ(rows(15, 2, 3), "0+4 4+6 10+5 ");
  EXPECT_EQ(rows(7, 1, 3), "0+2 2+2 4+3 ");
  EXPECT_EQ(rows(5, 8, 1), "0+5 ");
  // Of less than a unit for each chunk, the last ones have some.
  EXPECT_EQ(rows(1, 1, 3), "0+0 0+0 0+1 ");
  EXPECT_EQ(rows(5, 4, 3), "0+0 0+4 4+1 ");
}

TEST(EncodedChunks, OfAPartAreAlongItsLongestDimension) {
  EXPECT_EQ(longestDim({}), -1);
  EXPECT_EQ(longestDim({1}), 0);
  EXPECT_EQ(longestDim({2, 7, 7, 3}), 1);
}

TEST(EncodedSteps, OfOtherCollectives) {
  auto of = [](CollectiveKind kind, const std::vector<int64_t> &shape, int64_t dim,
               int64_t concatDim = 0) {
    EncodableCollective c = collectiveOf(kind, 2, shape);
    c.dim = dim;
    c.concatDim = concatDim;
    if (kind == CollectiveKind::permute)
      c.pairs = {{0, 1}, {1, 0}};
    const EncodedSteps steps = stepsOf(c, "int8:128");
    return codecsOf(steps) + " | " + exchangesOf(steps);
  };
  // Rows of 132 bytes behind 16, in multiples of 16.
  EXPECT_EQ(of(CollectiveKind::reduceScatter, {4, 128}, 0),
            "encode 4x128 for 2; decode_sum 2x128 | all_to_all 288");
  EXPECT_EQ(of(CollectiveKind::reduceScatter, {4, 256}, 1),
            "encode 8x128 for 2; decode_sum 4x128 | all_to_all 640");
  EXPECT_EQ(of(CollectiveKind::allGather, {4, 128}, 0),
            "encode 4x128; decode 8x128 | all_gather 544");
  EXPECT_EQ(of(CollectiveKind::allGather, {4, 128}, 1),
            "encode 4x128; decode 8x128 | all_gather 640");
  EXPECT_EQ(of(CollectiveKind::allToAll, {4, 2, 128}, 0, 1),
            "encode 8x128; decode 8x128 | all_to_all 576");
  EXPECT_EQ(of(CollectiveKind::broadcast, {4, 128}, 0),
            "encode 4x128; decode 4x128 | broadcast 544");
  EXPECT_EQ(of(CollectiveKind::permute, {4, 128}, 0), "encode 4x128; decode 4x128 | permute 544");
  EXPECT_EQ(of(CollectiveKind::allToAllV, {2, 3, 128}, 0),
            "encode 6x128; decode 6x128 | all_to_all_v 480 8");
}

TEST(EncodedSteps, WhatCannotBeEncoded) {
  EncodableCollective c = collectiveOf(CollectiveKind::allReduce, 2, {4, 128});
  c.values[0].type = DType::i64;
  EXPECT_FALSE(encodedSteps(c, pairOf("int8:128")).ok());
}

TEST(EncodedTime, OverALink) {
  const EncodedTimes times(hostsOfARank(), "ucx", 1);
  const EncodableCollective c = collectiveOf(CollectiveKind::allReduce, 2, {64, 4096});
  // Half of 1 MiB there, and the sum of the other half back, in chunks: one latency is hidden.
  EXPECT_CLOSE(got(times.plain(c)), 1e-4 + 2 * 524288 / 1.25e8);
  // 32 rows of 32 groups of 132 bytes behind a header, each way.
  const EncodedTime time = got(times.encoded(c, pairOf("int8:128")));
  EXPECT_EQ(time.payloadBytes, 3 * (32 * 32 * 132 + 16));
  EXPECT_CLOSE(time.exchangeSeconds, 2 * (1e-4 + (32 * 32 * 132 + 16) / 1.25e8));
  // Encode what the other rank adds, decode two halves in a sum, encode the sum, decode all.
  const double all = 64 * 4096, half = 32 * 4096;
  EXPECT_CLOSE(time.codecSeconds, half / 1e9 + half * (1 / 2e9 + 1 / 4e9) + half / 1e9 + all / 2e9);
  EXPECT_CLOSE(time.seconds, time.codecSeconds + time.exchangeSeconds);
  EXPECT_TRUE(EncodedTimes::isWorthwhile(got(times.plain(c)), time.seconds));
}

// What moves nothing and has no latency takes what its codecs take.
TEST(EncodedTime, OfAFastLinkIsThatOfCodecs) {
  const EncodedTimes times(hostsOfARank(1e14, 0), "ucx", 1);
  const EncodableCollective c = collectiveOf(CollectiveKind::allReduce, 2, {64, 4096});
  const EncodedTime time = got(times.encoded(c, pairOf("int8:128")));
  EXPECT_LT(time.exchangeSeconds, 1e-8);
  EXPECT_NEAR(time.seconds, time.codecSeconds, 1e-8);
  EXPECT_LT(got(times.plain(c)), 1e-7);
  EXPECT_FALSE(EncodedTimes::isWorthwhile(got(times.plain(c)), time.seconds));
}

TEST(EncodedTime, OfOneRankIsThatOfItsOwnWork) {
  EncodableCollective c = collectiveOf(CollectiveKind::allReduce, 1, {64, 4096});
  const EncodedTimes times(hostsOfARank(), "ucx", 1);
  EXPECT_EQ(got(times.plain(c)), 0);
}

TEST(EncodedTime, OfGroupsThatShareALink) {
  const EncodedTimes times(hostsOfARank(), "ucx", 4);
  EncodableCollective c = collectiveOf(CollectiveKind::allGather, 2, {64, 4096});
  EXPECT_CLOSE(got(times.plain(c)), 1e-4 + 1048576 / 1.25e8);
  c.groupsOfHost = 4;
  EXPECT_CLOSE(got(times.plain(c)), 1e-4 + 4 * 1048576 / 1.25e8);
}

// A link that passes 100 kB at once: what is short is as fast as that.
TEST(EncodedTime, OfWhatALinkPassesAtOnce) {
  const std::shared_ptr<Machine> machine = hostsOfARank();
  machine->links[0].messages = {
      {10000, 1e-4 + 1e-5}, {100000, 1e-4 + 1e-4}, {1000000, 1e-4 + 8e-3}};
  const EncodedTimes times(machine, "ucx", 1);
  auto gather = [&](int64_t elements) {
    return got(times.plain(collectiveOf(CollectiveKind::allGather, 2, {1, elements})));
  };
  EXPECT_CLOSE(gather(2500), 1e-4 + 1e-5);
  EXPECT_CLOSE(gather(25000), 1e-4 + 1e-4);
  EXPECT_CLOSE(gather(250000), 1e-4 + 8e-3);
  EXPECT_CLOSE(gather(2500000), 1e-4 + 1e7 / 1.25e8);
  // Less than the shortest message.
  EXPECT_CLOSE(gather(250), 1e-4 + 1000 / 1.25e8);
}

// Chunks follow each other, and so they do not have what the link passes at once each.
TEST(EncodedTime, OfWhatALinkPassesAtOnceInChunks) {
  const std::shared_ptr<Machine> machine = hostsOfARank();
  machine->links[0].messages = {
      {10000, 1e-4 + 1e-5}, {100000, 1e-4 + 1e-4}, {1000000, 1e-4 + 8e-3}};
  const EncodableCollective c = collectiveOf(CollectiveKind::allGather, 2, {512, 4096});
  const EncodedTimes times(machine, "ucx", 1), without(hostsOfARank(), "ucx", 1);
  const EncodedTime time = got(times.encoded(c, pairOf("int8:128"), {1 << 16, 32}));
  EXPECT_EQ(time.chunks, 32);
  EXPECT_CLOSE(time.seconds, got(without.encoded(c, pairOf("int8:128"), {1 << 16, 32})).seconds);
}

TEST(EncodedTime, EventsBetweenQueues) {
  const std::shared_ptr<Machine> machine = hostsOfARank();
  machine->overheads = Overheads{0, 0, 1e-5};
  const EncodableCollective c = collectiveOf(CollectiveKind::allReduce, 2, {64, 4096});
  const EncodedTimes without(hostsOfARank(), "ucx", 1), with(machine, "ucx", 1);
  // Of one collective, and of two.
  EXPECT_NEAR(got(with.plain(c)) - got(without.plain(c)), 2e-5, 1e-12);
  EXPECT_NEAR(got(with.encoded(c, pairOf("int8:128"))).seconds -
                  got(without.encoded(c, pairOf("int8:128"))).seconds,
              4e-5, 1e-12);
}

TEST(EncodedTime, CodecsAndExchangesInChunks) {
  EXPECT_CLOSE(overlapped(3, 5, 1), 8);
  // A quarter of both, and three quarters of the longer one.
  EXPECT_CLOSE(overlapped(3, 5, 4), 2 + 3.75);
  EXPECT_CLOSE(overlapped(5, 3, 4), 2 + 3.75);
  EXPECT_NEAR(overlapped(3, 5, 1000000), 5, 1e-5);
  EXPECT_CLOSE(overlapped(0, 5, 4), 5);
  // 3.75 of exchanges, while 1.875 of the 2.25 of codecs are done at half the rate; the rest alone.
  EXPECT_CLOSE(overlapped(3, 5, 4, 2, 1), 2 + 3.75 + 0.375);
  // Never longer than one after the other.
  EXPECT_CLOSE(overlapped(3, 5, 4, 4, 4), 8);
}

// Between hosts both slow each other down as the link says.
TEST(EncodedTime, BesideALink) {
  const std::shared_ptr<Machine> machine = hostsOfARank();
  const EncodableCollective c = collectiveOf(CollectiveKind::allReduce, 2, {64, 4096});
  const EncodedChunks chunks{1 << 15, 4};
  const EncodedTime alone =
      got(EncodedTimes(machine, "ucx", 1).encoded(c, pairOf("int8:128"), chunks));
  EXPECT_CLOSE(alone.seconds, overlapped(alone.codecSeconds, alone.exchangeSeconds, 4));
  machine->links[0].computeSlowdown = 2;
  machine->links[0].communicationSlowdown = 1.5;
  const EncodedTime time =
      got(EncodedTimes(machine, "ucx", 1).encoded(c, pairOf("int8:128"), chunks));
  EXPECT_EQ(time.codecSeconds, alone.codecSeconds);
  EXPECT_CLOSE(time.seconds, overlapped(alone.codecSeconds, alone.exchangeSeconds, 4, 2, 1.5));
  EXPECT_GT(time.seconds, alone.seconds);
}

// On one host both slow each other down as the file says.
TEST(EncodedTime, OnAHost) {
  auto machine = std::make_shared<Machine>(sampleMachine());
  machine->interference.push_back({"shm", 2, "memory", 2, 3});
  const EncodedTimes times(machine, "shm", 2);
  EncodableCollective c = collectiveOf(CollectiveKind::allReduce, 2, {64, 4096});
  c.topology = {};
  const EncodedTime one = got(times.encoded(c, pairOf("int8:128"), {0, 1})),
                    four = got(times.encoded(c, pairOf("int8:128"), {1 << 15, 4}));
  EXPECT_EQ(four.chunks, 4);
  EXPECT_CLOSE(one.seconds, one.codecSeconds + one.exchangeSeconds);
  // Payloads stay where they are: an exchange takes as long as one of a byte, whatever there is.
  EXPECT_CLOSE(four.exchangeSeconds, 4 * one.exchangeSeconds);
  EXPECT_CLOSE(four.seconds, overlapped(four.codecSeconds, four.exchangeSeconds, 4, 2, 3));
  // The codecs alone take longer than the collective as it is: 262144 elements at 0.25e9 and less.
  EXPECT_FALSE(EncodedTimes::isWorthwhile(got(times.plain(c)), one.seconds));
}

// Chunks would fit, but not all that is between two uses of one.
TEST(EncodedTime, OfChunksOfMoreThanCachesHave) {
  const std::shared_ptr<Machine> machine = hostsOfARank(1e14, 0);
  ComputeRates &rates = machine->compute[0];
  rates.memory = {{1000, 1e8, 1e8, 1e8}, {1 << 30, 1e8, 1e8, 1e8}};
  EncodableCollective c = collectiveOf(CollectiveKind::allReduce, 2, {64, 4096});
  auto codecSeconds = [&](int64_t mostElements, const EncodedChunks &chunks) {
    rates.codecs[0].elements = mostElements;
    const EncodedTime time =
        got(EncodedTimes(machine, "ucx", 1).encoded(c, pairOf("int8:128"), chunks));
    EXPECT_EQ(time.chunks, chunks.most);
    return time.codecSeconds;
  };
  // 262144 elements are as many as were measured: their rates count.
  const double all = 64 * 4096, half = 32 * 4096;
  const double measured = half / 1e9 + half * (1 / 2e9 + 1 / 4e9) + half / 1e9 + all / 2e9;
  EXPECT_CLOSE(codecSeconds(64 * 4096, {1 << 15, 4}), measured);
  // Encode and decode: 4 bytes of an element and 1.031, but the first one reads a half; decode_sum:
  // a payload of two ranks, the own rows, and the sum.
  const double payload = 132.0 / 128;
  const double traffic =
      (half + all) * 4 + 2 * all * payload + half * (2 * payload + 8) + half * (4 + payload);
  for (int64_t chunks : {1, 4})
    EXPECT_NEAR(codecSeconds(64 * 4096 - 1, {1 << 15, chunks}), traffic / 1e8,
                1e-3 * traffic / 1e8);
  // What an all_gather gives is as large.
  c = collectiveOf(CollectiveKind::allGather, 2, {32, 4096});
  EXPECT_CLOSE(codecSeconds(64 * 4096, {1 << 15, 4}), half / 1e9 + all / 2e9);
  const double gathered = (half + all) * (4 + payload);
  for (int64_t chunks : {1, 4})
    EXPECT_NEAR(codecSeconds(64 * 4096 - 1, {1 << 15, chunks}), gathered / 1e8,
                1e-3 * gathered / 1e8);
}

TEST(EncodedTime, NamesWhatTheFileLacks) {
  EncodableCollective c = collectiveOf(CollectiveKind::allReduce, 2, {64, 4096});
  std::shared_ptr<Machine> machine = hostsOfARank();
  EXPECT_ERROR(EncodedTimes(machine, "ucx", 1).encoded(c, pairOf("int4:128")).status(),
               "the machine file does not tell what 'int4:128' takes: it has no rates of such "
               "codes");
  machine->compute[0].codecs.clear();
  EXPECT_ERROR(EncodedTimes(machine, "ucx", 1).encoded(c, pairOf("int8:128")).status(),
               "the machine file has no rates of codecs");
  machine->links.clear();
  EXPECT_ERROR(EncodedTimes(machine, "ucx", 1).plain(c).status(),
               "the machine file has no link between hosts");
  c.topology = {};
  EXPECT_ERROR(EncodedTimes(machine, "shm", 2).plain(c).status(),
               "the machine file has no transport 'shm' of 2 ranks");
}

TEST(EncodedTime, OfPublishedGpus) {
  const EncodedTimes times(std::make_shared<const Machine>(*openMachine("h100")), "shm", 2);
  EncodableCollective c = collectiveOf(CollectiveKind::allReduce, 2, {64, 4096});
  c.topology = {};
  // Each of four kernels is launched.
  EXPECT_GT(got(times.encoded(c, pairOf("int8:128"))).codecSeconds, 4 * 2e-5);
}
