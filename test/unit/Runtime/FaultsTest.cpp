//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks that stall, fail or get invalid inputs: the run ends on all of them, with one message.
//
//===----------------------------------------------------------------------===//
#include "LimitTesting.h"
#include "Paths.h"
#include "ProgramBuilder.h"
#include "braid/Runtime/Files.h"

#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <gmock/gmock.h>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

namespace {

constexpr DType f32 = DType::f32, i64 = DType::i64;

/// A table lookup, then all_reduce over tp, twice; every rank has its own ids.
ProgramBuilder lookup(int64_t dp, int64_t tp) {
  ProgramBuilder b({{"dp", dp}, {"tp", tp}});
  int64_t ranks = dp * tp;
  b.parameter("table", {10, 16});
  b.operand("ids", i64, {ranks, 4}, {{"dp", "tp"}, {}});
  b.result("y", f32, {ranks, 4, 16}, {{"dp", "tp"}, {}, {}});
  auto p = b.procedure("main", 3, 0, 512, 4);
  V in = symmetric(0, f32, {1, 4, 16}), out = symmetric(256, f32, {1, 4, 16}),
    y = argument(2, f32, {1, 4, 16});
  for (uint32_t i = 0; i < 2; ++i) {
    std::string suffix = "." + std::to_string(i);
    EmbeddingLaunch gather;
    gather.table = argument(0, f32, {10, 16}).build();
    gather.ids = argument(1, i64, {1, 4}).build();
    gather.out = in.build();
    p.compute("embeddings" + suffix, std::move(gather));
    p.start("sum" + suffix, fb::CollectiveKind::all_reduce, {"tp"}, {in}, {out}, 0, 2 * i,
            2 * i + 1);
    p.wait("sum" + suffix, 2 * i + 1);
    p.copy("result" + suffix, out, y);
  }
  return b;
}

Status setIds(Session &session, int64_t ranks, int64_t badAt = -1, int64_t bad = 0) {
  std::vector<int64_t> ids(static_cast<size_t>(ranks * 4), 3);
  if (badAt >= 0)
    ids[static_cast<size_t>(badAt)] = bad;
  return session.setInput("ids", i64, {ranks, 4}, ids.data());
}

TEST(Faults, AnIdOutsideOfTheTableStopsAllRanks) {
  for (int64_t bad : {int64_t(10), int64_t(-1), INT64_MIN}) {
    ProgramBuilder b = lookup(2, 2);
    WorldOptions options;
    options.timeLimitSeconds = 120;
    auto session = b.session(options);
    ASSERT_OK(session);
    ASSERT_OK((*session)->loadWeights(*WeightSource::random(1)));
    ASSERT_OK(setIds(**session, 4, 2 * 4 + 1, bad)); // rank 2, position 1
    auto begin = std::chrono::steady_clock::now();
    Status status = (*session)->run();
    EXPECT_EQ(status.code(), Code::invalid); // the ids are the caller's input
    EXPECT_EQ(status.message(), "rank 2: embedding 'embeddings.0' in @main: id " +
                                    std::to_string(bad) + " at position 1 is outside of [0, 10)");
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 60)
        << "the others waited for the limit";
    EXPECT_ERROR((*session)->output("y"), "output 'y' expects a run that has succeeded");
    // The session is still usable.
    ASSERT_OK(setIds(**session, 4));
    EXPECT_OK((*session)->run());
    EXPECT_OK((*session)->output("y"));
  }
}

TEST(Faults, AStalledRankEndsTheRunWithinTheLimit) {
  struct Case {
    int64_t dp, tp, stalled;
    const char *command, *expected;
  };
  const Case cases[] = {
      {1, 2, 1, "embeddings.1",
       "rank 0: all_reduce 'sum\\.1' in @main on the communication queue waited [0-9.]+ s for rank "
       "1, which has not "
       "arrived \\(rank 1 is at embedding 'embeddings\\.1' in @main on its compute queue\\)"},
      {1, 2, 0, "",
       "rank 1: all_reduce 'sum\\.0' in @main on the communication queue waited [0-9.]+ s for rank "
       "0, which has not "
       "arrived \\(rank 0 is at embedding 'embeddings\\.0' in @main on its compute queue\\)"},
      {2, 2, 3, "result.0",
       "rank 2: all_reduce 'sum\\.1' in @main on the communication queue waited [0-9.]+ s for rank "
       "3, which has not "
       "arrived \\(rank 3 is at copy 'result\\.0' in @main on its compute queue\\)"},
      // No other rank waits for it, only the caller.
      {1, 1, 0, "result.1",
       "rank 0: copy 'result\\.1' in @main on the compute queue has made no progress in [0-9.]+ s"},
  };
  for (const Case &c : cases) {
    ProgramBuilder b = lookup(c.dp, c.tp);
    expectRunsFail(MatchesRegex(c.expected), 2, [&](double limit) { // the session stays usable
      WorldOptions options;
      options.timeLimitSeconds = limit;
      options.stall = StallInjection{c.stalled, c.command};
      auto session = b.session(options);
      if (session.ok()) {
        EXPECT_OK((*session)->loadWeights(*WeightSource::random(1)));
        EXPECT_OK(setIds(**session, c.dp * c.tp));
      }
      return session;
    });
  }
}

