//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "braid/Interpreter/Core/ProcessGrid.h"

#include <atomic>
#include <mutex>
#include <thread>

using namespace braid::interp;
using namespace braid::interp::testing;
using braid::runtime::AxisRef;
using braid::runtime::Mesh;
using std::chrono::milliseconds;

namespace {
Mesh mesh(std::vector<Mesh::Axis> axes, std::vector<int64_t> order = {}) {
  Mesh result;
  result.axes = std::move(axes);
  result.order = std::move(order);
  return result;
}

Collective collective(CollectiveKind kind, std::vector<AxisRef> axes, int64_t dim = 0) {
  Collective result;
  result.kind = kind;
  result.axes = std::move(axes);
  result.dim = dim;
  return result;
}

Tensor scalar(double value) { return floats({1}, {value}); }

/// Runs one collective to which rank r contributes [r]. Returns every rank's elements.
std::vector<std::vector<double>> runOnRanks(const Mesh &mesh, const Collective &op) {
  std::vector<std::vector<double>> results(static_cast<size_t>(mesh.numRanks()));
  ProcessGrid grid(mesh);
  Status status = grid.run([&](Process &process) -> Status {
    Result<std::vector<Tensor>> got =
        process.run(op, {scalar(static_cast<double>(process.rank()))});
    if (!got.ok())
      return got.status();
    const Tensor &t = got->front();
    results[static_cast<size_t>(process.rank())].assign(t.floats(), t.floats() + t.numElements());
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return results;
}
using Lists = std::vector<std::vector<double>>;
} // namespace

TEST(ProcessGrid, GroupsOfAxesAndSubAxes) {
  Mesh dpTp = mesh({{"dp", 2}, {"tp", 2}});
  EXPECT_EQ(runOnRanks(dpTp, collective(CollectiveKind::allGather, {{"tp"}})),
            (Lists{{0, 1}, {0, 1}, {2, 3}, {2, 3}}));
  EXPECT_EQ(runOnRanks(dpTp, collective(CollectiveKind::allGather, {{"dp"}})),
            (Lists{{0, 2}, {1, 3}, {0, 2}, {1, 3}}));
  EXPECT_EQ(runOnRanks(dpTp, collective(CollectiveKind::allGather, {{"tp"}, {"dp"}})),
            (Lists{{0, 2, 1, 3}, {0, 2, 1, 3}, {0, 2, 1, 3}, {0, 2, 1, 3}}));
  Mesh four = mesh({{"tp", 4}});
  EXPECT_EQ(runOnRanks(four, collective(CollectiveKind::allReduce, {{"tp", 1, 2}})),
            (Lists{{2}, {4}, {2}, {4}}));
  EXPECT_EQ(runOnRanks(four, collective(CollectiveKind::allReduce, {{"tp", 2, 2}})),
            (Lists{{1}, {1}, {5}, {5}}));
}

TEST(ProcessGrid, ExchangesOverAxesAndSubAxes) {
  // Two to six ranks, each of which contributes its own number.
  for (int64_t n = 2; n <= 6; ++n) {
    Mesh line = mesh({{"tp", n}});
    Collective ring = collective(CollectiveKind::permute, {{"tp"}});
    int64_t sum = n * (n - 1) / 2;
    Lists shifted(static_cast<size_t>(n)), rooted = shifted, same = shifted;
    for (int64_t r = 0; r < n; ++r) {
      ring.pairs.push_back({r, (r + 1) % n});
      shifted[static_cast<size_t>((r + 1) % n)] = {static_cast<double>(r)};
      rooted[static_cast<size_t>(r)] = {r == n - 1 ? static_cast<double>(sum) : 0.0};
      same[static_cast<size_t>(r)] = {static_cast<double>(n - 1)};
    }
    EXPECT_EQ(runOnRanks(line, ring), shifted);
    Collective toLast = collective(CollectiveKind::reduce, {{"tp"}});
    toLast.root = n - 1;
    EXPECT_EQ(runOnRanks(line, toLast), rooted);
    toLast.kind = CollectiveKind::broadcast;
    EXPECT_EQ(runOnRanks(line, toLast), same);
  }
  // tp = 4 as [2, 2]: the major sub-axis groups 0 with 2, the minor sub-axis 0 with 1.
  Mesh four = mesh({{"tp", 4}});
  Collective swap = collective(CollectiveKind::permute, {{"tp", 1, 2}});
  swap.pairs = {{0, 1}, {1, 0}};
  EXPECT_EQ(runOnRanks(four, swap), (Lists{{2}, {3}, {0}, {1}}));
  swap.axes = {{"tp", 2, 2}};
  EXPECT_EQ(runOnRanks(four, swap), (Lists{{1}, {0}, {3}, {2}}));
}

TEST(ProcessGrid, AllToAllGivesEveryRankItsOwnPart) {
  ProcessGrid grid(mesh({{"dp", 2}, {"tp", 3}}));
  Status status = grid.run([&](Process &process) -> Status {
    double r = static_cast<double>(process.rank());
    Collective op = collective(CollectiveKind::allToAll, {{"tp"}});
    Result<std::vector<Tensor>> got =
        process.run(op, {floats({3}, {10 * r, 10 * r + 1, 10 * r + 2})});
    if (!got.ok())
      return got.status();
    for (int64_t i = 0; i < 3; ++i) {
      int64_t sender = process.rank() / 3 * 3 + i;
      if (got->front().floats()[i] != static_cast<double>(10 * sender + process.rank() % 3))
        return Status::error("wrong value " + std::to_string(i));
    }
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ProcessGrid, MeshOrder) {
  // Coordinates (0,0) (0,1) (1,0) (1,1) are ranks 0 2 1 3: tp groups 0 with 2 and 1 with 3.
  Mesh ordered = mesh({{"dp", 2}, {"tp", 2}}, {0, 2, 1, 3});
  EXPECT_EQ(runOnRanks(ordered, collective(CollectiveKind::allGather, {{"tp"}})),
            (Lists{{0, 2}, {1, 3}, {0, 2}, {1, 3}}));
  Mesh reversed = mesh({{"tp", 2}}, {1, 0});
  EXPECT_EQ(runOnRanks(reversed, collective(CollectiveKind::allGather, {{"tp"}})),
            (Lists{{1, 0}, {1, 0}}));
}

TEST(ProcessGrid, OneRankAlone) {
  EXPECT_EQ(runOnRanks(mesh({{"tp", 1}}), collective(CollectiveKind::allReduce, {{"tp"}})),
            (Lists{{0}}));
  EXPECT_EQ(runOnRanks(mesh({{"tp", 2}}), collective(CollectiveKind::allReduce, {})),
            (Lists{{0}, {1}}));
}

TEST(ProcessGrid, StartDoesNotBlockAndWaitsMayBeInAnyOrder) {
  ProcessGrid grid(mesh({{"dp", 2}, {"tp", 2}}));
  Status status = grid.run([&](Process &process) -> Status {
    double r = static_cast<double>(process.rank());
    Collective tp = collective(CollectiveKind::allReduce, {{"tp"}});
    Collective all = collective(CollectiveKind::allReduce, {{"dp"}, {"tp"}});
    Result<PendingCollective> a = process.start(tp, {scalar(r)});
    Result<PendingCollective> b = process.start(tp, {scalar(10 * r), scalar(100 * r)});
    Result<PendingCollective> c = process.start(all, {scalar(r)});
    if (!a.ok() || !b.ok() || !c.ok())
      return Status::error("start failed");
    Result<std::vector<Tensor>> sums = process.wait(*c), second = process.wait(*b),
                                first = process.wait(*a);
    double pair = process.rank() < 2 ? 1 : 5;
    if (!sums.ok() || !second.ok() || !first.ok() || sums->at(0).floats()[0] != 6 ||
        second->at(0).floats()[0] != 10 * pair || second->at(1).floats()[0] != 100 * pair ||
        first->at(0).floats()[0] != pair)
      return Status::error("wrong values");
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ProcessGrid, ManyCollectivesKeepTheirOrder) {
  ProcessGrid grid(mesh({{"dp", 2}, {"tp", 4}}));
  Status status = grid.run([&](Process &process) -> Status {
    for (int i = 0; i < 200; ++i) {
      double value = static_cast<double>(process.rank() * 1000 + i);
      Collective op = collective(CollectiveKind::allReduce, {{i % 3 == 0 ? "dp" : "tp"}});
      op.reduce = ReduceKind::min;
      Result<std::vector<Tensor>> got = process.run(op, {scalar(value)});
      if (!got.ok())
        return got.status();
      int64_t least = i % 3 == 0 ? process.rank() % 4 : process.rank() / 4 * 4;
      if (got->front().floats()[0] != static_cast<double>(least * 1000 + i))
        return Status::error("wrong value in step " + std::to_string(i));
    }
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ProcessGrid, PartIsTheRanks) {
  ProcessGrid grid(mesh({{"dp", 2}, {"tp", 2}}));
  std::vector<double> got(4);
  Status status = grid.run([&](Process &process) -> Status {
    Result<Tensor> part = process.part(floats({4}, {0, 1, 2, 3}), 0, {{"tp"}, {"dp"}});
    if (!part.ok())
      return part.status();
    got[static_cast<size_t>(process.rank())] = part->floats()[0];
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(got, (std::vector<double>{0, 2, 1, 3}));
}

TEST(ProcessGrid, PartsWithShiftsAssemble) {
  ProcessGrid grid(mesh({{"dp", 2}, {"tp", 3}}));
  Status status = grid.run([&](Process &process) -> Status {
    const Tensor x = floats({3}, {0, 1, 2});
    std::vector<Tensor> parts;
    const std::vector<int64_t> shifts{1, -3, 5};
    for (int64_t shift : shifts) {
      Result<Tensor> part = process.part(x, 0, {{"tp"}}, shift);
      if (!part.ok())
        return part.status();
      const int64_t expected = (process.rank() % 3 + shift + 3) % 3;
      if (part->floats()[0] != static_cast<double>(expected))
        return Status::error("wrong part of shift " + std::to_string(shift));
      parts.push_back(*part);
    }
    Result<Tensor> all = process.assemble(parts, shifts, 0, {{"tp"}});
    if (!all.ok())
      return all.status();
    return firstDifference(*all, x) == -1 ? Status() : Status::error("wrong value");
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ProcessGrid, DisagreementNamesBothRanks) {
  struct Case {
    Collective one;
    Tensor oneInput;
    const char *text;
  };
  Collective sum = collective(CollectiveKind::allReduce, {{"tp"}}), max = sum;
  max.reduce = ReduceKind::max;
  std::vector<Case> cases = {{max, scalar(1), "all_reduce max over {tp} of (f32[1])"},
                             {collective(CollectiveKind::allGather, {{"tp"}}), scalar(1),
                              "all_gather dim 0 over {tp} of (f32[1])"},
                             {sum, floats({2}, {1, 2}), "all_reduce sum over {tp} of (f32[2])"},
                             {sum, ints({1}, {1}), "all_reduce sum over {tp} of (i64[1])"}};
  for (const Case &c : cases) {
    ProcessGrid grid(mesh({{"tp", 2}}));
    Status status = grid.run([&](Process &process) {
      return process.rank() == 0 ? process.run(sum, {scalar(1)}).status()
                                 : process.run(c.one, {c.oneInput}).status();
    });
    EXPECT_EQ(status.code(), braid::runtime::Code::rankFailed);
    for (const char *part :
         {"ranks disagree about collective number 0 of ranks 0 and 1", "rank 0 br", "rank 1 br",
          "all_reduce sum over {tp} of (f32[1])", c.text})
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

TEST(ProcessGrid, AStalledRankIsNamedWithinTheLimit) {
  GridOptions options;
  options.timeLimit = milliseconds(150);
  ProcessGrid grid(mesh({{"tp", 2}}), options);
  auto begin = std::chrono::steady_clock::now();
  std::atomic<bool> release{false};
  Status status = grid.run([&](Process &process) -> Status {
    Collective op = collective(CollectiveKind::allReduce, {{"tp"}});
    op.name = "mlp.down";
    if (process.rank() == 1) {
      // Stalls until the other rank has given up.
      while (!release)
        std::this_thread::sleep_for(milliseconds(1));
      return process.progress();
    }
    Status failed = process.run(op, {scalar(1)}).status();
    release = true;
    return failed;
  });
  expectError(
      status,
      "rank 0: all_reduce sum over {tp} ('mlp.down') waited 150 ms without progress of any rank: "
      "rank 1 has not arrived");
  EXPECT_EQ(status.code(), braid::runtime::Code::rankFailed);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(30000));
}

TEST(ProcessGrid, ASlowRankThatMakesProgressIsWaitedFor) {
  // On a busy machine a short sleep may take longer than a short limit.
  Status status = Status::error("not run");
  for (int limit = 200; !status.ok() && limit < 20000; limit *= 4) {
    GridOptions options;
    options.timeLimit = milliseconds(limit);
    ProcessGrid grid(mesh({{"tp", 2}}), options);
    status = grid.run([&](Process &process) -> Status {
      if (process.rank() == 1)
        for (int i = 0; i < 30; ++i) { // three times the limit in total
          std::this_thread::sleep_for(milliseconds(limit / 10));
          if (Status s = process.progress(); !s.ok())
            return s;
        }
      return process.run(collective(CollectiveKind::allReduce, {{"tp"}}), {scalar(1)}).status();
    });
  }
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ProcessGrid, RanksThatWaitForEachOtherAreFoundAtOnce) {
  ProcessGrid grid(mesh({{"a", 2}, {"b", 2}}));
  auto begin = std::chrono::steady_clock::now();
  Status status = grid.run([&](Process &process) -> Status {
    // Ranks 0 and 3 reduce over a first, the others over b: a deadlock cycle of four.
    bool aFirst = process.rank() == 0 || process.rank() == 3;
    for (const char *axis : {aFirst ? "a" : "b", aFirst ? "b" : "a"})
      if (Status s =
              process.run(collective(CollectiveKind::allReduce, {{axis}}), {scalar(1)}).status();
          !s.ok())
        return s;
    return {};
  });
  EXPECT_NE(status.message().find(
                "ranks wait for each other: rank 0 waits in all_reduce sum over {a} for rank 2; "
                "rank 1 waits in all_reduce sum over {b} for rank 0; "
                "rank 2 waits in all_reduce sum over {b} for rank 3; "
                "rank 3 waits in all_reduce sum over {a} for rank 1"),
            std::string::npos)
      << status.message();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(30000));
}

TEST(ProcessGrid, ARankThatEndsEarlyIsNamed) {
  ProcessGrid grid(mesh({{"tp", 2}}));
  Status status = grid.run([&](Process &process) -> Status {
    if (process.rank() == 1)
      return {};
    return process.run(collective(CollectiveKind::allReduce, {{"tp"}}), {scalar(1)}).status();
  });
  EXPECT_NE(status.message().find(
                "rank 0 waits in all_reduce sum over {tp} for rank 1; rank 1 has ended"),
            std::string::npos)
      << status.message();
}

TEST(ProcessGrid, AFailingRankStopsTheOthersAndIsReportedFirst) {
  ProcessGrid grid(mesh({{"tp", 4}}));
  std::mutex mutex;
  std::vector<std::string> others;
  Status status = grid.run([&](Process &process) -> Status {
    if (process.rank() == 2)
      return Status::error("out of tea");
    Status stopped =
        process.run(collective(CollectiveKind::allReduce, {{"tp"}}), {scalar(1)}).status();
    std::lock_guard<std::mutex> lock(mutex);
    others.push_back(stopped.message());
    return stopped;
  });
  expectError(status, "rank 2: out of tea");
  EXPECT_EQ(others, std::vector<std::string>(3, "stopped because another rank failed"));
}

TEST(ProcessGrid, AFlightIsWaitedForExactlyOnce) {
  Collective op = collective(CollectiveKind::allReduce, {{"tp"}});
  ProcessGrid twice(mesh({{"tp", 1}}));
  expectError(twice.run([&](Process &process) -> Status {
    Result<PendingCollective> pending = process.start(op, {scalar(1)});
    if (Status s = process.wait(*pending).status(); !s.ok())
      return s;
    return process.wait(*pending).status();
  }),
              "rank 0: waits twice for all_reduce sum over {tp}");
  ProcessGrid never(mesh({{"tp", 1}}));
  expectError(never.run([&](Process &process) { return process.start(op, {scalar(1)}).status(); }),
              "rank 0: ended without waiting for all_reduce sum over {tp}");
}

TEST(ProcessGrid, UnknownAxis) {
  ProcessGrid grid(mesh({{"tp", 1}}));
  expectError(grid.run([&](Process &process) {
    return process.run(collective(CollectiveKind::allReduce, {{"pp"}}), {scalar(1)}).status();
  }),
              "rank 0: unknown axis 'pp' in mesh 'mesh'");
}

TEST(ProcessGrid, AGridRunsAgainAfterAnError) {
  ProcessGrid grid(mesh({{"tp", 2}}));
  Status failed = grid.run(
      [](Process &process) { return process.rank() == 0 ? Status::error("once") : Status(); });
  EXPECT_FALSE(failed.ok());
  EXPECT_TRUE(grid.run([](Process &process) {
                    return process.run(collective(CollectiveKind::allReduce, {{"tp"}}), {scalar(1)})
                        .status();
                  })
                  .ok());
}
