//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Times all_reduces of the transports of one host, by size. A program repeats one; the time of a
// run over the repetitions is that of one of them. all_reduce.py compares it with Open MPI.
//
//===----------------------------------------------------------------------===//
#include "test/unit/Runtime/ProgramBuilder.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

[[noreturn]] void fail(const std::string &message) {
  std::fprintf(stderr, "all_reduce times: error: %s\n", message.c_str());
  std::exit(1);
}

/// Median and least seconds of one all_reduce of f32 out of place.
std::pair<double, double> measure(const std::string &transport, int64_t ranks, int64_t bytes,
                                  uint32_t repetitions, int rounds) {
  ProgramBuilder b({{"tp", ranks}});
  auto p = b.procedure("main", 0, 0, 2 * static_cast<uint64_t>(bytes), 2 * repetitions);
  const V input = symmetric(0, DType::f32, {bytes / 4});
  const V sum = symmetric(static_cast<uint64_t>(bytes), DType::f32, {bytes / 4});
  for (uint32_t i = 0; i < repetitions; ++i) {
    p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {input}, {sum}, 0, 2 * i, 2 * i + 1);
    p.wait("sum", 2 * i + 1);
  }
  WorldOptions options;
  options.transport = transport;
  // Each on a core of its own, as mpirun does, where there are so many.
  options.pin = ranks <= static_cast<int64_t>(std::thread::hardware_concurrency());
  Result<std::unique_ptr<Session>> session = b.session(options);
  if (!session.ok())
    fail(session.status().message());
  std::vector<double> times;
  for (int round = -2; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    if (Status status = (*session)->run(); !status.ok())
      fail(status.message());
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    if (round >= 0)
      times.push_back(time.count() / repetitions);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[0]};
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: BraidAllReduceTimes shm|threads RANKS ROUNDS BYTES...\n");
    return 1;
  }
  const int64_t ranks = std::strtol(argv[2], nullptr, 10);
  const int rounds = std::max(1, static_cast<int>(std::strtol(argv[3], nullptr, 10)));
  for (int i = 4; i < argc; ++i) {
    const int64_t bytes = std::max(4L, std::strtol(argv[i], nullptr, 10) / 4 * 4);
    // About as many bytes for each size.
    const auto repetitions =
        static_cast<uint32_t>(std::clamp<int64_t>((int64_t(64) << 20) / bytes, 4, 1000));
    const auto [median, least] = measure(argv[1], ranks, bytes, repetitions, rounds);
    std::printf("%lld %.3f %.3f\n", static_cast<long long>(bytes), median * 1e6, least * 1e6);
    std::fflush(stdout);
  }
  return 0;
}
