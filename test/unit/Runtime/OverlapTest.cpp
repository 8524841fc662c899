//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measured times of collectives in a run: hidden, exposed, waiting for peers.
//
//===----------------------------------------------------------------------===//
#include "ProgramBuilder.h"
#include "TransportOfTest.h"
#include "runtime/lib/Executor/Executor.h"
#include "runtime/lib/Model/RunHistory.h"

#include <atomic>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/resource.h>
#include <thread>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr int64_t kMs = 1000000;

int64_t ownProcessorNs() { return processorNs(CLOCK_THREAD_CPUTIME_ID); }

/// Uses this much processor time, however long it takes.
void burn(int64_t ns) {
  for (const int64_t end = ownProcessorNs() + ns; ownProcessorNs() < end;) {
  }
}
void sleepFor(int64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }
void waitUntil(const std::atomic<bool> &flag) {
  while (!flag)
    sleepFor(kMs / 10);
}

TEST(Overlap, WhatIsCovered) {
  const std::vector<Interval> busy{{10, 20}, {30, 40}, {50, 60}};
  EXPECT_EQ(coveredNs({0, 5}, busy), 0);
  EXPECT_EQ(coveredNs({0, 10}, busy), 0);
  EXPECT_EQ(coveredNs({20, 30}, busy), 0);
  EXPECT_EQ(coveredNs({60, 70}, busy), 0);
  EXPECT_EQ(coveredNs({12, 15}, busy), 3);
  EXPECT_EQ(coveredNs({5, 12}, busy), 2);
  EXPECT_EQ(coveredNs({18, 32}, busy), 4);
  EXPECT_EQ(coveredNs({15, 55}, busy), 20);
  EXPECT_EQ(coveredNs({0, 100}, busy), 30);
  EXPECT_EQ(coveredNs({15, 15}, busy), 0);
  EXPECT_EQ(coveredNs({0, 100}, {}), 0);
}

/// A transport of rank 0; the test decides how a collective moves bytes and waits for its peer.
class Driven : public TransportOfTest {
public:
  using Exchange =
      std::function<void(const Collective &, const std::function<void()> &waitForPeer)>;
  explicit Driven(Exchange exchange = {}) : exchange(std::move(exchange)) {}
  /// The test's exchange is the whole collective.
  CollectiveRun *begin(const Collective &c, const SymmetricHeap &, RunControl &control,
                       QueueState &self) override {
    exchange(c, [&] { control.wait(peer, 1, self, Waiting::peer, 0); });
    return control.failed() ? nullptr : &done;
  }
  Exchange exchange;
  Counter peer;

private:
  struct Done : CollectiveRun {
    bool advance() override { return true; }
    bool wait() override { return false; }
  } done;
};

/// Gives a model of rank 0 of two such a transport.
struct DrivenProcess : Communicator {
  explicit DrivenProcess(Driven::Exchange exchange) : exchange(std::move(exchange)) {}
  int64_t numRanks() const override { return 2; }
  RankRange local() const override { return {0, 1}; }
  std::string transportName() const override { return "threads"; }
  Result<std::unique_ptr<Transport>> createTransport(int64_t) override {
    return std::unique_ptr<Transport>(std::make_unique<Driven>(exchange));
  }
  Result<std::vector<Contribution>> gather(std::vector<std::byte> mine,
                                           const std::vector<size_t> & /*bytes*/) override {
    return std::vector<Contribution>{{local(), std::move(mine)}};
  }
  Result<std::vector<std::byte>> scatter(const MakePart &make,
                                         const std::vector<size_t> & /*bytes*/) override {
    return make(local());
  }
  Status broadcast(void *, size_t) override { return {}; }
  Status collect(const NextPiece &, const TakePiece &) override { return {}; }
  Result<ClockMap> measureClock() override { return ClockMap(); }
  std::string host() const override { return "here"; }
  Driven::Exchange exchange;
};

std::function<void()> kernelWork; ///< of the only kernel of these programs
void kernelFunction(void *const *) { kernelWork(); }

Command compute() {
  Command command;
  command.operation = "kernel";
  LaunchCommand op;
  op.function = kernelFunction;
  op.parts.resize(1);
  command.op = std::move(op);
  return command;
}
template <typename Op> Command command(const char *operation, Op op) {
  Command result;
  result.operation = operation;
  result.op = std::move(op);
  return result;
}

