//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures what the executor spends besides computing and moving bytes: on a run, a command, an
// event, a call and a small collective, between two ranks as threads and as processes. A program
// repeats each thousands of times; the time of a run over the repetitions includes the share of the
// run's own beginning and end. README.md has the table.
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

/// Few enough for a run that nothing else on the machine interrupts.
constexpr uint32_t kCollectives = 500;

struct Case {
  const char *name;
  Repeat repeat;
  bool hasEvents;
  uint32_t count = 4000; ///< repetitions
};
constexpr Case kCases[] = {
    {"run of nothing", launch, false, 0},
    {"launch of a kernel that does nothing", launch, false},
    {"call of a procedure with such a launch", call, false},
    {"two events, to another queue and back", events, true},
    {"all_reduce of 1 KiB", allReduce, true, kCollectives},
    {"all_gather of 1 KiB from each rank", allGather, true, kCollectives},
    {"all_reduce of 1 KiB beside such a launch", allReduceBesideWork, true, kCollectives},
    {"all_gather of 1 KiB beside such a launch", allGatherBesideWork, true, kCollectives},
};

[[noreturn]] void fail(const Status &status) {
  std::fprintf(stderr, "fixed costs: error: %s\n", status.message().c_str());
  std::exit(1);
}

std::unique_ptr<Session> sessionOf(const Case &c, const std::string &transport, bool pin) {
  ProgramBuilder b({{"tp", 2}});
  const uint32_t kernel = b.kernel("nothing", 1, nothing);
  auto p = b.procedure("main", 0, 64, 8192, c.hasEvents ? 2 * c.count : 0);
  auto callee = b.procedure("callee", 0, 64, 0, 0);
  launch(callee, kernel, 0);
  for (uint32_t i = 0; i < c.count; ++i)
    c.repeat(p, kernel, 2 * i);
  WorldOptions options;
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

/// Least and median time of a run over its repetitions, in microseconds.
void measure(const Case &c, const std::string &transport, int rounds, bool pin) {
  std::unique_ptr<Session> session = sessionOf(c, transport, pin);
  std::vector<double> times;
  for (int round = -3; round < rounds; ++round)
    if (const double time = secondsOfRun(*session); round >= 0)
      times.push_back(time);
  std::sort(times.begin(), times.end());
  auto each = [&](size_t i) { return times[i] * 1e6 / std::max(1U, c.count); };
  std::printf("| %s | %s | %.3g | %.3g |\n", c.name, transport.c_str(), each(0),
              each(times.size() / 2));
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
      understood &= (rounds = static_cast<int>(std::strtol(argv[i], nullptr, 10))) > 0;
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
