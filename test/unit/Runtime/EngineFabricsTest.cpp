//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The engine on ranks that see each other's memory, on ranks that see their staging, on ranks that
// have links, and on several of these in one group; with several collectives of a group under way,
// whichever rank goes on when.
//
//===----------------------------------------------------------------------===//
#include "NetTesting.h"
#include "Testing.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Collective/EngineRun.h"
#include "runtime/lib/Collective/Staging.h"

#include <cstring>
#include <numeric>
#include <random>

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::net::testing;
using namespace braid::runtime::testing;

namespace {

constexpr Queue kQueue = 1;
constexpr int64_t kSecond = 1000000000;
constexpr int64_t kRows = 9, kColumns = 29, kPitch = 31; // of a part; rows have gaps
constexpr int64_t kBlocks = 2;                           // for each rank, of an all_to_all_v
constexpr size_t kValueBytes = 32768;
constexpr int64_t kChunkBytes = 500; // no whole number of rows

struct Case {
  CollectiveKind kind;
  ScheduleAlgorithm algorithm;
  bool isContiguous;
};

float elementOf(int64_t rank, int64_t part, int64_t i, int number) {
  return static_cast<float>((rank * 7 + part * 5 + i * 3 + number) % 13 - 6);
}
/// The rows that `from` sends `to` in a block of an all_to_all_v.
int32_t countOf(int64_t from, int64_t to, int64_t block) {
  return static_cast<int32_t>((from * 3 + to + block * 2) % (kRows + 1));
}

bool linkMoves = false; ///< makes progress now
int64_t sums = 0, sumsInLink = 0;

/// Those of this host, which count the sums of all, and those while a link makes progress.
const VectorKernels &countingKernels() {
  static const VectorKernels kernels = [] {
    VectorKernels counting = vectorKernels();
    counting.reduce = [](int kind, int dtype, void *out, const void *const *sources, int numSources,
                         int64_t count) {
      ++sums;
      sumsInLink += linkMoves ? 1 : 0;
      vectorKernels().reduce(kind, dtype, out, sources, numSources, count);
    };
    return counting;
  }();
  return kernels;
}

/// A group of which `perHost` consecutive ranks at a time see each other's memory, or only their
/// staging of this depth.
class Ranks {
public:
  Ranks(int64_t ranks, int64_t perHost, uint32_t depth)
      : n(ranks), group(numbered(ranks), kQueue), memory(static_cast<size_t>(ranks) * kRankBytes) {
    auto *arrivals = pool.create<Arrival>(static_cast<size_t>(n), pool.sharing());
    auto *pairs = pool.create<DirectPair>(static_cast<size_t>(n * n), pool.sharing());
    const Staging::Shape shape{static_cast<size_t>(n), kChunkBytes, depth};
    for (int64_t i = 0; i < n && depth > 0; ++i) {
      staged.push_back(static_cast<std::byte *>(pool.allocate(Staging::bytes(shape))));
      // What is there before is not read.
      std::memset(staged.back(), 0x5a, Staging::bytes(shape));
    }
    for (int64_t i = 0; i < n; ++i) {
      auto &member = group.members[static_cast<size_t>(i)];
      member = std::make_unique<GroupMember>(static_cast<size_t>(n), arrivals + i, pool);
      for (int64_t j = 0; j < n; ++j) {
        topology.places.resize(static_cast<size_t>(n));
        topology.places[static_cast<size_t>(j)] = {j / perHost, 0};
        if (i / perHost != j / perHost)
          continue;
        const auto at = static_cast<size_t>(j);
        member->pairs[at] = i == j || depth == 0 ? PairKind::direct : PairKind::staged;
        member->arrivals[at] = arrivals + j;
        member->to[at] = pairs + i * n + j;
        member->from[at] = pairs + j * n + i;
      }
      if (depth > 0)
        member->staging = std::make_unique<Staging>(shape, static_cast<size_t>(i), staged.data());
    }
  }
  Status connect() {
    ASSIGN_OR_RETURN(auto networks, openNetworks({}));
    for (int64_t i = 0; i < n; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<Link> link, Link::create(networks, i, n));
      links.push_back(std::move(link));
    }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        if (i != j) {
          ASSIGN_OR_RETURN(const std::string address, links[static_cast<size_t>(j)]->address());
          RETURN_IF_ERROR(links[static_cast<size_t>(i)]->connect(j, address, "host"));
        }
    return {};
  }
  SymmetricHeap heap(int64_t rank) { return {memory.data(), kRankBytes, rank, n}; }
  template <typename T> T *at(int64_t rank, uint64_t offset) {
    return reinterpret_cast<T *>(heap(rank).peer(rank, offset));
  }
  static std::vector<int64_t> numbered(int64_t count) {
    std::vector<int64_t> ranks(static_cast<size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  static constexpr size_t kRankBytes = 16 * kValueBytes;
  const int64_t n;
  MemoryPool pool{Sharing::process};
  EngineGroup group;
  Topology topology;
  PlanTable plans;
  std::vector<std::byte> memory;
  std::vector<std::byte *> staged;
  std::vector<std::unique_ptr<Link>> links;
};

/// One collective of all ranks; number `number` of those under way has memory of its own.
class Exchange {
public:
  Exchange(Ranks &ranks, const Case &which, int number)
      : ranks(ranks), which(which), number(number), n(ranks.n),
        input(static_cast<uint64_t>(number) * 4 * kValueBytes), output(input + kValueBytes),
        countsIn(output + kValueBytes), countsOut(countsIn + kValueBytes / 2),
        pitch(which.isContiguous ? kColumns : kPitch) {}

  Status begin() {
    for (int64_t rank = 0; rank < n; ++rank) {
      fill(rank);
      collectives.push_back(collectiveOf(rank));
      Collective &c = collectives.back();
      GroupMember &member = *ranks.group.members[static_cast<size_t>(rank)];
      ScheduleRequest request = requestOf(c, "ucx");
      request.algorithm = which.algorithm;
      request.topology = ranks.topology;
      request.chunkBytes = kChunkBytes;
      ASSIGN_OR_RETURN(c.plan, ranks.plans.find(request, member.pairs, rank));
      c.shared = SharedCollective::make(c, ranks.pool);
      scratch.emplace_back(static_cast<size_t>(c.plan->schedule.scratchBytes));
      engines.push_back(std::make_unique<Engine>(
          countingKernels(),
          ranks.links.empty() ? nullptr : ranks.links[static_cast<size_t>(rank)].get()));
    }
    isDone.assign(static_cast<size_t>(n), false);
    hasBegun.assign(static_cast<size_t>(n), false);
    return {};
  }
  /// The rank goes as far as it can, or begins.
  Status advance(int64_t rank) {
    const auto at = static_cast<size_t>(rank);
    if (!hasBegun[at]) {
      hasBegun[at] = true;
      heaps.resize(static_cast<size_t>(n));
      heaps[at] = ranks.heap(rank);
      return engines[at]->begin(collectives[at], *ranks.group.members[at], heaps[at],
                                scratch[at].data());
    }
    if (!isDone[at]) {
      ASSIGN_OR_RETURN(const bool done, engines[at]->advance());
      isDone[at] = done;
    }
    return {};
  }
  bool hasEnded(int64_t rank) const { return isDone[static_cast<size_t>(rank)]; }
  bool isBegun(int64_t rank) const { return hasBegun[static_cast<size_t>(rank)]; }

  int64_t wrongElements() {
    int64_t wrong = 0;
    for (int64_t rank = 0; rank < n; ++rank)
      for (int64_t part = 0; part < parts(false); ++part)
        for (int64_t i = 0; i < blocks() * kRows * kColumns; ++i)
          wrong += read(rank, output, part, i) != expected(rank, part, i) ? 1 : 0;
    return wrong;
  }

private:
  bool isCounted() const { return which.kind == CollectiveKind::allToAllV; }
  int64_t blocks() const { return isCounted() ? kBlocks : 1; }
  int64_t parts(bool ofInput) const {
    switch (which.kind) {
    case CollectiveKind::allToAll:
    case CollectiveKind::allToAllV:
      return n;
    case CollectiveKind::reduceScatter:
      return ofInput ? n : 1;
    case CollectiveKind::allGather:
      return ofInput ? 1 : n;
    default:
      return 1;
    }
  }
  float &read(int64_t rank, uint64_t offset, int64_t part, int64_t i) {
    const int64_t row = part * blocks() * kRows + i / kColumns;
    return ranks.at<float>(rank, offset)[row * pitch + i % kColumns];
  }
  void fill(int64_t rank) {
    for (int64_t part = 0; part < parts(true); ++part)
      for (int64_t i = 0; i < blocks() * kRows * kColumns; ++i)
        read(rank, input, part, i) = elementOf(rank, part, i, number);
    std::fill_n(ranks.at<float>(rank, output), kValueBytes / sizeof(float), -99.0F);
    for (int64_t i = 0; i < n * kBlocks; ++i)
      ranks.at<int32_t>(rank, countsIn)[i] = countOf(rank, i / kBlocks, i % kBlocks);
  }
  StridedView view(uint64_t offset, bool ofInput) const {
    if (isCounted())
      return {offset, {n * kBlocks, kRows, kColumns}, {kRows * pitch, pitch, 1}};
    return {offset, {parts(ofInput) * kRows, kColumns}, {pitch, 1}};
  }
  Collective collectiveOf(int64_t rank) {
    Collective c;
    c.kind = which.kind;
    c.root = n / 2;
    for (int64_t i = 0; c.kind == CollectiveKind::permute && i + 1 < n; ++i)
      c.pairs.emplace_back(i, i + 1);
    c.name = "c" + std::to_string(number);
    c.group = &ranks.group;
    c.position = rank;
    c.queue = kQueue;
    c.linkTag = static_cast<uint64_t>(number) << 32;
    CollectiveValue value;
    value.input = view(input, true);
    value.output = view(output, false);
    setParts(c, n, value);
    c.values.push_back(value);
    if (isCounted()) {
      CollectiveValue counts;
      counts.dtype = DType::i32;
      counts.input = {countsIn, {n * kBlocks}, {1}};
      counts.output = {countsOut, {n * kBlocks}, {1}};
      setParts(c, n, counts);
      c.values.push_back(counts);
    }
    return c;
  }
  /// By the definitions of the collectives.
  float expected(int64_t rank, int64_t part, int64_t i) const {
    auto sum = [&](int64_t ofPart) {
      float result = 0;
      for (int64_t other = 0; other < n; ++other)
        result += elementOf(other, ofPart, i, number);
      return result;
    };
    switch (which.kind) {
    case CollectiveKind::allReduce:
      return sum(0);
    case CollectiveKind::reduceScatter:
      return sum(rank);
    case CollectiveKind::reduce:
      return rank == n / 2 ? sum(0) : 0;
    case CollectiveKind::broadcast:
      return elementOf(n / 2, 0, i, number);
    case CollectiveKind::allGather:
      return elementOf(part, 0, i, number);
    case CollectiveKind::allToAll:
      return elementOf(part, rank, i, number);
    case CollectiveKind::allToAllV: {
      const int64_t row = i / kColumns;
      return row % kRows < countOf(part, rank, row / kRows) ? elementOf(part, rank, i, number) : 0;
    }
    case CollectiveKind::permute:
      return rank == 0 ? 0 : elementOf(rank - 1, 0, i, number);
    default:
      return NAN;
    }
  }

  Ranks &ranks;
  const Case which;
  const int number;
  const int64_t n;
  const uint64_t input, output, countsIn, countsOut;
  const int64_t pitch;
  std::vector<Collective> collectives;
  std::vector<std::vector<std::byte>> scratch;
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<SymmetricHeap> heaps;
  std::vector<bool> isDone, hasBegun;
};

/// All of them under way at once. In each round some rank goes on with one of its collectives.
void runTogether(Ranks &ranks, const std::vector<Case> &cases, std::mt19937 &random) {
  std::vector<std::unique_ptr<Exchange>> exchanges;
  std::string what;
  for (size_t i = 0; i < cases.size(); ++i) {
    what += std::string(i ? ", " : "") + name(cases[i].kind) + " by " + name(cases[i].algorithm);
    exchanges.push_back(std::make_unique<Exchange>(ranks, cases[i], static_cast<int>(i)));
    ASSERT_OK(exchanges.back()->begin());
  }
  const int64_t until = nowNs() + 20 * kSecond;
  for (size_t open = exchanges.size() * static_cast<size_t>(ranks.n); open > 0;) {
    ASSERT_LT(nowNs(), until) << "no progress: " << what << " of " << ranks.n;
    const auto rank = static_cast<int64_t>(random() % static_cast<uint64_t>(ranks.n));
    const size_t chosen = random() % exchanges.size();
    // Collectives begin in their order.
    if (chosen > 0 && !exchanges[chosen - 1]->isBegun(rank))
      continue;
    if (!ranks.links.empty()) {
      linkMoves = true;
      const Status moved = ranks.links[static_cast<size_t>(rank)]->progress(0);
      linkMoves = false;
      ASSERT_OK(moved);
    }
    const bool hadEnded = exchanges[chosen]->isBegun(rank) && exchanges[chosen]->hasEnded(rank);
    const Status status = exchanges[chosen]->advance(rank);
    ASSERT_TRUE(status.ok()) << status.message() << "; " << what;
    open -= !hadEnded && exchanges[chosen]->hasEnded(rank) ? 1 : 0;
  }
  for (const auto &exchange : exchanges)
    EXPECT_EQ(exchange->wrongElements(), 0) << what << " of " << ranks.n;
}

std::vector<Case> casesOf(int64_t ranks) {
  std::vector<Case> cases;
  for (CollectiveKind kind :
       {CollectiveKind::allReduce, CollectiveKind::reduceScatter, CollectiveKind::allGather,
        CollectiveKind::reduce, CollectiveKind::broadcast, CollectiveKind::allToAll,
        CollectiveKind::allToAllV, CollectiveKind::permute})
    for (ScheduleAlgorithm algorithm :
         {ScheduleAlgorithm::direct, ScheduleAlgorithm::oneShot, ScheduleAlgorithm::ring,
          ScheduleAlgorithm::recursiveDoubling, ScheduleAlgorithm::tree,
          ScheduleAlgorithm::hierarchical})
      for (bool isContiguous : {false, true})
        if (checkAlgorithm(algorithm, kind, ranks).ok())
          cases.push_back({kind, algorithm, isContiguous});
  return cases;
}

struct Fabric {
  int64_t ranks, perHost;
  uint32_t depth = 0; ///< of staging; 0: none
};
void PrintTo(const Fabric &fabric, std::ostream *os) {
  *os << fabric.ranks << " ranks, " << fabric.perHost << " on a host";
  if (fabric.depth > 0)
    *os << ", staging of depth " << fabric.depth;
}

class EngineFabrics : public ::testing::TestWithParam<Fabric> {
protected:
  void SetUp() override {
    random.seed(seed);
    std::cout << "seed " << seed << "\n";
    ranks = std::make_unique<Ranks>(GetParam().ranks, GetParam().perHost, GetParam().depth);
    if (GetParam().perHost < GetParam().ranks)
      ASSERT_OK(ranks->connect());
  }
  const uint32_t seed = std::random_device()();
  std::mt19937 random;
  std::unique_ptr<Ranks> ranks;
};

TEST_P(EngineFabrics, EveryAlgorithmAlone) {
  for (const Case &one : casesOf(GetParam().ranks))
    runTogether(*ranks, {one}, random);
}

TEST_P(EngineFabrics, SeveralUnderWay) {
  const std::vector<Case> cases = casesOf(GetParam().ranks);
  for (int round = 0; round < 40; ++round) {
    std::vector<Case> some;
    for (size_t i = 0; i < kCollectivesInFlight; ++i)
      some.push_back(cases[random() % cases.size()]);
    runTogether(*ranks, some, random);
  }
}

TEST(EngineOverLinks, AddsTheLastMessageWhereTheLinkHasIt) {
  std::mt19937 random(1);
  Ranks ranks(2, 1, 0);
  ASSERT_OK(ranks.connect());
  for (bool isContiguous : {false, true}) {
    sums = sumsInLink = 0;
    for (int round = 0; round < 20; ++round)
      runTogether(ranks, {{CollectiveKind::reduceScatter, ScheduleAlgorithm::direct, isContiguous}},
                  random);
    // Those of messages that come before the rank expects them are done when it does.
    EXPECT_GT(sumsInLink, sums / 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, EngineFabrics,
                         ::testing::Values(Fabric{3, 3}, Fabric{4, 4}, Fabric{2, 1}, Fabric{3, 1},
                                           Fabric{4, 2}, Fabric{5, 2}, Fabric{6, 3}));
/// Values are of up to three messages for each other rank.
INSTANTIATE_TEST_SUITE_P(OfStaging, EngineFabrics,
                         ::testing::Values(Fabric{2, 2, 1}, Fabric{2, 2, 4}, Fabric{3, 3, 1},
                                           Fabric{4, 4, 2}, Fabric{5, 5, 1}, Fabric{4, 2, 1},
                                           Fabric{5, 2, 2}, Fabric{6, 3, 4}));

} // namespace