/// A kernel that computes is making progress, however long it takes, on the queue's thread or on
/// its team's; a kernel that sleeps is not.
TEST(Faults, ALongKernelIsNoStall) {
  constexpr int64_t kRows = 64, kColumns = 1024; // enough work for a team
  static std::atomic<bool> sleeps;
  static std::atomic<int> parts, late; // of this process
  ProgramBuilder b({{"tp", 2}});
  b.operand("x", f32, {2 * kRows, kColumns}, {{"tp"}, {}});
  b.result("y", f32, {2 * kRows, kColumns}, {{"tp"}, {}});
  uint32_t kernel = b.kernel("long", 2, [](void *const *) {
    const auto clock = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    if (parts++ != late) // the other threads wait for the last one
      return;
    if (sleeps)
      std::this_thread::sleep_for(std::chrono::milliseconds(900));
    for (const double end = clock() + 1; !sleeps && clock() < end;) {
    }
  });
  auto p = b.procedure("main", 2, 0, 64, 2);
  p.launch("work", kernel,
           {argument(0, f32, {kRows, kColumns}), argument(1, f32, {kRows, kColumns})}, {true, true},
           kRows);
  const V sum = symmetric(0, f32, {1, 16});
  p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {sum}, {sum}, 0, 0, 1);
  p.wait("sum", 1);
  p.copy("result", sum, argument(1, f32, {1, 16}));
  for (const char *transport : {"threads", "shm"})
    for (int64_t threads : {1, 2}) {
      if (transport == std::string("shm") && threads == 2)
        continue;
      auto run = [&](double limit) {
        WorldOptions options;
        options.transport = transport;
        options.threadsPerRank = threads;
        options.timeLimitSeconds = limit;
        auto session = b.session(options);
        if (!session.ok())
          return session.status();
        const std::vector<float> x(2 * kRows * kColumns);
        if (Status s = (*session)->setInput("x", f32, {2 * kRows, kColumns}, x.data()); !s.ok())
          return s;
        parts = 0;
        late = options.transport == "shm" && threads == 1 ? 0 : 1;
        return (*session)->run();
      };
      SCOPED_TRACE(transport + (" x " + std::to_string(threads)));
      sleeps = false;
      EXPECT_OK(run(0.4));
      sleeps = true;
      Status stalled = run(0.4);
      EXPECT_EQ(stalled.code(), Code::rankFailed);
      EXPECT_THAT(stalled.message(), HasSubstr("work' in @main"));
    }
}

TEST(Faults, StallsThatCannotHappenAreRefused) {
  ProgramBuilder b = lookup(1, 2);
  WorldOptions options;
  options.stall = StallInjection{2, ""};
  EXPECT_ERROR(b.session(options), "expects a rank of 0 to 1 to stall, got 2");
  options.stall = StallInjection{1, "nothing"};
  EXPECT_ERROR(b.session(options), "the program has no command named 'nothing' to stall at");
  options.stall = StallInjection{1, ""};
  options.timeLimitSeconds = 0;
  EXPECT_ERROR(b.session(options), "a stalled rank expects a time limit above 0 seconds");
}

