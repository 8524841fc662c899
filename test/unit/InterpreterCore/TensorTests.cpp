//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include <cstring>
#include <limits>

using namespace braid::interp;
using namespace braid::interp::testing;

TEST(Tensor, RoundsToNearestEven) {
  EXPECT_EQ(roundTo(DType::f32, 0.1), static_cast<double>(0.1f));
  EXPECT_EQ(roundTo(DType::f32, 16777217.0), 16777216.0); // halfway, to even
  EXPECT_EQ(roundTo(DType::f16, 2049.0), 2048.0);
  EXPECT_EQ(roundTo(DType::f16, 2051.0), 2052.0);
  EXPECT_EQ(roundTo(DType::bf16, 257.0), 256.0);
  EXPECT_EQ(roundTo(DType::bf16, 259.0), 260.0);
  // Rounding twice, through f32, would give 1.
  EXPECT_EQ(roundTo(DType::bf16, 1.00390625 + 1e-12), 1.0078125);
}

TEST(Tensor, RoundsAtTheEndsOfTheRange) {
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(roundTo(DType::f16, 65519.9), 65504.0);
  EXPECT_EQ(roundTo(DType::f16, 65520.0), infinity);
  EXPECT_EQ(roundTo(DType::f32, -3.5e38), -infinity);
  // The smallest subnormal.
  EXPECT_EQ(roundTo(DType::f16, std::ldexp(1.0, -24)), std::ldexp(1.0, -24));
  EXPECT_EQ(roundTo(DType::f16, std::ldexp(1.0, -25)), 0.0); // halfway to it
  EXPECT_EQ(roundTo(DType::f16, std::ldexp(1.5, -25)), std::ldexp(1.0, -24));
  EXPECT_TRUE(std::isnan(roundTo(DType::f16, std::nan(""))));
}

TEST(Tensor, EveryHalfSurvivesTheWayThroughMemory) {
  for (DType type : {DType::f16, DType::bf16}) {
    braid::runtime::HostTensor host;
    host.dtype = type;
    host.shape = {65536};
    host.data.resize(2 * 65536);
    for (uint32_t i = 0; i < 65536; ++i) {
      auto bits = static_cast<uint16_t>(i);
      std::memcpy(host.data.data() + 2 * i, &bits, 2);
    }
    Tensor tensor = Tensor::fromHost(host);
    braid::runtime::HostTensor back = tensor.toHost();
    for (uint32_t i = 0; i < 65536; ++i) {
      if (std::isnan(tensor.floats()[i]))
        continue; // NaN payloads are not kept
      uint16_t bits;
      std::memcpy(&bits, back.data.data() + 2 * i, 2);
      ASSERT_EQ(bits, i);
    }
  }
}

TEST(Tensor, HostRoundTrip) {
  Tensor values = floats({2, 2}, {1.5, -0.25, 3e10, 0.1});
  Tensor back = Tensor::fromHost(values.toHost());
  EXPECT_EQ(back.typeString(), "f32[2, 2]");
  expectEqual(back, {2, 2}, {1.5, -0.25, static_cast<double>(3e10f), static_cast<double>(0.1f)});
  EXPECT_EQ(firstDifference(back, values.roundedToStorage()), -1);
  Tensor ids = Tensor::ofInts(DType::i32, {3}, {-1, 0, 7});
  EXPECT_EQ(firstDifference(Tensor::fromHost(ids.toHost()), ids), -1);
}

TEST(Tensor, BoxesOfARank3Tensor) {
  std::vector<double> values(24);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(i);
  Tensor whole = floats({2, 3, 4}, values);
  braid::runtime::Box left{{0, 1, 0}, {2, 2, 2}}, right{{0, 1, 2}, {2, 2, 2}},
      top{{0, 0, 0}, {2, 1, 4}};
  expectEqual(extractBox(whole, left), {2, 2, 2}, {4, 5, 8, 9, 16, 17, 20, 21});
  Tensor joined = assemble(DType::f32, {2, 3, 4},
                           {{left, extractBox(whole, left)},
                            {right, extractBox(whole, right)},
                            {top, extractBox(whole, top)}});
  EXPECT_EQ(firstDifference(joined, whole), -1);
  expectEqual(extractBox(floats({}, {3}), {{}, {}}), {}, {3});
}

TEST(Tensor, Differences) {
  double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(firstDifference(floats({3}, {1, nan, 2}), floats({3}, {1, nan, 3})), 2);
  EXPECT_DOUBLE_EQ(relativeL2(floats({2}, {3, 5}), floats({2}, {3, 4})), 0.2);
  EXPECT_EQ(relativeL2(floats({1}, {0.5}), floats({1}, {0})), 0.5);
  EXPECT_EQ(relativeL2(floats({2}, {nan, 1}), floats({2}, {nan, 1})), infinity);
  EXPECT_EQ(relativeL2(floats({2}, {infinity, 1}), floats({2}, {infinity, 1})), 0);
  EXPECT_EQ(relativeL2(floats({2}, {-infinity, 1}), floats({2}, {infinity, 1})), infinity);
}
