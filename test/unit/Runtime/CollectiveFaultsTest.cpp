//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks that are lost before or in the middle of each collective: all other ranks end, with a
// message that names the missing rank and its position. A page of the rank's output that is
// write-protected makes the middle deterministic: the rank ends or stops at the first write to it.
//
//===----------------------------------------------------------------------===//
#include "CollectiveTable.h"
#include "LimitTesting.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::MatchesRegex;

namespace {

constexpr DType f32 = DType::f32;
constexpr int64_t kRanks = 3;
constexpr float kVictim = 7;

volatile sig_atomic_t signalInTheMiddle = SIGKILL; ///< set before the ranks are forked
size_t guardedBytes = 0;
void inTheMiddle(int) { raise(signalInTheMiddle); }

/// `descriptor` is a memref descriptor: allocated, aligned, offset, sizes, strides.
std::byte *data(void *descriptor) {
  auto *words = static_cast<int64_t *>(descriptor);
  return reinterpret_cast<std::byte *>(words[1]) + words[2] * static_cast<int64_t>(sizeof(float));
}
/// On the victim, protects a page in the middle of the second operand.
void guard(void *const *descriptors) {
  if (*reinterpret_cast<float *>(data(descriptors[0])) != kVictim)
    return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t middle = reinterpret_cast<uintptr_t>(data(descriptors[1])) + guardedBytes / 2;
  std::signal(SIGSEGV, inTheMiddle);
  if (mprotect(reinterpret_cast<void *>(middle / page * page), page, PROT_NONE) != 0)
    std::abort();
}

/// The kernel 'guard', then the collective 'c' over all ranks, then a copy of one of its outputs.
ProgramBuilder program(const Row &row) {
  const Use use = large(row, kRanks);
  ProgramBuilder b({{"tp", kRanks}});
  b.operand("x", f32, {kRanks}, {{"tp"}});
  b.result("y", f32, {kRanks}, {{"tp"}});
  Layout layout;
  std::vector<V> inputs, outputs;
  const std::vector<Shape> shapes = outputShapes(use, f32, kRanks);
  for (size_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back(layout.place(use.inputType(i, f32), use.inputs[i]));
    outputs.push_back(layout.place(use.inputType(i, f32), shapes[i]));
  }
  const int64_t elements = braid::interp::numElements(outputs[0].shape);
  guardedBytes = static_cast<size_t>(elements) * sizeof(float);
  EXPECT_GE(guardedBytes, size_t(3) * 4096);
  uint32_t kernel = b.kernel("guard", 2, guard);
  uint32_t numEvents = 0;
  const Events events(use, numEvents);
  auto p = b.procedure("main", 2, 0, layout.bytes(), numEvents);
  V whole = symmetric(outputs[0].offset, f32, {1, elements});
  p.launch("guard", kernel, {argument(0, f32, {1, 1}), whole}, {true, true}, 1);
  start(p, "c", use, {{"tp"}}, inputs, outputs, events);
  wait(p, "c", use, events);
  p.copy("result", symmetric(outputs[0].offset, f32, {1}), argument(1, f32, {1}));
  return b;
}

Status setVictim(Session &session, int64_t victim) {
  std::vector<float> x(kRanks, 0.0f);
  if (victim >= 0)
    x[static_cast<size_t>(victim)] = kVictim;
  return session.setInput("x", f32, {kRanks}, x.data());
}

WorldOptions optionsFor(const char *transport, double timeLimit) {
  WorldOptions options;
  options.transport = transport;
  options.timeLimitSeconds = timeLimit;
  return options;
}

bool hasChildren() { return waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD; }

std::string here(const Row &row) {
  return std::string(braid::runtime::name(row.kind)) + " 'c' in @main";
}

/// In these collectives all ranks of the group wait for each other, at least at the beginning; a
/// receiver waits for its sender only.
bool hasBarrier(const Row &row) { return row.kind != braid::interp::CollectiveKind::recv; }
/// In these no rank may wait for one that stops in the middle: what that one still writes is a copy
/// of its own value, or zeros.
bool mayWriteAlone(const Row &row) {
  return row.kind != braid::interp::CollectiveKind::allReduce &&
         row.kind != braid::interp::CollectiveKind::reduceScatter;
}

class EachCollective : public ::testing::TestWithParam<Row> {
protected:
  void TearDown() override { EXPECT_FALSE(hasChildren()); }
};

TEST_P(EachCollective, ARankThatDiesInTheMiddle) {
  signalInTheMiddle = SIGKILL;
  for (int64_t victim = 0; victim < kRanks; ++victim) {
    ProgramBuilder b = program(GetParam());
    auto session = b.session(optionsFor("shm", 60));
    ASSERT_OK(session);
    ASSERT_OK(setVictim(**session, -1));
    ASSERT_OK((*session)->run());
    ASSERT_OK(setVictim(**session, victim));
    auto begin = std::chrono::steady_clock::now();
    Status status = (*session)->run();
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 20)
        << "waited for the limit";
    EXPECT_EQ(status.code(), Code::rankFailed);
    std::string message = "rank " + std::to_string(victim) +
                          " was ended by signal 9 \\(Killed\\) while it was at " +
                          here(GetParam()) + " on its communication queue";
    if (hasBarrier(GetParam()))
      message += "(, rank [0-2] waits for it at " + here(GetParam()) + ")?"; // others may be late
    EXPECT_THAT(status.message(), MatchesRegex(message));
    EXPECT_FALSE(hasChildren());
  }
}

