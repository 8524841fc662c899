//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sessions whose ranks are processes: the same results, report and trace as with threads, and their
// behaviour when a rank or the launcher is killed.
//
//===----------------------------------------------------------------------===//
#include "Leftovers.h"
#include "LimitTesting.h"
#include "Paths.h"
#include "ProgramBuilder.h"
#include "StatePrograms.h"
#include "braid/Runtime/Safetensors.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

namespace {

constexpr DType f32 = DType::f32;

/// y = x, then `layers` times y = all_reduce(step(y) * w): every rank has its own rows and weights.
ProgramBuilder chain(int64_t ranks, int64_t layers, KernelFunction step) {
  ProgramBuilder b({{"tp", ranks}});
  b.parameter("w", {8 * ranks, 8}, {{"tp"}, {}});
  b.operand("x", f32, {ranks * 4, 8}, {{"tp"}, {}});
  b.result("y", f32, {ranks * 4, 8}, {{"tp"}, {}});
  uint32_t kernel = b.kernel("step", 2, step);
  auto p = b.procedure("main", 3, 128, 256, static_cast<uint32_t>(2 * layers));
  V in = symmetric(0, f32, {4, 8}), out = symmetric(128, f32, {4, 8}), x = argument(1, f32, {4, 8}),
    y = argument(2, f32, {4, 8}), stepped = local(0, f32, {4, 8});
  p.copy("begin", x, y);
  for (int64_t i = 0; i < layers; ++i) {
    std::string suffix = "." + std::to_string(i);
    uint32_t event = static_cast<uint32_t>(2 * i);
    p.launch("step" + suffix, kernel, {y, stepped}, {true, true}, 4);
    p.matmul("linear" + suffix, stepped, argument(0, f32, {8, 8}), nullptr, in);
    p.start("sum" + suffix, fb::CollectiveKind::all_reduce, {"tp"}, {in}, {out}, 0, event,
            event + 1);
    p.wait("sum" + suffix, event + 1);
    p.copy("result" + suffix, out, y);
  }
  return b;
}

/// `descriptor` is a memref descriptor: allocated, aligned, offset, sizes, strides.
float *data(void *descriptor) {
  auto *words = static_cast<int64_t *>(descriptor);
  return reinterpret_cast<float *>(words[1]) + words[2];
}
void shrink(void *const *descriptors) {
  for (int i = 0; i < 32; ++i)
    data(descriptors[1])[i] = data(descriptors[0])[i] * 0.5f + 0.01f;
}
void sleepy(void *const *descriptors) {
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  shrink(descriptors);
}
/// The rank whose first value is 7 dies.
void deadly(void *const *descriptors) {
  if (data(descriptors[0])[0] == 7)
    raise(SIGKILL);
  shrink(descriptors);
}

WorldOptions shm() {
  WorldOptions options;
  options.transport = "shm";
  return options;
}

Status setX(Session &session, int64_t ranks, int64_t marked = -1) {
  std::vector<float> x(static_cast<size_t>(ranks * 32));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = 0.001f * static_cast<float>(i);
  if (marked >= 0)
    x[static_cast<size_t>(marked * 32)] = 7;
  return session.setInput("x", f32, {ranks * 4, 8}, x.data());
}

class ShmSession : public ::testing::Test {
protected:
  void TearDown() override {
    EXPECT_TRUE(children().empty());
    EXPECT_TRUE(segments().empty());
  }
};

TEST_F(ShmSession, ResultsReportAndTraceAreThoseOfThreads) {
  TemporaryFolder folder;
  for (int64_t ranks : {1, 2, 3, 5}) {
    std::string y[2];
    nlohmann::json reports[2], traces[2];
    for (int i : {0, 1}) {
      ProgramBuilder b = chain(ranks, 3, shrink);
      WorldOptions options = i ? shm() : WorldOptions();
      options.trace = true;
      options.threadsPerRank = 2;
      auto session = b.session(options);
      ASSERT_OK(session);
      size_t told = 0;
      ASSERT_OK((*session)->loadWeights(*WeightSource::random(5),
                                        [&](size_t done, size_t) { told = done; }));
      EXPECT_EQ(told, static_cast<size_t>(ranks));
      ASSERT_OK(setX(**session, ranks));
      for (int run = 0; run < 3; ++run)
        ASSERT_OK((*session)->run());
      auto output = (*session)->output("y");
      ASSERT_OK(output);
      y[i].assign(reinterpret_cast<const char *>(output->data.data()), output->data.size());
      reports[i] = nlohmann::json::parse((*session)->report());
      ASSERT_OK((*session)->writeTrace(folder.path("trace.json")));
      traces[i] = nlohmann::json::parse(get(folder.path("trace.json")));
    }
    EXPECT_EQ(y[0], y[1]);
    EXPECT_NE(y[0], std::string(y[0].size(), '\0'));
    EXPECT_EQ(reports[1]["transport"], "shm");
    EXPECT_GT(reports[1]["comm_s"].get<double>(), 0);
    EXPECT_EQ(reports[0]["bytes_sent_per_rank"], reports[1]["bytes_sent_per_rank"]);
    std::set<std::string> fields[2], spans[2];
    for (int i : {0, 1}) {
      for (const auto &field : reports[i].items())
        fields[i].insert(field.key());
      for (const auto &event : traces[i]["traceEvents"])
        spans[i].insert(event["name"].get<std::string>() + " of " + event["pid"].dump() + " on " +
                        event["tid"].dump());
    }
    EXPECT_EQ(fields[0], fields[1]);
    EXPECT_EQ(spans[0], spans[1]);
  }
}

TEST_F(ShmSession, ARankThatDiesIsNamedAtOnceWithItsSignalAndPlace) {
  for (int64_t victim : {0, 1, 2}) {
    // On a busy machine the others may be late, and then the message names no rank that waits.
    bool tellsWhoWaits = false;
    for (int round = 0; round < 20 && !tellsWhoWaits; ++round) {
      ProgramBuilder b = chain(3, 2, deadly);
      WorldOptions options = shm();
      options.timeLimitSeconds = 60;
      auto session = b.session(options);
      ASSERT_OK(session);
      ASSERT_OK((*session)->loadWeights(*WeightSource::random(5)));
      ASSERT_OK(setX(**session, 3, victim));
      auto begin = std::chrono::steady_clock::now();
      Status status = (*session)->run();
      EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 20)
          << "waited for the limit";
      EXPECT_EQ(status.code(), Code::rankFailed);
      const std::string end = "rank " + std::to_string(victim) +
                              " was ended by signal 9 \\(Killed\\) while it was at kernel "
                              "'step\\.0' in @main on its compute queue";
      tellsWhoWaits = ::testing::Matches(MatchesRegex(
          end + ", rank [0-2] waits for it at all_reduce 'sum\\.0' in @main"))(status.message());
      if (!tellsWhoWaits)
        EXPECT_THAT(status.message(), MatchesRegex(end));
      EXPECT_TRUE(children().empty()) << "the others end with it";
      EXPECT_ERROR((*session)->run(), "the model cannot run again: a rank did not return from "
                                      "an earlier run");
      EXPECT_ERROR((*session)->output("y"), "output 'y' expects a run that has succeeded");
    }
    EXPECT_TRUE(tellsWhoWaits);
  }
}

