//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models that serve some ranks of a mesh, with the others in other models.
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Communicator.h"
#include "FeedForward.h"
#include "Session.h"
#include "Testing.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/Machine.h"
#include "runtime/lib/Collective/Transport.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

/// What stands in for processes: threads that share the memory of one transport.
class Together {
public:
  explicit Together(std::vector<RankRange> ranks) : ranks(std::move(ranks)) {}

  /// Calls work() in the last thread that comes; all leave after it, with its result.
  Status meet(const std::function<Status()> &work) {
    std::unique_lock<std::mutex> lock(mutex);
    const int64_t meeting = meetings;
    if (++arrived == ranks.size()) {
      outcome = work();
      arrived = 0;
      ++meetings;
      changed.notify_all();
    } else {
      changed.wait(lock, [&] { return meetings != meeting; });
    }
    return outcome;
  }

  const std::vector<RankRange> ranks;
  std::mutex mutex;
  std::unique_ptr<Transport> transport;
  std::vector<Contribution> given, gathered;
  std::vector<std::byte> word;                     ///< of rank 0, for all
  std::map<int64_t, std::vector<std::byte>> parts; ///< that rank 0 made, by first rank
  std::vector<std::pair<RankRange, std::string>> pieces;
  Status failure;

private:
  std::condition_variable changed;
  size_t arrived = 0;
  int64_t meetings = 0;
  Status outcome;
};

class SharedTransport : public Transport {
public:
  explicit SharedTransport(Together &all) : all(all) {}
  const char *name() const override { return all.transport->name(); }
  Status allocate(size_t bytes) override {
    return all.meet([&] { return all.transport->allocate(bytes); });
  }
  SymmetricHeap heap(int64_t rank) const override { return all.transport->heap(rank); }
  ProcessGroup *group(const std::vector<int64_t> &ranks, Queue queue) override {
    std::lock_guard<std::mutex> lock(all.mutex);
    return all.transport->group(ranks, queue);
  }
  MessageSlot *messageSlot(const Collective &pointToPoint, size_t index) override {
    std::lock_guard<std::mutex> lock(all.mutex);
    return all.transport->messageSlot(pointToPoint, index);
  }
  Status plan(Collective &collective) override {
    std::lock_guard<std::mutex> lock(all.mutex);
    return all.transport->plan(collective);
  }
  Status prepare() override {
    return all.meet([&] { return all.transport->prepare(); });
  }
  CollectiveRun *begin(const Collective &collective, const SymmetricHeap &heap, RunControl &control,
                       QueueState &self) override {
    return all.transport->begin(collective, heap, control, self);
  }
  bool sendOrReceive(const Collective &pointToPoint, const SymmetricHeap &heap, RunControl &control,
                     QueueState &self) override {
    return all.transport->sendOrReceive(pointToPoint, heap, control, self);
  }
  void reset() override {}

private:
  Together &all;
};

