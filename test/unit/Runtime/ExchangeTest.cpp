//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives of the threads transport in which ranks send different data: all_to_all, reduce,
// broadcast and permute, in all types, on groups of all sizes, with ranks that arrive at random
// times.
//
//===----------------------------------------------------------------------===//
#include "TransportTesting.h"

#include <functional>
#include <numeric>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

template <typename E> class Exchanges : public ::testing::Test {};
TYPED_TEST_SUITE(Exchanges, Types);

using Extents = std::vector<int64_t>;

int64_t product(const Extents &extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
}

/// The result of an all_to_all at an element of the output, computed from its definition.
double exchanged(const Extents &input, size_t split, size_t concat, int64_t n, int64_t position,
                 const std::vector<int64_t> &group, int64_t element, int round) {
  Extents output = input;
  output[split] /= n;
  output[concat] *= n;
  Extents at(output.size());
  for (size_t d = output.size(); d-- > 0; element /= output[d])
    at[d] = element % output[d];
  int64_t joined = output[concat] / n;
  int64_t sender = at[concat] / joined;
  at[concat] %= joined;
  at[split] += position * (input[split] / n);
  int64_t flat = 0;
  for (size_t d = 0; d < input.size(); ++d)
    flat = flat * input[d] + at[d];
  return contribution(group[static_cast<size_t>(sender)], flat, round);
}

TYPED_TEST(Exchanges, AllKindsAndGroupsUnderUnevenArrival) {
  using T = typename TypeParam::Storage;
  const uint32_t seed = testSeed();
  SCOPED_TRACE("BRAID_TEST_SEED=" + std::to_string(seed));
  using Groups = std::vector<std::vector<int64_t>>;
  for (const Groups &groups :
       {Groups{{0}}, Groups{{0, 1}}, Groups{{2, 0, 1}}, Groups{{0, 2}, {1, 3}},
        Groups{{0, 1, 2, 3, 4}}, Groups{{0, 2, 4}, {5, 3, 1}}}) {
    const auto n = static_cast<int64_t>(groups[0].size());
    const auto ranks = n * static_cast<int64_t>(groups.size());
    const uint64_t outputOffset = 65536;
    TestWorld w(ranks, 2 * outputOffset);
    std::atomic<int> wrong{0};
    for (const auto &group : groups)
      w.transport->group(group, kCommunicationQueue);
    w.run([&](int64_t rank) {
      std::mt19937 random(seed + static_cast<uint32_t>(rank));
      const auto &group = *std::find_if(groups.begin(), groups.end(), [&](const auto &g) {
        return std::find(g.begin(), g.end(), rank) != g.end();
      });
      int64_t position = std::find(group.begin(), group.end(), rank) - group.begin();
      T *in = w.memory<T>(rank, 0), *out = w.memory<T>(rank, outputOffset);
      for (int round = 0; round < 36; ++round) {
        const CollectiveKind kinds[] = {CollectiveKind::allToAll, CollectiveKind::reduce,
                                        CollectiveKind::broadcast, CollectiveKind::permute};
        CollectiveKind kind = kinds[round % 4];
        auto reduce = kind == CollectiveKind::reduce ? static_cast<ReduceKind>(round / 4 % 3)
                                                     : ReduceKind::sum;
        // Every pair of dimensions in turn; all sizes are odd except that of the split dimension.
        const size_t split = static_cast<size_t>(round / 4 % 3),
                     concat = static_cast<size_t>(round / 12);
        Extents input = {3, 5, 7};
        input[split] *= n;
        const int64_t count = product(input);
        const int64_t root = round % n;
        std::vector<std::pair<int64_t, int64_t>> pairs; // a shift; the last position sends nothing
        for (int64_t s = 0; s + 1 < n; ++s)
          pairs.push_back({s, (s + round) % n});
        for (int64_t i = 0; i < count; ++i) {
          fromDouble(contribution(rank, i, round), in[i]);
          fromDouble(55, out[i]);
        }
        Part part{TypeParam::type, input, 0, outputOffset};
        if (kind == CollectiveKind::allToAll)
          part.shape[split] /= n;
        Command c = command(w, kind, group, rank, {part}, reduce, "c", static_cast<int64_t>(split),
                            static_cast<int64_t>(concat));
        Collective &collective = std::get<CollectiveCommand>(c.op).collective;
        if (kind == CollectiveKind::permute)
          collective.pairs = pairs;
        else
          collective.root = root;
        if (random() % 4 == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
        if (!w.collective(rank, c))
          return;
        for (int64_t i = 0; i < count; ++i) {
          double expected = 0;
          if (kind == CollectiveKind::allToAll)
            expected = exchanged(input, split, concat, n, position, group, i, round);
          else if (kind == CollectiveKind::broadcast)
            expected = contribution(group[static_cast<size_t>(root)], i, round);
          else if (kind == CollectiveKind::reduce)
            expected = position == root ? expectedReduce(reduce, group, i, round) : 0;
          else
            for (auto [source, target] : pairs)
              if (target == position)
                expected = contribution(group[static_cast<size_t>(source)], i, round);
          if (toDouble(out[i]) != expected)
            wrong.fetch_add(1);
        }
        for (int64_t i = 0; i < count; ++i) // detects peers that still read
          fromDouble(99, in[i]);
      }
    });
    EXPECT_EQ(wrong.load(), 0) << ranks << " ranks in groups of " << n;
    EXPECT_FALSE(w.control.failed()) << w.control.failure().message();
  }
}

/// Counts that change after the check on the sender: at most one block's rows are copied.
TEST(CountedExchange, CountsThatChangeInFlightStayInTheirBlocks) {
  constexpr int64_t kCapacity = 4, kBlocks = 2;
  TestWorld w(2, 4096);
  // Inputs: [2 blocks, 4 rows] and their counts; the outputs have the same shapes.
  const Part rows{DType::f32, {1, kCapacity}, 0, 256}, counts{DType::i64, {1}, 128, 384};
  for (int64_t rank : {0, 1}) {
    std::fill_n(w.memory<float>(rank, 0), kBlocks * kCapacity, static_cast<float>(rank + 1));
    std::fill_n(w.memory<int64_t>(rank, 128), kBlocks, 2);
    std::fill_n(w.memory<float>(rank, 256), 32, -1.0F);
  }
  auto run = [&](int64_t rank) {
    return w.collective(rank, command(w, CollectiveKind::allToAllV, {0, 1}, rank, {rows, counts}));
  };
  w.transport->group({0, 1}, kCommunicationQueue);
  std::thread first([&] { EXPECT_TRUE(run(0)); });
  while (w.control.queue(0, kCommunicationQueue).waiting.load() != Waiting::peer)
    std::this_thread::yield();
  w.memory<int64_t>(0, 128)[0] = int64_t(1) << 40;
  w.memory<int64_t>(0, 128)[1] = -(int64_t(1) << 40);
  EXPECT_TRUE(run(1));
  first.join();
  for (int64_t i = 0; i < kCapacity; ++i) {
    EXPECT_EQ(w.memory<float>(0, 256)[i], 1);                 // the full block
    EXPECT_EQ(w.memory<float>(1, 256)[i], 0);                 // no rows
    EXPECT_EQ(w.memory<float>(1, 256)[i + 4], i < 2 ? 2 : 0); // 2 rows
  }
  EXPECT_EQ(w.memory<float>(0, 256)[8], -1);
}

} // namespace