/// The compute queue of one rank: 'k' computes, a digit starts the collective of that number, a
/// lowercase letter waits for it ('a' for 0). The communication queue runs them in order.
RankProgram programOf(const std::string &text) {
  RankProgram program;
  program.queues.resize(2);
  program.ownThread.assign(2, true);
  for (char c : text) {
    if (c == 'k') {
      program.queues[0].push_back(compute());
    } else if (c >= '0' && c <= '9') {
      const auto number = static_cast<uint32_t>(c - '0');
      program.queues[0].push_back(command("record", RecordCommand{2 * number}));
      program.queues[1].push_back(command("await", AwaitCommand{2 * number}));
      CollectiveCommand op{};
      op.event = 2 * number + 1;
      op.index = static_cast<uint32_t>(program.collectives.size());
      op.collective.name = std::string(1, c);
      program.queues[1].push_back(command("all_reduce", std::move(op)));
      program.collectives.emplace_back();
      program.numEvents += 2;
    } else {
      const auto number = static_cast<uint32_t>(c - 'a');
      program.queues[0].push_back(command("wait", CollectiveWaitCommand{2 * number + 1, number}));
    }
  }
  return program;
}

/// Runs the program of one rank once.
RankTimes timesOf(const std::string &text, Driven &transport, bool inTurns = true) {
  auto workers =
      std::make_shared<Workers>(1, RankRange{0, 1}, computeAndCommunication(), 1, 60, &transport);
  Rank &rank = *workers->ranks[0];
  RankProgram program = programOf(text);
  findOverlap(program);
  if (inTurns)
    giveToWaiters(program);
  const auto events = std::make_unique<Counter[]>(program.numEvents);
  rank.program = &program;
  rank.events = events.get();
  rank.hasThread = program.ownThread;
  std::vector<std::thread> threads;
  EXPECT_OK(startThreads(*workers, workers, threads));
  EXPECT_OK(workers->run());
  stopThreads(*workers, threads);
  return rank.times;
}

/// Collectives that no command can hide ('x'), and commands that may hide a collective ('o').
std::string formOf(const std::string &text) {
  RankProgram program = programOf(text);
  findOverlap(program);
  std::string form;
  for (const CollectiveInfo &collective : program.collectives)
    form += collective.exposedByForm ? 'x' : '-';
  form += ' ';
  for (const Command &command : program.queues[0])
    if (std::holds_alternative<LaunchCommand>(command.op))
      form += command.mayOverlap ? 'o' : '.';
  return form;
}

TEST(Overlap, Form) {
  EXPECT_EQ(formOf("k0ak"), "x ..");
  EXPECT_EQ(formOf("k0kak"), "- .o.");
  EXPECT_EQ(formOf("0a"), "x ");
  EXPECT_EQ(formOf("01kab"), "-- o");
  // The wait for the second collective includes the first, since they run in order.
  EXPECT_EQ(formOf("01bka"), "xx .");
  EXPECT_EQ(formOf("0k1bka"), "-x o.");
  // The second one runs after the first, but may begin during the second kernel.
  EXPECT_EQ(formOf("0k1kakb"), "-- ooo");
  EXPECT_EQ(formOf("0k"), "- o"); // no command waits for it
}

/// Processor time while bytes move is hidden, to within a tenth: not time while waiting for a peer,
/// and not time in which the kernel has no processor.
TEST(Overlap, HiddenIsWhatIsComputedWhileBytesMove) {
  constexpr int64_t kWaiting = 30 * kMs, kMoving = 60 * kMs;
  std::atomic<bool> waits{false}, moves{false}, burned{false}, done{false};
  kernelWork = [&] {
    waitUntil(waits);
    burn(kWaiting);
    burned = true;
    waitUntil(moves);
    burn(kMoving / 2);
    sleepFor(20 * kMs); // not hidden: computes nothing
    burn(kMoving / 2);
    done = true;
  };
  Driven transport;
  transport.exchange = [&](const Collective &, const std::function<void()> &waitForPeer) {
    std::thread peer([&] {
      waitUntil(burned);
      transport.peer.set(1);
    });
    waits = true;
    waitForPeer();
    peer.join();
    moves = true;
    waitUntil(done);
  };
  const RankTimes times = timesOf("0kak", transport);
  const CommunicationTimes &c = times.collectives[0];
  EXPECT_NEAR(static_cast<double>(c.hiddenNs), static_cast<double>(kMoving), 0.1 * kMoving);
  EXPECT_GE(c.peerWaitNs, kWaiting);
  EXPECT_GE(c.communicationNs, c.peerWaitNs + kMoving + 20 * kMs);
  EXPECT_EQ(times.total.hiddenNs, c.hiddenNs);
}