TEST(Faults, WrongRequestsAreNamed) {
  ProgramBuilder b = lookup(2, 2);
  WorldOptions options;
  options.ranks = 2;
  EXPECT_ERROR(b.session(options), "bundle is for mesh <dp = 2, tp = 2> (4 ranks), got 2 ranks");
  options.ranks = 4;
  options.transport = "mpi";
  EXPECT_ERROR(b.session(options), "expects transport 'threads', 'shm' or 'ucx', got 'mpi'");
  options.transport = "threads";
  options.threadsPerRank = 0;
  EXPECT_ERROR(b.session(options), "expects 1 to 1024 threads per rank, got 0");
  options.threadsPerRank = 1;
  auto session = b.session(options);
  ASSERT_OK(session);
  Session &s = **session;
  EXPECT_ERROR(s.model().execution("train"), "the bundle has no entry 'train', it has 'main'");
  EXPECT_ERROR(s.run(), "weights are missing: 1 parameters ('table' f32 [10, 16]); inputs are "
                        "missing: 'ids' i64 [4, 4]");
  std::vector<int32_t> narrow(16);
  EXPECT_ERROR(s.setInput("ids", DType::i32, {4, 4}, narrow.data()),
               "input 'ids' expects i64 [4, 4], got i32 [4, 4]");
  EXPECT_ERROR(s.setInput("ids", i64, {4, 5}, narrow.data()),
               "input 'ids' expects i64 [4, 4], got i64 [4, 5]");
  EXPECT_ERROR(s.setInput("id", i64, {4, 4}, narrow.data()),
               "no input 'id', the entry has 'ids' i64 [4, 4]");
  EXPECT_ERROR(s.output("z"), "no output 'z', the entry has 'y' f32 [4, 4, 16]");
  EXPECT_ERROR(s.output("y"), "output 'y' expects a run that has succeeded");
  EXPECT_ERROR(s.writeTrace("/tmp/never"),
               "a trace expects a world that was created with tracing on");
}

TEST(Faults, AKernelThatTheTableLacks) {
  ProgramBuilder b = lookup(1, 1);
  b.kernel("fused_0", 1, nullptr);
  b.kernels.clear();
  EXPECT_ERROR(b.session(), "the table of kernels lacks 'fused_0'");
}

/// Rounding these sizes up overflows to 0.
TEST(Faults, FramesThatNoMemoryHolds) {
  for (const char *transport : {"threads", "shm"})
    for (const uint64_t bytes : {UINT64_MAX, UINT64_MAX - 62, UINT64_MAX - 4094}) {
      WorldOptions options;
      options.transport = transport;
      ProgramBuilder b = lookup(1, 2);
      b.program.procedures[0]->local_bytes = bytes;
      EXPECT_THAT(b.session(options).status().message(),
                  MatchesRegex("local memory of rank 0: cannot allocate " + std::to_string(bytes) +
                               " bytes, the system has [0-9]+ available: Cannot allocate memory"));
      b = lookup(1, 2);
      b.program.procedures[0]->symmetric_bytes = bytes;
      EXPECT_ERROR(b.session(options), "symmetric memory of " + std::to_string(bytes) +
                                           " bytes for each of 2 ranks: more than addresses reach");
    }
}

TEST(Faults, KernelsForAnotherMachine) {
  ProgramBuilder b = lookup(1, 1);
  b.kernel("fused_0", 1, nullptr);
  b.manifest.kernels.push_back(
      {"cpu", "x86_64-unknown-linux-gnu", "future", {"avx2", "avx4096"}, "kernels/a.so"});
  b.manifest.kernels.push_back({"cpu", "riscv64-unknown-linux-gnu", "rv64", {}, "kernels/b.so"});
  Result<std::unique_ptr<Session>> session = Session::create(b.bundle(), {});
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(session.status().message(), HasSubstr("the bundle has no kernels for this host ("));
  EXPECT_THAT(session.status().message(), HasSubstr("cpu x86_64-unknown-linux-gnu future needs "));
  EXPECT_THAT(session.status().message(), HasSubstr("avx4096"));
  EXPECT_THAT(session.status().message(),
              HasSubstr("cpu riscv64-unknown-linux-gnu rv64 is not for "));
}

/// The number of different kernel libraries that this process has loaded.
size_t loadedLibraries() {
  std::set<std::string> inodes;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("braid-kernels") != std::string::npos) {
      std::istringstream words(line);
      std::string range, access, offset, device, inode;
      words >> range >> access >> offset >> device >> inode;
      inodes.insert(inode);
    }
  return inodes.size();
}

