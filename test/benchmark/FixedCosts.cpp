//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures what the executor spends besides computing and moving bytes: on a command, an event, a
// call and a small collective, between two ranks as threads and as processes. Programs with few and
// with many repetitions run in turn; the difference of their times over the difference of their
// repetitions is the cost of one. README.md has the table.
//
//===----------------------------------------------------------------------===//
#include "test/unit/Runtime/ProgramBuilder.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32;
/// A rank's value in a collective: 1 KiB.
constexpr int64_t kElements = 256;

void nothing(void *const *) {}

/// Appends one repetition, with two events of its own.
using Repeat = void (*)(ProcedureBuilder &p, uint32_t kernel, uint32_t event);

V input() { return symmetric(0, f32, {kElements}); }
V whole() { return symmetric(4096, f32, {2 * kElements}); }
V sum() { return symmetric(4096, f32, {kElements}); }

void launch(ProcedureBuilder &p, uint32_t kernel, uint32_t) {
  p.launch("nothing", kernel, {local(0, f32, {1, 16})}, {true}, 1);
}
void call(ProcedureBuilder &p, uint32_t, uint32_t) { p.call("callee", 1, {}, 0, 0, 0); }
/// To the other queue and back.
void events(ProcedureBuilder &p, uint32_t, uint32_t event) {
  p.record(kComputeQueue, event);
  p.await(kCommunicationQueue, event);
  p.record(kCommunicationQueue, event + 1);
  p.await(kComputeQueue, event + 1);
}
void allReduce(ProcedureBuilder &p, uint32_t, uint32_t event) {
  p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {input()}, {sum()}, 0, event, event + 1);
  p.wait("sum", event + 1);
}
void allGather(ProcedureBuilder &p, uint32_t, uint32_t event) {
  p.start("gather", fb::CollectiveKind::all_gather, {"tp"}, {input()}, {whole()}, 0, event,
          event + 1);
  p.wait("gather", event + 1);
}
/// Something that computes stands between start and wait, so that each rank has two threads.
void allReduceBesideWork(ProcedureBuilder &p, uint32_t kernel, uint32_t event) {
  p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {input()}, {sum()}, 0, event, event + 1);
  launch(p, kernel, event);
  p.wait("sum", event + 1);
}
void allGatherBesideWork(ProcedureBuilder &p, uint32_t kernel, uint32_t event) {
  p.start("gather", fb::CollectiveKind::all_gather, {"tp"}, {input()}, {whole()}, 0, event,
          event + 1);
  launch(p, kernel, event);
  p.wait("gather", event + 1);
}

struct Case {
  const char *name;
  Repeat repeat;
  bool hasEvents;
};
constexpr Case kCases[] = {
    {"launch of a kernel that does nothing", launch, false},
    {"call of a procedure with such a launch", call, false},
    {"two events, to another queue and back", events, true},
    {"all_reduce of 1 KiB", allReduce, true},
    {"all_gather of 1 KiB from each rank", allGather, true},
    {"all_reduce of 1 KiB beside such a launch", allReduceBesideWork, true},
    {"all_gather of 1 KiB beside such a launch", allGatherBesideWork, true},
};

[[noreturn]] void fail(const Status &status) {
  std::fprintf(stderr, "fixed costs: error: %s\n", status.message().c_str());
  std::exit(1);
}

std::unique_ptr<Session> sessionOf(const Case &c, uint32_t count, const std::string &transport,
                                   bool pin) {
  ProgramBuilder b({{"tp", 2}});
  const uint32_t kernel = b.kernel("nothing", 1, nothing);
  auto p = b.procedure("main", 0, 64, 8192, c.hasEvents ? 2 * count : 0);
  auto callee = b.procedure("callee", 0, 64, 0, 0);
  launch(callee, kernel, 0);
  for (uint32_t i = 0; i < count; ++i)
    c.repeat(p, kernel, 2 * i);
  SessionOptions options;
  options.transport = transport;
  options.pin = pin;
  Result<std::unique_ptr<Session>> session = b.session(options);
  if (!session.ok())
    fail(session.status());
  return std::move(*session);
}

double secondsOfRun(Session &session) {
  const auto begin = std::chrono::steady_clock::now();
  if (Status status = session.run(); !status.ok())
    fail(status);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Least and median of the differences of runs in turn, in microseconds for one repetition.
void measure(const Case &c, const std::string &transport, int rounds, bool pin) {
  constexpr int kFew = 100, kMany = 1100;
  std::unique_ptr<Session> few = sessionOf(c, kFew, transport, pin),
                           many = sessionOf(c, kMany, transport, pin);
  std::vector<double> fewTimes, manyTimes;
  for (int round = -3; round < rounds; ++round) {
    const double a = secondsOfRun(*few), b = secondsOfRun(*many);
    if (round < 0)
      continue;
    fewTimes.push_back(a);
    manyTimes.push_back(b);
  }
  std::sort(fewTimes.begin(), fewTimes.end());
  std::sort(manyTimes.begin(), manyTimes.end());
  auto difference = [&](size_t i) { return (manyTimes[i] - fewTimes[i]) * 1e6 / (kMany - kFew); };
  std::printf("| %s | %s | %.2f | %.2f |\n", c.name, transport.c_str(), difference(0),
              difference(manyTimes.size() / 2));
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  int rounds = 300;
  bool pin = false, understood = true;
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--pin") == 0)
      pin = true;
    else
      understood &= (rounds = std::atoi(argv[i])) > 0;
  if (!understood) {
    std::fprintf(stderr, "usage: BraidFixedCosts [ROUNDS (300)] [--pin]\n");
    return 1;
  }
  std::printf("| what | ranks as | least, us | median, us |\n| --- | --- | ---: | ---: |\n");
  for (const char *transport : {"threads", "shm"})
    for (const Case &c : kCases)
      measure(c, transport, rounds, pin);
  return 0;
}