/// The time of the wait is exposed, on whichever thread the collective runs.
TEST(Overlap, ExposedIsTheWait) {
  for (bool inTurns : {false, true}) {
    int kernels = 0, exchanges = 0;
    std::atomic<bool> moves{false}, computed{false};
    kernelWork = [&] {
      const bool isLast = ++kernels == 3;
      if (isLast)
        waitUntil(moves);
      burn(5 * kMs);
      computed = isLast;
    };
    Driven transport;
    transport.exchange = [&](const Collective &, const std::function<void()> &) {
      const bool isLast = ++exchanges == 2;
      moves = isLast;
      sleepFor(20 * kMs);
      if (isLast)
        waitUntil(computed);
    };
    const RankTimes times = timesOf("k0ak1kb", transport, inTurns);
    EXPECT_EQ(times.collectives[0].hiddenNs, 0);
    EXPECT_GE(times.collectives[0].exposedNs, 15 * kMs);
    EXPECT_EQ(times.collectives[0].peerWaitNs, 0);
    EXPECT_GE(times.collectives[1].hiddenNs, 5 * kMs);
    EXPECT_LE(times.collectives[1].hiddenNs, 10 * kMs);
    EXPECT_EQ(times.total.exposedNs,
              times.collectives[0].exposedNs + times.collectives[1].exposedNs);
  }
}

/// A thread that would only wait runs the communication queue's commands itself, in their order.
TEST(Overlap, ThreadsTakeTurnsWithAQueue) {
  // The last collective may run on the other thread while the kernel runs.
  std::atomic<std::thread::id> computing{std::thread::id()};
  kernelWork = [&] { computing = std::this_thread::get_id(); };
  auto threadsOf = [&](const std::string &text) {
    std::string order;
    Driven transport;
    transport.exchange = [&](const Collective &c, const std::function<void()> &) {
      order += c.name + (std::this_thread::get_id() == computing ? "w " : "o ");
    };
    timesOf(text, transport);
    return order;
  };
  EXPECT_EQ(threadsOf("k0a"), "0w ");
  EXPECT_EQ(threadsOf("k0ka"), "0o ");
  EXPECT_EQ(threadsOf("k01ba"), "0w 1w ");
  EXPECT_EQ(threadsOf("k0k1ba2c"), "0o 1w 2w ");
  EXPECT_EQ(threadsOf("k0a1kb2c3kd4e"), "0w 1o 2w 3o 4w ");
  EXPECT_EQ(threadsOf("k0k1a2bck3d"), "0o 1w 2w 3w ");
  EXPECT_EQ(threadsOf("k0a1k"), "0w 1o "); // no command waits for the last one
  // A rank needs no other thread if waiting threads run all its collectives or if it has no peers.
  struct : ProcessGroup {
    std::vector<int64_t> missing(int64_t) const override { return {}; }
  } group;
  group.ranks = {0};
  for (const char *text : {"k0ak1b", "k0kak1kb"}) {
    RankProgram program = programOf(text);
    for (Command &command : program.queues[1])
      if (auto *op = std::get_if<CollectiveCommand>(&command.op))
        op->collective.group = &group;
    giveToWaiters(program);
    EXPECT_FALSE(program.ownThread[kCommunicationQueue]) << text;
  }
}

