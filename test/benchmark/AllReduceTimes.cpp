//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Times all_reduces of ranks that are processes of this host (shm), by size. A program repeats one;
// the time of a run over the repetitions is that of one of them. all_reduce.py compares it with
// Open MPI, and with a floor: what as many threads take to move the same bytes without waiting for
// each other.
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Sync/HostMemory.h"
#include "test/unit/Runtime/ProgramBuilder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#if defined(__linux__)
#include <pthread.h>
#endif

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

[[noreturn]] void fail(const std::string &message) {
  std::fprintf(stderr, "all_reduce times: error: %s\n", message.c_str());
  std::exit(1);
}

/// Median and least seconds of one all_reduce of f32 out of place.
std::pair<double, double> measure(int64_t ranks, int64_t bytes, uint32_t repetitions, int rounds) {
  ProgramBuilder b({{"tp", ranks}});
  auto p = b.procedure("main", 0, 0, 2 * static_cast<uint64_t>(bytes), 2 * repetitions);
  const V input = symmetric(0, DType::f32, {bytes / 4});
  const V sum = symmetric(static_cast<uint64_t>(bytes), DType::f32, {bytes / 4});
  for (uint32_t i = 0; i < repetitions; ++i) {
    p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {input}, {sum}, 0, 2 * i, 2 * i + 1);
    p.wait("sum", 2 * i + 1);
  }
  WorldOptions options;
  options.transport = "shm";
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

/// dest[i] = the sum of sources[...][i], of a multiple of 16 floats, aligned by 64 bytes. Stores go
/// around the caches, as it is not said that they would keep what is written.
void sumPastCaches(float *dest, const std::vector<const float *> &sources, int64_t count) {
#if defined(__x86_64__)
  for (int64_t i = 0; i < count; i += 16) {
    __m128 sums[4];
    for (int64_t j = 0; j < 4; ++j)
      sums[j] = _mm_load_ps(sources[0] + i + 4 * j);
    for (size_t s = 1; s < sources.size(); ++s)
      for (int64_t j = 0; j < 4; ++j)
        sums[j] = _mm_add_ps(sums[j], _mm_load_ps(sources[s] + i + 4 * j));
    for (int64_t j = 0; j < 4; ++j)
      _mm_stream_ps(dest + i + 4 * j, sums[j]);
  }
  _mm_sfence();
#else
  for (int64_t i = 0; i < count; ++i) {
    float sum = sources[0][i];
    for (size_t s = 1; s < sources.size(); ++s)
      sum += sources[s][i];
    dest[i] = sum;
  }
#endif
}

/// The same of the memory traffic of an all_reduce in which each byte is read and written as often
/// as it must be: each rank sums its part of all inputs, and copies the parts of the others.
std::pair<double, double> measureFloor(int64_t ranks, int64_t bytes, uint32_t repetitions,
                                       int rounds) {
  const int64_t part = bytes / 4 / ranks / 16 * 16;
  if (part == 0)
    fail("the floor expects at least 64 bytes for each rank");
  // In huge pages, as symmetric memory is.
  struct Memory {
    explicit Memory(int64_t count) {
      if (Status status = memory.map(static_cast<size_t>(count) * 4); !status.ok())
        fail(status.message());
      floats = reinterpret_cast<float *>(memory.data());
      std::fill_n(floats, count, 1.0F);
    }
    HostMemory memory;
    float *floats = nullptr;
  };
  std::vector<std::unique_ptr<Memory>> inputs, outputs;
  for (int64_t r = 0; r < ranks; ++r) {
    inputs.push_back(std::make_unique<Memory>(part * ranks));
    outputs.push_back(std::make_unique<Memory>(part * ranks));
  }
  std::vector<double> times;
  for (int round = -2; round < rounds; ++round) {
    std::atomic<int64_t> ready{0};
    std::atomic<double> seconds{0};
    auto run = [&](int64_t rank) {
#if defined(__linux__)
      cpu_set_t cpu;
      CPU_ZERO(&cpu);
      CPU_SET(static_cast<size_t>(rank) % std::max(1U, std::thread::hardware_concurrency()), &cpu);
      pthread_setaffinity_np(pthread_self(), sizeof cpu, &cpu);
#endif
      float *output = outputs[static_cast<size_t>(rank)]->floats;
      std::vector<const float *> own;
      for (const auto &input : inputs)
        own.push_back(input->floats + rank * part);
      for (++ready; ready < ranks;)
        std::this_thread::yield();
      const auto begin = std::chrono::steady_clock::now();
      for (uint32_t i = 0; i < repetitions; ++i) {
        sumPastCaches(output + rank * part, own, part);
        for (int64_t peer = 0; peer < ranks; ++peer)
          if (peer != rank)
            sumPastCaches(output + peer * part,
                          {outputs[static_cast<size_t>(peer)]->floats + peer * part}, part);
      }
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
      for (double most = seconds; most < time.count();)
        seconds.compare_exchange_weak(most, time.count());
    };
    std::vector<std::thread> threads;
    for (int64_t r = 0; r < ranks; ++r)
      threads.emplace_back(run, r);
    for (std::thread &thread : threads)
      thread.join();
    if (round >= 0)
      times.push_back(seconds / repetitions);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[0]};
}

} // namespace

int main(int argc, char **argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (argc < 4 || (what != "shm" && what != "floor")) {
    std::fprintf(stderr, "usage: BraidAllReduceTimes shm|floor RANKS ROUNDS BYTES...\n");
    return 1;
  }
  const int64_t ranks = std::strtol(argv[2], nullptr, 10);
  const int rounds = std::max(1, static_cast<int>(std::strtol(argv[3], nullptr, 10)));
  for (int i = 4; i < argc; ++i) {
    const int64_t bytes = std::max(4L, std::strtol(argv[i], nullptr, 10) / 4 * 4);
    // About as many bytes for each size.
    const auto repetitions =
        static_cast<uint32_t>(std::clamp<int64_t>((int64_t(64) << 20) / bytes, 4, 1000));
    const auto [median, least] = what == "floor" ? measureFloor(ranks, bytes, repetitions, rounds)
                                                 : measure(ranks, bytes, repetitions, rounds);
    std::printf("%lld %.3f %.3f\n", static_cast<long long>(bytes), median * 1e6, least * 1e6);
    std::fflush(stdout);
  }
  return 0;
}