TEST_F(ShmSession, ARankKilledOrStoppedAtAnyMoment) {
  const char *given = std::getenv("BRAID_TEST_SEED");
  const uint32_t seed =
      given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device()();
  SCOPED_TRACE("BRAID_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 16; ++round) {
    const int signal = round % 4 == 0 ? SIGSTOP : SIGKILL;
    ProgramBuilder b = chain(4, 20, sleepy);
    WorldOptions options = shm();
    options.timeLimitSeconds = signal == SIGSTOP ? 0.5 : 60;
    auto session = b.session(options);
    ASSERT_OK(session);
    ASSERT_OK((*session)->loadWeights(*WeightSource::random(5)));
    ASSERT_OK(setX(**session, 4));
    std::vector<pid_t> pids = children();
    ASSERT_EQ(pids.size(), 4u);
    const pid_t victim = pids[random() % 4];
    const auto delay = std::chrono::microseconds(random() % 30000);
    std::thread killer([&] {
      std::this_thread::sleep_for(delay);
      kill(victim, signal);
    });
    // Repeats until the rank is lost: on a busy machine a short limit may also expire without the
    // signal.
    Status status, next;
    auto begin = std::chrono::steady_clock::now();
    auto lost = [&] { return next.message().rfind("the model cannot run again", 0) == 0; };
    for (; !lost() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(60);
         next = (*session)->run())
      if (!next.ok())
        status = next;
    killer.join();
    EXPECT_TRUE(lost());
    EXPECT_EQ(status.code(), Code::rankFailed);
    if (signal == SIGKILL)
      EXPECT_THAT(status.message(),
                  MatchesRegex("rank [0-3] was ended by signal 9 \\(Killed\\) while it was .*"));
    else
      EXPECT_THAT(status.message(),
                  MatchesRegex(".*(has not arrived|no progress|waited|neither begun nor ended).*"));
    EXPECT_TRUE(children().empty());
  }
}