/// A program of a compute queue and two queues with a collective each, of number q - 1 and event q,
/// which follow the record of event 0. `text` is as in programOf, with 'a' and 'b' for the waits;
/// with `chained` the second collective also waits for the first one.
RankProgram twoQueues(const std::string &text, bool chained) {
  RankProgram program;
  program.queues.resize(3);
  program.ownThread.assign(3, true);
  program.numEvents = 3;
  program.collectives.resize(2);
  for (uint32_t q = 1; q <= 2; ++q) {
    program.queues[q].push_back(command("await", AwaitCommand{0}));
    if (chained && q == 2)
      program.queues[q].push_back(command("wait", CollectiveWaitCommand{1, 0}));
    CollectiveCommand op{};
    op.event = q;
    op.index = q - 1;
    program.queues[q].push_back(command("all_reduce", std::move(op)));
  }
  program.queues[0].push_back(command("record", RecordCommand{0}));
  for (char c : text)
    program.queues[0].push_back(
        c == 'k' ? compute()
                 : command("wait", CollectiveWaitCommand{static_cast<uint32_t>(c - 'a') + 1,
                                                         static_cast<uint32_t>(c - 'a')}));
  return program;
}

TEST(Overlap, SeveralQueues) {
  auto threadsOf = [](const std::string &text, bool chained = false) {
    RankProgram program = twoQueues(text, chained);
    giveToWaiters(program);
    return program.ownThread;
  };
  using Own = std::vector<bool>;
  // The waiter runs the collective that it waits for first. The other one must not stand still
  // meanwhile, as peers may wait for it.
  EXPECT_EQ(threadsOf("ab"), (Own{true, false, true}));
  EXPECT_EQ(threadsOf("ba"), (Own{true, true, false}));
  EXPECT_EQ(threadsOf("kab"), (Own{true, true, true}));
  // Nobody runs a collective for which another queue waits but its own thread.
  EXPECT_EQ(threadsOf("b", true), (Own{true, true, false}));
  EXPECT_EQ(threadsOf("ab", true), (Own{true, true, true}));

  auto exposedOf = [](const std::string &text, bool chained) {
    RankProgram program = twoQueues(text, chained);
    findOverlap(program);
    return Own{program.collectives[0].exposedByForm, program.collectives[1].exposedByForm};
  };
  EXPECT_EQ(exposedOf("akb", false), (Own{true, false}));
  // What the second one waits for is waited for with it.
  EXPECT_EQ(exposedOf("kb", true), (Own{false, false}));
  EXPECT_EQ(exposedOf("bk", true), (Own{true, true}));
}

/// Nothing is computed between start and wait. Threads are preempted at random, since there are
/// four times as many as cores.
TEST(Overlap, NothingBetweenStartAndWaitIsNeverHidden) {
  const int64_t ranks = 4 * std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  constexpr int64_t kSize = 128;
  for (const char *transport : {"threads", "shm"}) {
    ProgramBuilder b({{"tp", ranks}});
    b.operand("x", DType::f32, {ranks * kSize, kSize}, {{"tp"}, {}});
    b.operand("w", DType::f32, {kSize, kSize});
    b.result("y", DType::f32, {ranks * kSize, kSize}, {{"tp"}, {}});
    constexpr uint64_t kBytes = kSize * kSize * 4;
    constexpr uint32_t kCount = 8;
    auto p = b.procedure("main", 3, 0, 2 * kBytes, 2 * kCount);
    const V in = symmetric(0, DType::f32, {kSize, kSize}),
            out = symmetric(kBytes, DType::f32, {kSize, kSize});
    for (uint32_t i = 0; i < kCount; ++i) {
      p.matmul("product", i == 0 ? argument(0, DType::f32, {kSize, kSize}) : out,
               argument(1, DType::f32, {kSize, kSize}), nullptr, in);
      p.start("", fb::CollectiveKind::all_reduce, {"tp"}, {in}, {out}, 0, 2 * i, 2 * i + 1, "");
      p.wait("", 2 * i + 1);
    }
    p.copy("result", out, argument(2, DType::f32, {kSize, kSize}));
    WorldOptions options;
    options.transport = transport;
    auto session = b.session(options);
    ASSERT_OK(session);
    std::vector<float> x(static_cast<size_t>(ranks * kSize * kSize), 1e-3f), w(kSize * kSize);
    ASSERT_OK((*session)->setInput("x", DType::f32, {ranks * kSize, kSize}, x.data()));
    ASSERT_OK((*session)->setInput("w", DType::f32, {kSize, kSize}, w.data()));
    for (int run = 0; run < 5; ++run) {
      (*session)->resetStatistics();
      ASSERT_OK((*session)->run());
      const auto report = nlohmann::json::parse((*session)->report());
      for (const auto &rank : report["per_rank"]) {
        EXPECT_EQ(rank["hidden_comm_s"], 0.0);
        EXPECT_GE(rank["exposed_comm_s"], 0.0);
      }
      ASSERT_EQ(report["collectives"].size(), kCount);
      for (uint32_t i = 0; i < kCount; ++i) { // unnamed collectives have rows too
        const auto &c = report["collectives"][i];
        EXPECT_EQ(c["exposed_by_form"], true);
        EXPECT_EQ(c["calls"], "@main");
        EXPECT_EQ(c["kind"], "all_reduce");
        const std::string name = i == 0 ? "all_reduce" : "all_reduce#" + std::to_string(i);
        EXPECT_EQ(c["name"], name);
        EXPECT_EQ(c["identity"], "@main/" + name);
        EXPECT_LE(c["peer_wait_s"], c["comm_s"]);
      }
    }
  }
}