TEST_P(EachCollective, ARankThatStopsInTheMiddle) {
  signalInTheMiddle = SIGSTOP;
  for (int64_t victim = 0; victim < kRanks; ++victim) {
    ProgramBuilder b = program(GetParam());
    const std::string number = std::to_string(victim);
    const std::string there = here(GetParam()) + " on its communication queue";
    const std::string waits = "rank [0-2]: " + here(GetParam()) +
                              " on the communication queue waited [0-9.]+ s for rank " + number +
                              ", which has not arrived \\(rank " + number + " is at " + there +
                              "\\)",
                      alone = "rank " + number +
                              ": (wait 'c' in @main on the compute queue waited [0-9.]+ s for "
                              "the rank's communication queue, which is at " +
                              there + "|.* has made no progress in [0-9.]+ s)";
    const std::string message = !hasBarrier(GetParam())     ? alone
                                : mayWriteAlone(GetParam()) ? "(" + waits + "|" + alone + ")"
                                                            : waits;
    expectRankFailed(MatchesRegex(message), [&](double limit) {
      auto session = b.session(optionsFor("shm", limit));
      if (!session.ok())
        return session.status();
      EXPECT_OK(setVictim(**session, victim));
      Status status = (*session)->run();
      // The limit ran out before the rank got there, and the session is still usable.
      if (!status.ok() && hasChildren())
        return Status::error(status.message());
      return status;
    });
  }
}

TEST_P(EachCollective, ARankThatStallsBefore) {
  for (const char *transport : {"threads", "shm"}) {
    ProgramBuilder b = program(GetParam());
    expectRunsFail(MatchesRegex("rank [02]: " + here(GetParam()) +
                                " on the communication queue waited [0-9.]+ s for rank 1, which "
                                "has not arrived \\(rank 1 is at kernel 'guard' in @main on its "
                                "compute queue\\)"),
                   2, [&](double limit) { // the session stays usable
                     WorldOptions options = optionsFor(transport, limit);
                     options.stall = StallInjection{1, "guard"};
                     auto session = b.session(options);
                     if (session.ok())
                       EXPECT_OK(setVictim(**session, -1));
                     return session;
                   });
  }
}

/// The launcher is killed while one rank has stopped in the middle and the others wait for it.
TEST_P(EachCollective, TheLauncherIsKilledInTheMiddle) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); // adopts the launcher's orphans
  signalInTheMiddle = SIGSTOP;
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  pid_t launcher = fork();
  ASSERT_GE(launcher, 0);
  if (launcher == 0) {
    ProgramBuilder b = program(GetParam());
    auto session = b.session(optionsFor("shm", 60));
    if (!session.ok() || !setVictim(**session, 1).ok() || write(pipes[1], "x", 1) != 1)
      _exit(1);
    _exit((*session)->run().ok() ? 2 : 3);
  }
  char ready;
  ASSERT_EQ(read(pipes[0], &ready, 1), 1);
  close(pipes[0]);
  close(pipes[1]);
  auto stopped = [&] { // a child of the launcher is in state T
    std::ifstream list("/proc/" + std::to_string(launcher) + "/task/" + std::to_string(launcher) +
                       "/children");
    for (pid_t pid; list >> pid;) {
      std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
      std::string text;
      std::getline(stat, text);
      if (text.find(") T ") != std::string::npos)
        return true;
    }
    return false;
  };
  auto begin = std::chrono::steady_clock::now();
  auto within = [&](int limit) {
    return std::chrono::steady_clock::now() - begin < std::chrono::seconds(limit);
  };
  while (!stopped() && within(60))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(stopped());
  ASSERT_EQ(kill(launcher, SIGKILL), 0);
  int ended = 0;
  while (ended < 1 + kRanks && within(120))
    if (waitpid(-1, nullptr, WNOHANG) > 0)
      ++ended;
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(ended, 1 + kRanks);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, EachCollective, ::testing::ValuesIn(kRows), [](const auto &info) {
  return std::string(braid::runtime::name(info.param.kind));
});

} // namespace