/// Two sessions whose bundles have different code under one name: each must load its own. Sessions
/// with the same code share it.
TEST(KernelLibraries, LoadFromTheBundle) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (const char *path : {kAddingKernelsPath, kSubtractingKernelsPath}) {
    ProgramBuilder b({{"dp", 2}});
    b.operand("x", f32, {4, 8}, {{"dp"}, {}});
    b.result("y", f32, {4, 8}, {{"dp"}, {}});
    uint32_t kernel = b.kernel("shift_by_one", 2, nullptr);
    auto p = b.procedure("main", 2, 0, 0, 0);
    p.launch("shift", kernel, {argument(0, f32, {2, 8}), argument(1, f32, {2, 8})}, {true, true},
             2);
    // The better one of two is chosen; no machine supports the third.
    b.manifest.kernels.push_back(
        {"cpu", "x86_64-unknown-linux-gnu", "plain", {"sse2"}, "kernels/plain.so"});
    b.manifest.kernels.push_back(
        {"cpu", "x86_64-unknown-linux-gnu", "better", {"sse", "sse2"}, "kernels/better.so"});
    b.manifest.kernels.push_back({"cpu",
                                  "x86_64-unknown-linux-gnu",
                                  "never",
                                  {"sse", "sse2", "avx4096"},
                                  "kernels/never.so"});
    BundleContents contents = b.contents();
    Result<Bytes> library = readFile(path);
    ASSERT_OK(library);
    contents.members["kernels/plain.so"] = contents.members["kernels/never.so"] = Bytes(8);
    contents.members["kernels/better.so"] = *library;
    auto session = Session::create(bundleOf(contents), {});
    ASSERT_OK(session);
    EXPECT_THAT((*session)->report(), HasSubstr("\"kernel_isa\": \"better\""));
    sessions.push_back(std::move(*session));
    EXPECT_EQ(loadedLibraries(), sessions.size());
    auto another = Session::create(bundleOf(contents), {});
    ASSERT_OK(another);
    EXPECT_EQ(loadedLibraries(), sessions.size());
    // The symbol is not in the kernel library, but in a library that it links.
    b.program.kernels[0]->symbol = "memcpy";
    BundleContents other = b.contents();
    other.members["kernels/better.so"] = *library;
    EXPECT_ERROR(Session::create(bundleOf(other), {}),
                 "the bundle's member 'kernels/better.so' lacks kernel 'memcpy'");
    contents.members["kernels/better.so"] = Bytes(64);
    auto damaged = Session::create(bundleOf(contents), {});
    ASSERT_FALSE(damaged.ok());
    EXPECT_THAT(damaged.status().message(),
                ::testing::StartsWith("cannot load the bundle's member 'kernels/better.so': "));
  }
  std::vector<float> x(32, 5);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_OK(sessions[i]->setInput("x", f32, {4, 8}, x.data()));
    ASSERT_OK(sessions[i]->run());
    Result<HostTensor> y = sessions[i]->output("y");
    ASSERT_OK(y);
    for (int j = 0; j < 32; ++j)
      EXPECT_EQ(y->as<float>()[j], i == 0 ? 6.0f : 4.0f);
  }
  sessions.clear();
  EXPECT_EQ(loadedLibraries(), 0U);
}

/// An exception from a kernel is the failure of its rank, also on a thread of the team.
TEST(Faults, AnExceptionInATeamIsAFailedRank) {
  constexpr int64_t kRows = 64, kColumns = 1024; // enough work for a team
  ProgramBuilder b({{"dp", 1}});
  b.operand("x", f32, {kRows, kColumns});
  b.result("y", f32, {kRows, kColumns});
  uint32_t kernel = b.kernel("throws", 2, [](void *const *descriptors) {
    auto *words = static_cast<int64_t *>(descriptors[0]); // allocated, aligned, offset, sizes
    if (words[0] % 4096 != 0 || words[3] < kRows)
      throw std::runtime_error("the kernel gave up");
  });
  auto p = b.procedure("main", 2, 0, 0, 0);
  p.launch("bad", kernel,
           {argument(0, f32, {kRows, kColumns}), argument(1, f32, {kRows, kColumns})}, {true, true},
           kRows);
  WorldOptions options;
  options.threadsPerRank = 2;
  auto session = b.session(options);
  ASSERT_OK(session);
  std::vector<float> x(kRows * kColumns);
  ASSERT_OK((*session)->setInput("x", f32, {kRows, kColumns}, x.data()));
  for (int i = 0; i < 2; ++i)
    EXPECT_ERROR((*session)->run(), "rank 0: kernel 'bad' in @main: the kernel gave up");
}

} // namespace
