//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks that run without a program, for tests of the threads transport.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_TRANSPORTTESTING_H
#define BRAID_TEST_UNIT_RUNTIME_TRANSPORTTESTING_H

#include "CollectiveValues.h"
#include "Streams.h"
#include "Testing.h"
#include "braid/Base/Float16.h"
#include "runtime/lib/Executor/Commands.h"

#include <chrono>
#include <cmath>
#include <gmock/gmock.h>
#include <list>
#include <mutex>
#include <random>
#include <thread>

namespace braid::runtime::testing {

/// The seed, which is logged, or read from the environment to repeat a failure.
inline uint32_t testSeed() {
  static const uint32_t seed = [] {
    const char *given = std::getenv("BRAID_TEST_SEED");
    return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device()();
  }();
  return seed;
}

class TestWorld {
public:
  TestWorld(int64_t ranks, size_t bytes, double timeLimit = 60)
      : transport(createThreadsTransport(ranks)),
        control(ranks, computeAndCommunication(), timeLimit, {50, false}), ranks(ranks) {
    EXPECT_TRUE(transport->allocate(bytes).ok());
    control.begin();
  }
  /// Runs work(rank) on a thread per rank.
  template <typename Work> void run(Work work) {
    std::vector<std::thread> threads;
    for (int64_t r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] { work(r); });
    for (std::thread &t : threads)
      t.join();
  }
  /// Publishes the command for messages, as an executor's queue does. The command is kept as long
  /// as the world, like a program's commands: another rank may read it after this one has failed.
  bool collective(int64_t rank, const Command &given) {
    const Command *command = nullptr;
    {
      std::lock_guard<std::mutex> lock(keeping);
      Command &mine = kept.emplace_back(given);
      Collective &itsCollective = std::get<CollectiveCommand>(mine.op).collective;
      if (!itsCollective.plan)
        EXPECT_OK(transport->plan(itsCollective));
      command = &mine;
    }
    QueueState &self = control.queue(rank, kCommunicationQueue);
    self.at.store(command);
    bool ok = transport->run(std::get<CollectiveCommand>(command->op).collective,
                             transport->heap(rank), control, self);
    self.progress.fetch_add(1);
    if (ok)
      self.at.store(nullptr);
    return ok;
  }
  template <typename T> T *memory(int64_t rank, uint64_t offset) {
    return reinterpret_cast<T *>(transport->heap(rank).peer(rank, offset));
  }

  std::unique_ptr<Transport> transport;
  RunControl control;
  int64_t ranks;

private:
  std::mutex keeping;
  std::list<Command> kept;
};

inline Command command(TestWorld &world, CollectiveKind kind, const std::vector<int64_t> &group,
                       int64_t rank, const std::vector<Part> &values,
                       ReduceKind reduce = ReduceKind::sum, const std::string &name = "c",
                       int64_t dim = 0, int64_t concatDim = 0) {
  CollectiveCommand op{};
  op.collective.kind = kind;
  op.collective.reduce = reduce;
  op.collective.dim = dim;
  op.collective.concatDim = concatDim;
  for (const Part &part : values)
    op.collective.values.push_back(
        valueOf(op.collective, static_cast<int64_t>(group.size()), part));
  op.collective.group = world.transport->group(group, kCommunicationQueue);
  op.collective.queue = kCommunicationQueue;
  op.collective.position = std::find(group.begin(), group.end(), rank) - group.begin();
  op.collective.name = name;
  op.collective.role = "role";
  Command c;
  c.name = name;
  c.operation = braid::runtime::name(kind);
  c.op = std::move(op);
  return c;
}

template <typename T, DType kType> struct Element {
  using Storage = T;
  static constexpr DType type = kType;
};
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

inline double toDouble(float x) { return static_cast<double>(x); }
inline double toDouble(double x) { return x; }
inline double toDouble(int32_t x) { return static_cast<double>(x); }
inline double toDouble(int64_t x) { return static_cast<double>(x); }
inline double toDouble(int8_t x) { return static_cast<double>(x); }
inline double toDouble(Half x) { return static_cast<double>(f16ToFloat(x.bits)); }
inline double toDouble(Brain x) { return static_cast<double>(bf16ToFloat(x.bits)); }
inline void fromDouble(double x, float &out) { out = static_cast<float>(x); }
inline void fromDouble(double x, double &out) { out = x; }
inline void fromDouble(double x, int32_t &out) { out = static_cast<int32_t>(x); }
inline void fromDouble(double x, int64_t &out) { out = static_cast<int64_t>(x); }
inline void fromDouble(double x, int8_t &out) { out = static_cast<int8_t>(x); }
inline void fromDouble(double x, Half &out) { out.bits = floatToF16(static_cast<float>(x)); }
inline void fromDouble(double x, Brain &out) { out.bits = floatToBf16(static_cast<float>(x)); }

/// A rank's contribution at element i: small integers, so that every type and every order of sums
/// is exact.
inline double contribution(int64_t rank, int64_t i, int round) {
  return static_cast<double>((rank * 7 + i * 3 + round) % 11 - 5);
}

inline double expectedReduce(ReduceKind reduce, const std::vector<int64_t> &group, int64_t i,
                             int round) {
  double result = contribution(group[0], i, round);
  for (size_t k = 1; k < group.size(); ++k) {
    double x = contribution(group[k], i, round);
    result = reduce == ReduceKind::sum   ? result + x
             : reduce == ReduceKind::max ? std::max(result, x)
                                         : std::min(result, x);
  }
  return result;
}

/// Every element type.
using Types = ::testing::Types<Element<float, DType::f32>, Element<Half, DType::f16>,
                               Element<Brain, DType::bf16>, Element<double, DType::f64>,
                               Element<int32_t, DType::i32>, Element<int64_t, DType::i64>,
                               Element<int8_t, DType::i8>>;

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_TRANSPORTTESTING_H