/// A kernel whose memory is bound again hides the same collectives as before.
TEST(Overlap, MovedArgumentsChangeNothing) {
  std::atomic<bool> moves{false}, computed{false};
  kernelWork = [&] {
    waitUntil(moves);
    burn(5 * kMs);
    computed = true;
  };
  ProgramBuilder b({{"tp", 2}});
  b.operand("x", DType::f32, {1, 16});
  b.result("y", DType::f32, {1, 16});
  const uint32_t kernel = b.kernel("burn", 2, kernelFunction);
  auto p = b.procedure("main", 2, 0, 128, 2);
  const V in = symmetric(0, DType::f32, {16}), out = symmetric(64, DType::f32, {16});
  p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {in}, {out}, 0, 0, 1);
  p.launch("burn", kernel, {argument(0, DType::f32, {1, 16}), argument(1, DType::f32, {1, 16})},
           {true, true}, 1);
  p.wait("sum", 1);
  WorldOptions options;
  options.communicator =
      std::make_shared<DrivenProcess>([&](const Collective &, const std::function<void()> &) {
        moves = true;
        waitUntil(computed);
      });
  auto session = b.session(options);
  ASSERT_OK(session);
  alignas(64) static float memory[2][16];
  for (auto &bound : memory) {
    ASSERT_OK((*session)->bindInput(0, "x", bound, sizeof bound));
    moves = computed = false;
    (*session)->resetStatistics();
    ASSERT_OK((*session)->run());
    const auto report = nlohmann::json::parse((*session)->report());
    EXPECT_GE(report["hidden_comm_s"], 0.005);
    EXPECT_LE(report["hidden_comm_s"], 0.01);
  }
}

/// Helpers without work are not woken: a sleeping thread does not switch.
TEST(Team, WakesTheHelpersThatItNeeds) {
  constexpr int64_t kMembers = 4, kJobs = 2000;
  Team team(kMembers);
  RunControl control(1, computeAndCommunication(), 60, {});
  std::vector<long> switches(kMembers);
  std::vector<std::thread> helpers;
  for (int64_t member = 1; member < kMembers; ++member)
    helpers.emplace_back([&, member] {
      team.serve(member, {});
      rusage usage{};
      getrusage(RUSAGE_THREAD, &usage);
      switches[static_cast<size_t>(member)] = usage.ru_nvcsw;
    });
  std::atomic<int64_t> parts{0};
  for (int64_t job = 0; job < kJobs; ++job)
    EXPECT_TRUE(team.run(
        2, [&](int64_t member) { parts += member + 1; }, control, control.queue(0, kComputeQueue)));
  EXPECT_EQ(parts, kJobs * 3);
  EXPECT_TRUE(
      team.run(kMembers, [&](int64_t) { ++parts; }, control, control.queue(0, kComputeQueue)));
  EXPECT_EQ(parts, kJobs * 3 + kMembers);
  team.stop();
  for (std::thread &helper : helpers)
    helper.join();
  for (size_t member : {2, 3})
    EXPECT_LT(switches[member], 50) << member;
}