/// The session survives a stall that was injected, since the process continues.
TEST_F(ShmSession, AStalledRankEndsTheRunAndTheSessionSurvives) {
  ProgramBuilder b = chain(2, 2, shrink);
  expectRunsFail(MatchesRegex("rank 0: all_reduce 'sum\\.1' in @main on the communication queue "
                              "waited [0-9.]+ s for rank 1, which has not arrived \\(rank 1 is at "
                              "matmul 'linear\\.1' in @main on its compute queue\\)"),
                 2, [&](double limit) {
                   WorldOptions options = shm();
                   options.timeLimitSeconds = limit;
                   options.stall = StallInjection{1, "linear.1"};
                   auto session = b.session(options);
                   if (session.ok()) {
                     EXPECT_OK((*session)->loadWeights(*WeightSource::random(5)));
                     EXPECT_OK(setX(**session, 2));
                   }
                   return session;
                 });
}

/// Random weights; reading rank 1's raises the signal.
class HaltingWeights : public WeightSource {
public:
  HaltingWeights(int signal) : signal(signal) {}
  std::string describe() const override { return "halting weights"; }
  std::vector<TensorInfo> tensors() const override { return {}; }
  Status read(const Parameter &parameter, const Box &box, void *dest) override {
    if (box.offsets[0] == 8) // of rank 1
      raise(signal);
    return source->read(parameter, box, dest);
  }

private:
  int signal;
  std::unique_ptr<WeightSource> source = WeightSource::random(5);
};

TEST_F(ShmSession, ARankThatIsLostWhileItLoadsIsNamed) {
  ProgramBuilder b = chain(3, 1, shrink);
  auto load = [&](int signal, double limit) {
    WorldOptions options = shm();
    options.timeLimitSeconds = limit;
    auto session = b.session(options);
    if (!session.ok())
      return session.status();
    HaltingWeights weights(signal);
    Status status = (*session)->loadWeights(weights);
    EXPECT_TRUE(children().empty());
    return status;
  };
  expectRankFailed(MatchesRegex("rank 1 has done nothing for [0-9.]+ s while it prepared its first "
                                "run, after 0 parameters"),
                   [&](double limit) { return load(SIGSTOP, limit); });
  Status status = load(SIGKILL, 60);
  EXPECT_EQ(status.code(), Code::rankFailed);
  EXPECT_EQ(status.message(), "rank 1 was ended by signal 9 (Killed) before its first run");
}