class InProcess : public Communicator {
public:
  InProcess(Together &all, size_t number) : all(all), number(number) {}
  int64_t numRanks() const override { return all.ranks.back().first + all.ranks.back().count; }
  RankRange local() const override { return all.ranks[number]; }
  std::string transportName() const override { return "shared"; }
  Result<std::unique_ptr<Transport>> createTransport(int64_t messagesInFlight) override {
    RETURN_IF_ERROR(all.meet([&] {
      all.transport = createThreadsTransport(numRanks(), messagesInFlight);
      return Status();
    }));
    return std::unique_ptr<Transport>(std::make_unique<SharedTransport>(all));
  }
  Result<std::vector<Contribution>> gather(std::vector<std::byte> mine,
                                           const std::vector<size_t> & /*bytes*/) override {
    {
      std::lock_guard<std::mutex> lock(all.mutex);
      all.given.push_back({local(), std::move(mine)});
    }
    RETURN_IF_ERROR(all.meet([&] {
      std::sort(all.given.begin(), all.given.end(),
                [](const auto &a, const auto &b) { return a.ranks.first < b.ranks.first; });
      all.gathered = std::move(all.given);
      all.given.clear();
      return Status();
    }));
    return hasRankZero() ? std::move(all.gathered) : std::vector<Contribution>();
  }
  Result<std::vector<std::byte>> scatter(const MakePart &make,
                                         const std::vector<size_t> &bytes) override {
    Status made;
    if (hasRankZero()) {
      for (const RankRange &ranks : all.ranks) {
        Result<std::vector<std::byte>> part = make(ranks);
        made = made.ok() ? part.status() : made;
        if (part.ok())
          all.parts[ranks.first] = std::move(*part);
      }
    }
    {
      std::lock_guard<std::mutex> lock(all.mutex);
      if (!made.ok())
        all.failure = made;
    }
    RETURN_IF_ERROR(all.meet([&] { return std::exchange(all.failure, Status()); }));
    std::vector<std::byte> mine = all.parts.at(local().first);
    RETURN_IF_ERROR(all.meet([] { return Status(); })); // before the next one's parts
    size_t expected = 0;
    for (int64_t rank : local())
      expected += bytes[static_cast<size_t>(rank)];
    EXPECT_EQ(mine.size(), expected);
    return mine;
  }
  Status broadcast(void *data, size_t bytes) override {
    auto *begin = static_cast<std::byte *>(data);
    if (hasRankZero())
      all.word.assign(begin, begin + bytes);
    RETURN_IF_ERROR(all.meet([] { return Status(); }));
    if (!hasRankZero())
      std::copy(all.word.begin(), all.word.end(), begin);
    return all.meet([] { return Status(); });
  }
  Status collect(const NextPiece &next, const TakePiece &take) override {
    Status status;
    for (bool ends = false; !ends && status.ok();) {
      Result<std::string> piece = next();
      status = piece.status();
      ends = !piece.ok() || piece->empty();
      std::lock_guard<std::mutex> lock(all.mutex);
      if (!ends)
        all.pieces.emplace_back(local(), std::move(*piece));
      else if (!status.ok())
        all.failure = status;
    }
    RETURN_IF_ERROR(all.meet([] { return Status(); }));
    Status taken = hasRankZero() ? std::exchange(all.failure, Status()) : status;
    for (const auto &[ranks, piece] : all.pieces)
      if (hasRankZero() && taken.ok())
        taken = take(ranks, piece);
    RETURN_IF_ERROR(all.meet([&] {
      all.pieces.clear();
      return Status();
    }));
    return taken;
  }
  /// Each process counts from another moment, an hour after that of the one before it.
  Result<ClockMap> measureClock() override {
    constexpr int64_t kHour = int64_t(3600) * 1000000000;
    const auto ahead = static_cast<int64_t>(number) * kHour;
    const ClockMap::Reading first{1, ahead, number == 0 ? 0 : 5000};
    return ClockMap{first, first};
  }
  std::string host() const override { return "host" + std::to_string(number); }

private:
  Together &all;
  size_t number;
};

WorldOptions optionsOf(Together &all, size_t number, const ProgramBuilder &builder) {
  WorldOptions options;
  options.kernels = &builder.kernels;
  options.transport = "shared";
  options.communicator = std::make_shared<InProcess>(all, number);
  options.timeLimitSeconds = 20;
  return options;
}

/// Runs work(number) for each process.
void inEach(Together &all, const std::function<void(size_t)> &work) {
  std::vector<std::thread> processes;
  for (size_t i = 0; i < all.ranks.size(); ++i)
    processes.emplace_back(work, i);
  for (std::thread &process : processes)
    process.join();
}

/// The ranks of each process.
std::vector<RankRange> cut(const std::vector<int64_t> &counts) {
  std::vector<RankRange> ranks;
  int64_t next = 0;
  for (int64_t count : counts) {
    ranks.push_back({next, count});
    next += count;
  }
  return ranks;
}

struct Split {
  int64_t dp, tp;
  std::vector<int64_t> counts; ///< of the ranks of each process
};

class SeveralProcesses : public ::testing::TestWithParam<Split> {};

} // namespace

