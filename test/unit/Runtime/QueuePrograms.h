//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs by hand, without kernels, for two ranks that hold one row of "x" each: with two
// communication queues, and with events that cross calls.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_QUEUEPROGRAMS_H
#define BRAID_TEST_UNIT_RUNTIME_QUEUEPROGRAMS_H

#include "ProgramBuilder.h"

#include <functional>
#include <map>

namespace braid::runtime::testing {

constexpr int64_t kRanks = 2, kWidth = 4;

/// The global values of the results of an input.
using Expected =
    std::map<std::string, std::function<std::vector<float>(const std::vector<float> &)>>;

inline std::vector<float> inputOf(int round) {
  std::vector<float> x;
  for (int64_t i = 0; i < kRanks * kWidth; ++i)
    x.push_back(static_cast<float>(100 * round + i * i + 1));
  return x;
}

/// The sum of all ranks' rows, times `factor`, on every rank.
inline std::vector<float> sumOfRows(const std::vector<float> &x, float factor) {
  std::vector<float> sum(static_cast<size_t>(kRanks * kWidth));
  for (size_t i = 0; i < sum.size(); ++i)
    for (int64_t rank = 0; rank < kRanks; ++rank)
      sum[i] += factor * x[i % static_cast<size_t>(kWidth) + static_cast<size_t>(rank * kWidth)];
  return sum;
}

inline ProgramBuilder onRows(const std::vector<std::string> &results) {
  ProgramBuilder b({{"tp", kRanks}});
  b.operand("x", DType::f32, {kRanks, kWidth}, {{"tp"}, {}});
  for (const std::string &result : results)
    b.result(result, DType::f32, {kRanks, kWidth}, {{"tp"}, {}});
  return b;
}

/// Two queues run two all_reduces each over the same ranks, with nothing that orders the queues;
/// the second of each queue reads the first one's result without an event. The compute queue waits
/// for the last ones.
inline ProgramBuilder twoInFlight(Expected &expected) {
  ProgramBuilder b = onRows({"y", "z"});
  const Queue queues[] = {kCommunicationQueue, b.queue("communication 1")};
  auto p = b.procedure("main", 3, 0, 512, 5);
  auto memory = [](uint64_t place) { return symmetric(64 * place, DType::f32, {kWidth}); };
  const V x = argument(0, DType::f32, {kWidth});
  p.copy("first", x, memory(0));
  p.copy("second", x, memory(1));
  p.record(kComputeQueue, 0, "ready");
  for (uint32_t q = 0; q < 2; ++q) {
    const std::string name = q == 0 ? "first" : "second";
    p.await(queues[q], 0, "ready");
    p.collective(queues[q], name, fb::CollectiveKind::all_reduce, {"tp"}, {memory(q)},
                 {memory(2 + q)}, 0, 1 + q);
    p.collective(queues[q], name + " again", fb::CollectiveKind::all_reduce, {"tp"},
                 {memory(2 + q)}, {memory(4 + q)}, 0, 3 + q);
    if (q == 1) // the largest row
      p.last(queues[q]).reduce = fb::ReduceKind::max;
  }
  p.wait("first", 3);
  p.copy("y", memory(4), argument(1, DType::f32, {kWidth}));
  p.wait("second", 4);
  p.copy("z", memory(5), argument(2, DType::f32, {kWidth}));
  expected["y"] = [](const auto &x) { return sumOfRows(x, 2); };
  expected["z"] = [](const auto &x) { return sumOfRows(x, 1); };
  return b;
}

/// Rank 1's receive begins before the all_reduce of the other queue, whose result rank 0 sends: on
/// one queue this is a deadlock. The send stands on the queue of the all_reduce.
inline ProgramBuilder receiveBeside(Expected &expected) {
  ProgramBuilder b = onRows({"y"});
  const Queue receiving = b.queue("communication 1");
  auto p = b.procedure("main", 2, 0, 256, 5);
  const V x = symmetric(0, DType::f32, {kWidth}), sum = symmetric(64, DType::f32, {kWidth}),
          got = symmetric(128, DType::f32, {kWidth});
  p.start("receive", fb::CollectiveKind::recv, {"tp"}, {}, {got}, 0, 0, 1, "test", receiving);
  p.last(receiving).pairs = {0, 1};
  p.copy("in", argument(0, DType::f32, {kWidth}), x);
  p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {x}, {sum}, 0, 2, 3);
  p.collective(kCommunicationQueue, "send", fb::CollectiveKind::send, {"tp"}, {sum}, {}, 0, 4);
  p.last().pairs = {0, 1};
  p.wait("received", 1);
  p.wait("sent", 4);
  p.copy("out", got, argument(1, DType::f32, {kWidth}));
  // Rank 0 is no target and gets zeros.
  expected["y"] = [](const auto &x) {
    std::vector<float> y = sumOfRows(x, 1);
    std::fill(y.begin(), y.begin() + kWidth, 0.0F);
    return y;
  };
  return b;
}

/// The caller starts a collective whose end a callee of a callee awaits, by way of event arguments;
/// that callee starts another one, for which the caller waits after the call.
inline ProgramBuilder eventsAcrossCalls(Expected &expected) {
  ProgramBuilder b = onRows({"y", "z"});
  constexpr DType f32 = DType::f32;
  // Events: 0 and 1 of its collective; 2 and 3 of the callees.
  auto main = b.procedure("main", 3, 64, 256, 4);
  auto outer = b.procedure("outer", 3, 64, 0, 2);
  auto inner = b.procedure("inner", 3, 64, 0, 2);
  const V x = symmetric(0, f32, {kWidth}), sum = symmetric(64, f32, {kWidth}),
          twice = symmetric(128, f32, {kWidth});
  main.copy("in", argument(0, f32, {kWidth}), x);
  main.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {x}, {sum}, 0, 0, 1);
  main.call("outer", 1, {sum, twice, argument(1, f32, {kWidth})}, 0, 0, 2, {1});
  main.wait("twice", 3);
  main.copy("z", twice, argument(2, f32, {kWidth}));

  const V a0 = argument(0, f32, {kWidth}), a1 = argument(1, f32, {kWidth}),
          a2 = argument(2, f32, {kWidth});
  b.program.procedures[1]->num_event_arguments = 1;
  b.program.procedures[1]->symmetric_arguments = {0, 1};
  outer.call("inner", 2, {a0, a1, a2}, 0, 0, 0, {2}); // its own argument
  b.program.procedures[2]->num_event_arguments = 1;
  b.program.procedures[2]->symmetric_arguments = {0, 1};
  inner.wait("sum", 2);
  inner.copy("y", a0, a2);
  inner.start("twice", fb::CollectiveKind::all_reduce, {"tp"}, {a0}, {a1}, 0, 0, 1);
  expected["y"] = [](const auto &x) { return sumOfRows(x, 1); };
  expected["z"] = [](const auto &x) { return sumOfRows(x, 2); };
  return b;
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_QUEUEPROGRAMS_H