/// The history keeps a fixed number of runs, however many there are.
TEST(RunHistory, KeepsTheLastRuns) {
  PerRank<std::unique_ptr<Rank>> ranks({4, 2}); // ranks 4 and 5
  for (auto &rank : ranks) {
    rank = std::make_unique<Rank>(2, 1);
    rank->times.clear(3);
  }
  RunHistory history;
  EXPECT_EQ(history.typical(), nullptr);
  EXPECT_TRUE(history.times().empty());
  constexpr int64_t kRuns = 10000;
  for (int64_t run = 0; run < kRuns; ++run) {
    ranks[5]->times.collectives[2].exposedNs = run;
    history.add(run == 17 ? 1 : 1000 + run, ranks);
  }
  EXPECT_EQ(history.count(), static_cast<uint64_t>(kRuns));
  EXPECT_EQ(history.leastNs(), 1); // of all runs
  const std::vector<int64_t> times = history.times();
  ASSERT_EQ(times.size(), RunHistory::kTimes);
  EXPECT_EQ(times.front(), 1000 + kRuns - static_cast<int64_t>(RunHistory::kTimes));
  EXPECT_EQ(times.back(), 1000 + kRuns - 1);
  ASSERT_NE(history.typical(), nullptr);
  EXPECT_EQ(history.typical()->ranks[5].collectives[2].exposedNs, history.typical()->ns - 1000);
  const auto number = static_cast<uint64_t>(kRuns - 2);
  for (const RunRecord *record : {history.closest(number), history.typical()})
    EXPECT_EQ(record->ranks[5].collectives[2].exposedNs, static_cast<int64_t>(record->number));
  EXPECT_EQ(history.closest(number)->number, number);
  EXPECT_EQ(history.closest(3 * number)->number, number + 1);
  EXPECT_GT(history.closest(0)->number, 0u); // the oldest that is kept
  history.clear();
  EXPECT_EQ(history.count(), 0u);
  EXPECT_EQ(history.closest(0), nullptr);
  history.add(7, ranks);
  EXPECT_EQ(history.leastNs(), 7);
  EXPECT_EQ(history.times(), std::vector<int64_t>{7});
}

TEST(RunHistory, Quantiles) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({3}, 0.99), 3);
  EXPECT_EQ(quantile({4, 1, 2}, 0.5), 2);
  EXPECT_EQ(quantile({4, 1}, 0.5), 2.5);
  EXPECT_EQ(quantile({5, 1, 2, 3, 4}, 1), 5);
}

int64_t residentPages() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident;
}

bool asksForLong() {
  const char *given = std::getenv("BRAID_TEST_LONG");
  return given && *given;
}

/// With BRAID_TEST_LONG set, a million runs.
TEST(RunHistory, MemoryStaysFlat) {
  if (kThreadSanitizer)
    GTEST_SKIP() << "the thread sanitizer keeps what threads did in memory of its own, which grows";
  ProgramBuilder b({{"tp", 2}});
  b.operand("x", DType::f32, {1, 16});
  b.result("y", DType::f32, {1, 16});
  auto p = b.procedure("main", 2, 0, 64, 2);
  const V in = symmetric(0, DType::f32, {1, 16});
  p.copy("in", argument(0, DType::f32, {1, 16}), in);
  p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {in}, {in}, 0, 0, 1);
  p.wait("sum", 1);
  p.copy("out", in, argument(1, DType::f32, {1, 16}));
  auto session = b.session();
  ASSERT_OK(session);
  const std::vector<float> x(16, 1);
  ASSERT_OK((*session)->setInput("x", DType::f32, {1, 16}, x.data()));
  const int runs = asksForLong() ? 1000000 : 100000;
  int64_t before = 0;
  for (int run = 0; run < runs; ++run) {
    if (run == 20000) // by now all buffers have grown to their final size
      before = residentPages();
    ASSERT_OK((*session)->run());
  }
  EXPECT_LE(residentPages() - before, 16);
  EXPECT_EQ(nlohmann::json::parse((*session)->report())["run_s"].size(), RunHistory::kTimes);
}

} // namespace
