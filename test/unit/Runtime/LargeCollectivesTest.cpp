//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives of more bytes than the caches have, whose copies and sums go around them, in memory
// that begins within a line of a cache and does not end with one.
//
//===----------------------------------------------------------------------===//
#include "ProgramBuilder.h"
#include "Testing.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

using Kind = fb::CollectiveKind;
using Case = std::tuple<std::string, int64_t, Kind>; ///< transport, ranks

class Large : public ::testing::TestWithParam<Case> {};

/// Small integers, so that every order of sums is exact.
float contribution(int64_t rank, int64_t i) {
  return static_cast<float>((rank * 7 + i * 3) % 11 - 5);
}

} // namespace

TEST_P(Large, EveryElementIsExact) {
  const auto &[transport, ranks, kind] = GetParam();
  const bool scatters = kind == Kind::reduce_scatter, gathers = kind == Kind::all_gather;
  // 33 MiB of inputs and outputs or more, on all ranks together.
  const int64_t part = (int64_t(33) << 20) / 4 / ranks / (scatters || gathers ? ranks + 1 : 2) + 3;
  const int64_t inputs = scatters ? part * ranks : part, outputs = gathers ? part * ranks : part;
  ProgramBuilder b({{"r", ranks}});
  const Axes all{"r"};
  b.operand("x", DType::f32, {ranks, inputs}, {all, {}});
  b.result("y", DType::f32, {ranks, outputs}, {all, {}});
  const auto behind = (static_cast<uint64_t>(inputs) * 4 + 4095) / 4096 * 4096 + 4;
  auto p = b.procedure("main", 2, 0, behind + static_cast<uint64_t>(outputs) * 4, 2);
  const V input = symmetric(0, DType::f32, {inputs}),
          output = symmetric(behind, DType::f32, {outputs});
  p.copy("in", argument(0, DType::f32, {inputs}), input);
  p.start("x", kind, {"r"}, {input}, {output}, 0, 0, 1, "large.0");
  p.wait("x", 1);
  p.copy("out", output, argument(1, DType::f32, {outputs}));
  WorldOptions options;
  options.transport = transport;
  Result<std::unique_ptr<Session>> session = b.session(options);
  ASSERT_OK(session.status());
  HostTensor value = HostTensor::zeros(DType::f32, {ranks, inputs});
  auto *given = reinterpret_cast<float *>(value.data.data());
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t i = 0; i < inputs; ++i)
      *given++ = contribution(rank, i);
  ASSERT_OK((*session)->setInput("x", value));
  ASSERT_OK((*session)->run());
  const Result<HostTensor> result = (*session)->output("y");
  ASSERT_OK(result.status());
  const auto *got = reinterpret_cast<const float *>(result->data.data());
  for (int64_t rank = 0; rank < ranks; ++rank, got += outputs) {
    // Of a reduce only the first rank has the result.
    if (kind == Kind::reduce && rank > 0)
      break;
    for (int64_t i = 0; i < outputs; ++i) {
      float expected = 0;
      if (gathers)
        expected = contribution(i / part, i % part);
      else
        for (int64_t peer = 0; peer < ranks; ++peer)
          expected += contribution(peer, scatters ? rank * part + i : i);
      ASSERT_EQ(got[i], expected) << "element " << i << " of rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    AroundTheCaches, Large,
    ::testing::Combine(::testing::Values("threads", "shm"), ::testing::Values(2, 3),
                       ::testing::Values(Kind::all_reduce, Kind::reduce_scatter, Kind::reduce,
                                         Kind::all_gather)),
    [](const ::testing::TestParamInfo<Case> &info) {
      return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param)) + "_" +
             fb::EnumNameCollectiveKind(std::get<2>(info.param));
    });