TEST_P(SeveralProcesses, GiveTheResultsOfOne) {
  const Split &split = GetParam();
  const std::vector<float> x = randomValues(kBatch * kHidden, 3);
  ProgramBuilder builder = feedForward(split.dp, split.tp);
  auto alone = builder.session({});
  ASSERT_OK(alone.status());
  ASSERT_OK((*alone)->loadWeights(*WeightSource::random(7)));
  ASSERT_OK((*alone)->setInput("x", DType::f32, {kBatch, kHidden}, x.data()));
  ASSERT_OK((*alone)->run());
  auto expected = (*alone)->output("y");
  ASSERT_OK(expected.status());

  builder.manifest.transports.emplace_back("shared");
  const auto bundle = builder.bundle();
  Together all(cut(split.counts));
  inEach(all, [&](size_t number) {
    auto session = Session::create(bundle, optionsOf(all, number, builder));
    ASSERT_OK(session.status());
    ASSERT_OK((*session)->loadWeights(*WeightSource::random(7)));
    for (int run = 0; run < 3; ++run) {
      // From rank 0's process alone, or each from its own.
      if (run == 1)
        ASSERT_OK((*session)->scatterInput("x", DType::f32, {kBatch, kHidden},
                                           number == 0 ? x.data() : nullptr));
      else
        ASSERT_OK((*session)->setInput("x", DType::f32, {kBatch, kHidden}, x.data()));
      ASSERT_OK((*session)->run());
      auto y = (*session)->output("y");
      ASSERT_OK(y.status());
      if (number == 0)
        EXPECT_EQ(y->data, expected->data);
      else
        EXPECT_TRUE(y->data.empty());
    }
    // Commands, weights and arenas of the local ranks only.
    const auto report = nlohmann::json::parse((*session)->report());
    const RankRange local = all.ranks[number];
    ASSERT_EQ(report["per_rank"].size(), static_cast<size_t>(local.count));
    for (int64_t r : local)
      EXPECT_EQ(report["per_rank"][static_cast<size_t>(r - local.first)]["rank"], r);
    EXPECT_EQ(report["ranks"], split.dp * split.tp);
    EXPECT_EQ(report["transport"], "threads");
    if (local.count < report["ranks"]) {
      const int64_t other = (local.first + local.count) % report["ranks"].get<int64_t>();
      alignas(64) float own[kBatch * kHidden];
      EXPECT_ERROR((*session)->bindInput(other, "x", own, sizeof own),
                   "expects one of this process's ranks, " + std::to_string(local.first) + " to " +
                       std::to_string(local.first + local.count - 1) + ", got " +
                       std::to_string(other));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Splits, SeveralProcesses,
                         ::testing::Values(Split{1, 2, {1, 1}}, Split{1, 4, {1, 1, 1, 1}},
                                           Split{2, 2, {2, 2}}, Split{2, 2, {1, 2, 1}},
                                           Split{2, 2, {3, 1}}, Split{1, 1, {1}}),
                         [](const auto &info) {
                           std::string name = "dp" + std::to_string(info.param.dp) + "tp" +
                                              std::to_string(info.param.tp) + "by";
                           for (int64_t count : info.param.counts)
                             name += "_" + std::to_string(count);
                           return name;
                         });

/// What is wrong with rank 0's value is told to all.
TEST(SeveralProcesses, ScatterWhatRankZeroHas) {
  ProgramBuilder builder = feedForward(1, 2);
  builder.manifest.transports.emplace_back("shared");
  const auto bundle = builder.bundle();
  Together all(cut({1, 1}));
  inEach(all, [&](size_t number) {
    auto session = Session::create(bundle, optionsOf(all, number, builder));
    ASSERT_OK(session.status());
    const std::vector<float> x(kBatch * kHidden);
    EXPECT_ERROR((*session)->scatterInput("x", DType::f32, {kBatch, kHidden}, nullptr),
                 "rank 0 expects data of input 'x', got NULL");
    EXPECT_ERROR((*session)->scatterInput("x", DType::f32, {1, kHidden}, x.data()),
                 "input 'x' expects f32 [" + std::to_string(kBatch) + ", " +
                     std::to_string(kHidden) + "], got f32 [1, " + std::to_string(kHidden) + "]");
    // Only rank 0's is looked at.
    EXPECT_OK(
        (*session)->scatterInput("x", DType::f32, {number == 0 ? kBatch : 1, kHidden}, x.data()));
  });
}

/// One report and one trace of all, though each process measures by a clock of its own.
TEST(SeveralProcesses, GiveOneReportAndOneTrace) {
  ProgramBuilder builder = feedForward(2, 2);
  builder.manifest.transports.emplace_back("shared");
  const auto bundle = builder.bundle();
  const std::vector<float> x = randomValues(kBatch * kHidden, 3);
  Together all(cut({1, 2, 1}));
  TemporaryFolder folder;
  std::vector<std::string> reports(3), traces(3);
  inEach(all, [&](size_t number) {
    WorldOptions options = optionsOf(all, number, builder);
    options.trace = true;
    auto session = Session::create(bundle, options);
    ASSERT_OK(session.status());
    ASSERT_OK((*session)->loadWeights(*WeightSource::random(7)));
    ASSERT_OK((*session)->setInput("x", DType::f32, {kBatch, kHidden}, x.data()));
    // Without a run there is no trace, which rank 0 learns of the others, too.
    EXPECT_FALSE((*session)->writeTrace(folder.path("none.json")).ok());
    for (int run = 0; run < 3; ++run)
      ASSERT_OK((*session)->run());
    auto gathered = (*session)->gatherReport();
    ASSERT_OK(gathered.status());
    EXPECT_EQ(gathered->empty(), number != 0);
    if (number == 0)
      reports[0] = *gathered;
    else
      reports[number] = (*session)->report();
    traces[number] = *(*session)->trace();
    ASSERT_OK((*session)->writeTrace(folder.path("trace.json")));
  });
  EXPECT_FALSE(std::filesystem::exists(folder.path("none.json")));
  const auto report = nlohmann::json::parse(reports[0]);
  ASSERT_EQ(report["per_rank"].size(), 4U);
  ASSERT_EQ(report["processes"].size(), 3U);
  const std::vector<int64_t> processOf{0, 1, 1, 2};
  int64_t memory = 0;
  for (size_t rank = 0; rank < 4; ++rank) {
    const auto &own = report["per_rank"][rank];
    EXPECT_EQ(own["rank"], rank);
    EXPECT_EQ(own["host"], "host" + std::to_string(processOf[rank]));
    EXPECT_EQ(own["clock_offset_s"], 3600.0 * static_cast<double>(processOf[rank]));
    EXPECT_EQ(own["clock_error_s"], rank == 0 ? 0.0 : 5e-6);
    // Of one run, though the run of median time is another one in each process.
    EXPECT_LE(own["exposed_comm_s"], own["comm_run_s"]);
    EXPECT_LE(own["exposed_comm_s"], report["exposed_comm_s"]);
  }
  for (const auto &process : report["processes"]) {
    memory += process["peak_memory_bytes"].get<int64_t>();
    EXPECT_EQ(process["clock_drift_s"], 0.0);
    EXPECT_TRUE(process.contains("machine"));
  }
  EXPECT_EQ(report["processes"][1]["ranks"], nlohmann::json({1, 2}));
  EXPECT_EQ(report["peak_memory_bytes"], memory);
  EXPECT_FALSE(report.contains("host"));
  // The collectives of one rank's groups are those of all, once each.
  std::set<std::string> identities;
  for (const auto &collective : report["collectives"])
    EXPECT_TRUE(identities.insert(collective["identity"]).second);
  for (size_t number = 1; number < 3; ++number) {
    const auto own = nlohmann::json::parse(reports[number]);
    for (const auto &collective : own["collectives"])
      EXPECT_EQ(identities.count(collective["identity"]), 1U);
  }
  const auto &ofRank = report["per_rank"][report["comm_of_rank"].get<size_t>()];
  for (const char *field : {"exposed_comm_s", "hidden_comm_s", "comm_s", "comm_run_s"})
    EXPECT_EQ(report[field], ofRank[field]);

  std::ifstream file(folder.path("trace.json"));
  const auto trace = nlohmann::json::parse(file);
  ASSERT_EQ(trace["metadata"]["processes"].size(), 3U);
  EXPECT_EQ(trace["metadata"]["processes"][2]["clock_offset_s"], 7200.0);
  std::map<int64_t, size_t> events;
  std::map<int64_t, std::string> names;
  double end = 0;
  for (const auto &event : trace["traceEvents"]) {
    if (event["name"] == "process_name")
      names[event["pid"]] = event["args"]["name"];
    if (event["ph"] != "X")
      continue;
    ++events[event["pid"]];
    EXPECT_GE(event["ts"], 0.0);
    end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_EQ(names[0], "rank 0 (host0)");
  EXPECT_EQ(names[2], "rank 2 (host1)");
  EXPECT_EQ(names[3], "rank 3 (host2)");
  // Clocks that are hours apart, of which the run of the last one was moved by two. It may have
  // begun before the first one, whose begin is 0.
  EXPECT_GE(end, 7.2e9 - 1e6);
  size_t alone = 0, together = 0;
  for (const std::string &text : traces) {
    const auto own = nlohmann::json::parse(text);
    for (const auto &event : own["traceEvents"])
      alone += event["ph"] == "X" ? 1 : 0;
  }
  for (const auto &[rank, count] : events)
    together += count;
  EXPECT_EQ(together, alone);
  EXPECT_EQ(events.size(), 4U);
}

/// Ranks of different processes that should have the same result and do not.
TEST(SeveralProcesses, CompareWhatIsReplicated) {
  ProgramBuilder builder({{"tp", 3}});
  builder.operand("x", DType::f32, {6}, {{"tp"}});
  builder.result("y", DType::f32, {2}); // declared the same on all ranks, but is each rank's part
  auto main = builder.procedure("main", 2, 0, 0, 0);
  main.copy("copy", argument(0, DType::f32, {2}), argument(1, DType::f32, {2}));
  builder.manifest.transports.emplace_back("shared");
  const auto bundle = builder.bundle();
  Together all(cut({2, 1}));
  inEach(all, [&](size_t number) {
    auto session = Session::create(bundle, optionsOf(all, number, builder));
    ASSERT_OK(session.status());
    const std::vector<float> x = {1, 2, 1, 2, 1, 3};
    ASSERT_OK((*session)->setInput("x", DType::f32, {6}, x.data()));
    ASSERT_OK((*session)->run());
    auto y = (*session)->output("y");
    (void)number;
    EXPECT_ERROR(y.status(), "output 'y' expects equal values on ranks 0 and 2, which differ");
  });
}

TEST(SeveralProcesses, ExpectAMeshOfTheirSize) {
  Together all(cut({1, 1}));
  ProgramBuilder builder = feedForward(1, 4);
  builder.manifest.transports.emplace_back("shared");
  EXPECT_ERROR(Session::create(builder.bundle(), optionsOf(all, 0, builder)).status(),
               "bundle is for mesh <dp = 1, tp = 4> (4 ranks), its processes serve 2 ranks");
  WorldOptions options = optionsOf(all, 0, builder);
  options.transport = "threads";
  EXPECT_ERROR(World::create(options).status(),
               "expects transport 'shared' of its communicator, got 'threads'");
  options = optionsOf(all, 0, builder);
  options.target = "cuda";
  EXPECT_ERROR(World::create(options).status(),
               "ranks of several processes expect target 'cpu', got 'cuda'");
  options = optionsOf(all, 0, builder);
  options.machine = std::make_shared<const braid::cost::Machine>();
  EXPECT_ERROR(World::create(options).status(),
               "the machine file of a job is given to its communicator, which compares it with "
               "those of the other processes");
}