/// Open files of a process, except the directory that is listed.
std::set<std::string> openFiles(pid_t pid) {
  std::set<std::string> files;
  std::error_code ignored;
  for (const auto &file :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd"))
    files.insert(file.path().filename().string() + " " +
                 std::filesystem::read_symlink(file.path(), ignored).string());
  return files;
}

/// Sockets and files that the program had open are closed in the ranks.
TEST_F(ShmSession, RanksKeepNoDescriptorsOfTheProgram) {
  std::vector<int> opened;
  for (int i = 0; i < 20; ++i) { // before and after the session opens its own
    opened.push_back(socket(AF_INET, SOCK_STREAM, 0));
    opened.push_back(open("/proc/self/exe", O_RDONLY));
  }
  close(opened[3]); // a free descriptor for the session's own
  ProgramBuilder b = chain(3, 1, shrink);
  auto session = b.session(shm());
  ASSERT_OK(session);
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(5)));
  ASSERT_OK(setX(**session, 3));
  ASSERT_OK((*session)->run());
  std::vector<pid_t> ranks = children();
  ASSERT_EQ(ranks.size(), 3u);
  std::set<std::string> standard;
  for (const std::string &file : openFiles(getpid()))
    if (file[0] <= '2' && file[1] == ' ')
      standard.insert(file);
  for (pid_t rank : ranks) {
    std::set<std::string> files = openFiles(rank);
    for (const std::string &file : standard)
      EXPECT_EQ(files.erase(file), 1u) << file;
    ASSERT_EQ(files.size(), 1u) << ::testing::PrintToString(files);
    EXPECT_THAT(*files.begin(), HasSubstr(" anon_inode:[eventfd]"));
  }
  ASSERT_OK((*session)->run());
  for (int file : opened)
    close(file);
}

/// When a launcher is killed, its ranks end too.
TEST_F(ShmSession, AKilledLauncherLeavesNobody) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); // adopts the launcher's orphans
  for (int round = 0; round < 4; ++round) {
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    pid_t launcher = fork();
    ASSERT_GE(launcher, 0);
    if (launcher == 0) {
      ProgramBuilder b = chain(3, 20, sleepy);
      auto session = b.session(shm());
      if (!session.ok() || !(*session)->loadWeights(*WeightSource::random(5)).ok() ||
          !setX(**session, 3).ok() || write(pipes[1], "x", 1) != 1)
        _exit(1);
      while ((*session)->run().ok()) {
      }
      _exit(2);
    }
    char ready;
    ASSERT_EQ(read(pipes[0], &ready, 1), 1);
    close(pipes[0]);
    close(pipes[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(7 * round));
    ASSERT_EQ(kill(launcher, SIGKILL), 0);
    int ended = 0;
    auto begin = std::chrono::steady_clock::now();
    while (ended < 4 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(60)) {
      if (waitpid(-1, nullptr, WNOHANG) > 0)
        ++ended;
      else
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(ended, 4);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/// Bytes of a process in shared mappings of at least `least` bytes for which it has pages itself.
int64_t residentBytes(pid_t pid, int64_t least) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps");
  int64_t sum = 0, size = 0;
  bool isShared = false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first, second;
    words >> first >> second;
    if (first == "Size:")
      size = std::stoll(second) * 1024;
    else if (first == "Rss:" && isShared && size >= least)
      sum += std::stoll(second) * 1024;
    else if (first.back() != ':')
      isShared = second == "rw-s";
  }
  return sum;
}

/// A page lies near the cores of the process that touches it first.
TEST_F(ShmSession, ARankTouchesItsSymmetricArenaAndTheLauncherNone) {
  constexpr int64_t kArena = 16 << 20, kHugePages = 4 << 20; // that begin or end in another arena
  ProgramBuilder b = chain(2, 1, shrink);
  b.program.procedures[0]->symmetric_bytes = kArena;
  auto session = b.session(shm());
  ASSERT_OK(session);
  EXPECT_EQ(residentBytes(getpid(), 2 * kArena), 0);
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(5)));
  EXPECT_EQ(residentBytes(getpid(), 2 * kArena), 0);
  const std::vector<pid_t> ranks = children();
  ASSERT_EQ(ranks.size(), 2u);
  for (pid_t rank : ranks) {
    EXPECT_GE(residentBytes(rank, 2 * kArena), kArena);
    EXPECT_LE(residentBytes(rank, 2 * kArena), kArena + kHugePages);
  }
  ASSERT_OK(setX(**session, 2));
  ASSERT_OK((*session)->run());
}

/// Memory that runs out while a rank prepares, which a hole in its arena stands for, is an error.
TEST_F(ShmSession, ARankThatCannotTouchItsArenaIsNamed) {
  constexpr uintptr_t kArena = 16 << 20;
  ProgramBuilder b = chain(2, 1, shrink);
  b.program.procedures[0]->symmetric_bytes = kArena;
  auto session = b.session(shm());
  ASSERT_OK(session);
  std::ifstream maps("/proc/self/maps");
  int found = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uintptr_t begin = 0, end = 0;
    char dash;
    std::string access;
    words >> std::hex >> begin >> dash >> end >> access;
    if (access != "rw-s" || end - begin < 2 * kArena)
      continue;
    ++found;
    ASSERT_EQ(munmap(reinterpret_cast<void *>(begin + kArena + kArena / 2), 4096), 0);
  }
  ASSERT_EQ(found, 1);
  EXPECT_THAT((*session)->loadWeights(*WeightSource::random(5)).message(),
              MatchesRegex("arenas of rank 1: cannot allocate 16777216 bytes, the system has "
                           "[0-9]+ available: Cannot allocate memory"));
  EXPECT_TRUE(children().empty());
}

TEST_F(ShmSession, EntriesShareAState) {
  WorldOptions options;
  options.transport = "shm";
  options.trace = true;
  auto session = Session::create(cacheProgram().bundle(), options, "write");
  ASSERT_OK(session);
  Model &model = (*session)->model();
  Result<Execution *> read = model.execution("read");
  ASSERT_OK(read);
  std::vector<float> expected(12);
  auto append = [&](int32_t position, float value) {
    const std::vector<float> row(4, value);
    EXPECT_OK((*session)->setInput("x", DType::f32, {1, 1, 4}, row.data()));
    EXPECT_OK((*session)->setInput("position", DType::i32, {1}, &position));
    return (*session)->run();
  };
  ASSERT_OK((*session)->loadWeights(*WeightSource::random(3)));
  expectCache(model, **read, expected);
  for (int32_t position : {2, 0, 1}) {
    ASSERT_OK(append(position, static_cast<float>(position) + 7));
    std::fill_n(expected.begin() + 4 * position, 4, static_cast<float>(position) + 7);
    expectCache(model, **read, expected);
  }
  Status beyond = append(3, 1);
  EXPECT_THAT(beyond.message(),
              ::testing::MatchesRegex(
                  "entry 'write': rank [01]: append 'append keys' in @write: position 3 of row 0 "
                  "is outside of .0, 2., for a capacity of 3"));
  EXPECT_EQ(beyond.code(), Code::invalid);
  expected.assign(12, 0);
  ASSERT_OK(model.resetStates()); // of the processes that run
  expectCache(model, **read, expected);
  EXPECT_ERROR((*session)->writeTrace("/dev/null"),
               "a trace expects that the last run of the model was one of this entry and has "
               "succeeded");
  EXPECT_OK((*read)->writeTrace("/dev/null"));
}

TEST_F(ShmSession, WhatCannotBeIsRefused) {
  ProgramBuilder b = chain(2, 1, shrink);
  auto session = b.session(shm());
  ASSERT_OK(session);
  alignas(64) static float memory[32];
  EXPECT_ERROR((*session)->bindInput(0, "x", memory, sizeof memory),
               "memory of the caller expects transport 'threads', got 'shm', whose ranks do not "
               "see it");
  EXPECT_THAT((*session)->run().message(), HasSubstr("weights are missing"));

  // If a rank fails to load, loading fails.
  auto missing = b.session(shm());
  ASSERT_OK(missing);
  Status status = (*missing)->loadWeights(**openSafetensors(kOtherWeightsPath));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::invalid);
  EXPECT_THAT(status.message(), HasSubstr("'w'"));

  ProgramBuilder large = chain(2, 1, shrink);
  large.program.procedures[0]->symmetric_bytes = uint64_t(1) << 45;
  EXPECT_THAT(large.session(shm()).status().message(),
              MatchesRegex("symmetric memory of 35184372088832 bytes for each of 2 ranks: cannot "
                           "allocate [0-9]+ bytes, the system has [0-9]+ available: Cannot "
                           "allocate memory"));
}

} // namespace
