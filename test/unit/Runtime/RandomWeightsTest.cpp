//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/HostTensor.h"
#include "braid/Base/Philox.h"
#include "braid/Base/Weights.h"

#include "Testing.h"
#include "braid/Base/Float16.h"

#include <cmath>
#include <limits>

using namespace braid::runtime;

namespace {

/// The test vectors of Random123, from the authors' implementation.
TEST(Philox, KnownAnswers) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

Parameter parameter(const std::string &tensor, std::vector<int64_t> shape,
                    Init init = Init::normal) {
  std::vector<int64_t> zero(shape.size(), 0);
  Parameter result;
  result.name = "p";
  result.init = init;
  result.globalShape = shape;
  result.slices.push_back({tensor, shape, {}, zero, zero, shape});
  return result;
}

HostTensor read(const Parameter &parameter, const Box &box, uint64_t seed = 7) {
  HostTensor tensor = HostTensor::zeros(parameter.dtype, box.sizes);
  Status status = WeightSource::random(seed)->read(parameter, box, tensor.data.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return tensor;
}
HostTensor readAll(const Parameter &parameter, uint64_t seed = 7) {
  return read(parameter,
              {std::vector<int64_t>(parameter.globalShape.size(), 0), parameter.globalShape}, seed);
}

/// The definition in RandomWeights.cpp, implemented independently for one element.
double expected(uint64_t seed, const std::string &name, uint64_t index) {
  uint64_t hash = 14695981039346656037u;
  for (unsigned char c : name)
    hash = (hash ^ c) * 1099511628211u;
  uint64_t block = index / 4;
  auto w =
      philox4x32({uint32_t(block), uint32_t(block >> 32), uint32_t(hash), uint32_t(hash >> 32)},
                 {uint32_t(seed), uint32_t(seed >> 32)});
  size_t pair = index % 4 / 2;
  double u = (w[2 * pair] + 1.0) / 4294967296.0, v = w[2 * pair + 1] / 4294967296.0;
  double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::acos(-1.0) * v;
  return 0.02 * radius * (index % 2 ? std::sin(angle) : std::cos(angle));
}

TEST(RandomWeights, FollowTheirDefinition) {
  HostTensor tensor = readAll(parameter("encoder.weight", {3, 5}), 0x123456789abcdef0);
  for (size_t i = 0; i < 15; ++i)
    EXPECT_FLOAT_EQ(tensor.as<float>()[i],
                    float(expected(0x123456789abcdef0, "encoder.weight", i)));
}

TEST(RandomInputs, FollowTheirDefinition) {
  Result<HostTensor> floats = randomInput({"x", DType::f32, {3, 5}, {}}, 0x123456789abcdef0);
  ASSERT_OK(floats);
  for (size_t i = 0; i < 15; ++i)
    EXPECT_FLOAT_EQ(floats->as<float>()[i], float(expected(0x123456789abcdef0, "x", i) * 50));

  EntryValue ids{"ids", DType::i64, {40, 50}, {}};
  EXPECT_ERROR(randomInput(ids, 1),
               "input 'ids' i64 [40, 50] has no random values: the model gives "
               "no upper bound");
  ids.below = 61;
  Result<HostTensor> drawn = randomInput(ids, 1);
  ASSERT_OK(drawn);
  std::vector<int64_t> counts(61);
  for (int64_t i = 0; i < 2000; ++i)
    ++counts.at(static_cast<size_t>(drawn->as<int64_t>()[i]));
  // The expected count is 33, with a deviation of 5.7.
  EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 5);
  EXPECT_LT(*std::max_element(counts.begin(), counts.end()), 61);
  EXPECT_EQ(randomInput(ids, 1)->data, drawn->data);
  EXPECT_NE(randomInput(ids, 2)->data, drawn->data);
  // Values depend on the element's index, not on its type or the shape.
  ids.dtype = DType::i32;
  ids.globalShape = {7};
  Result<HostTensor> narrow = randomInput(ids, 1);
  ASSERT_OK(narrow);
  for (int64_t i = 0; i < 7; ++i)
    EXPECT_EQ(narrow->as<int32_t>()[i], drawn->as<int64_t>()[i]);
}

TEST(RandomWeights, AreNormal) {
  const int64_t count = 200000;
  HostTensor tensor = readAll(parameter("x", {count}));
  double sum = 0, squares = 0, fourth = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = tensor.as<float>()[i] / 0.02;
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
  }
  // Five standard errors.
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(double(count)));
  EXPECT_NEAR(squares / count, 1, 5 * std::sqrt(2.0 / count));
  EXPECT_NEAR(fourth / count, 3, 5 * std::sqrt(96.0 / count));
}

TEST(RandomWeights, DependOnSeedAndName) {
  HostTensor base = readAll(parameter("x", {64}));
  EXPECT_EQ(readAll(parameter("x", {64})).data, base.data);
  EXPECT_NE(readAll(parameter("y", {64})).data, base.data);
  EXPECT_NE(readAll(parameter("x", {64}), 8).data, base.data);
  EXPECT_NE(readAll(parameter("x", {64}), uint64_t(7) | uint64_t(1) << 32).data, base.data);
  Parameter renamed = parameter("x", {64});
  renamed.name = "q";
  EXPECT_EQ(readAll(renamed).data, base.data) << "the checkpoint's name counts";
}

TEST(RandomWeights, EveryBoxSeesTheSameTensor) {
  Parameter whole = parameter("x", {6, 10});
  HostTensor all = readAll(whole);
  for (const Box &box : {Box{{0, 0}, {3, 10}}, Box{{3, 0}, {3, 10}}, Box{{0, 5}, {6, 5}},
                         Box{{2, 3}, {3, 1}}, Box{{5, 9}, {1, 1}}, Box{{1, 2}, {4, 7}}})
    EXPECT_EQ(read(whole, box).data, extractBox(all, box).data);
}

TEST(RandomWeights, PermutationAndPlaceDoNotMatter) {
  HostTensor tensor = readAll(parameter("x", {4, 6}));
  Parameter moved;
  moved.name = "p";
  moved.globalShape = {8, 5};
  // Columns 1..3 of the transposed tensor (6 x 4), rows 2..5, at (3, 1).
  moved.slices.push_back({"x", {4, 6}, {1, 0}, {2, 1}, {3, 1}, {4, 3}});
  HostTensor all = readAll(moved);
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < 5; ++j) {
      bool inside = i >= 3 && i < 7 && j >= 1 && j < 4;
      float want = inside ? tensor.as<float>()[(j - 1 + 1) * 6 + (i - 3 + 2)] : 0;
      EXPECT_EQ(all.as<float>()[i * 5 + j], want) << i << " " << j;
    }
}

TEST(RandomWeights, OnesZerosAndPadding) {
  Parameter ones = parameter("x", {3}, Init::ones);
  ones.globalShape = {4};
  HostTensor tensor = readAll(ones);
  EXPECT_EQ(std::vector<float>(tensor.as<float>(), tensor.as<float>() + 4),
            (std::vector<float>{1, 1, 1, 0}));
  HostTensor zeros = readAll(parameter("x", {3}, Init::zeros));
  EXPECT_EQ(zeros.data, HostTensor::zeros(DType::f32, {3}).data);
  HostTensor scalar = readAll(parameter("x", {}, Init::ones));
  EXPECT_EQ(scalar.as<float>()[0], 1);
}

TEST(RandomWeights, Types) {
  Parameter p = parameter("x", {9});
  HostTensor f32 = readAll(p);
  for (DType type : {DType::f16, DType::bf16, DType::f64}) {
    p.dtype = type;
    HostTensor other = readAll(p);
    for (size_t i = 0; i < 9; ++i) {
      float value = f32.as<float>()[i];
      if (type == DType::f16)
        EXPECT_EQ(other.as<uint16_t>()[i], floatToF16(value));
      else if (type == DType::bf16)
        EXPECT_EQ(other.as<uint16_t>()[i], floatToBf16(value));
      else
        EXPECT_EQ(static_cast<float>(other.as<double>()[i]), value);
    }
  }
  p.dtype = DType::i64;
  int64_t out[9];
  EXPECT_ERROR(WeightSource::random(1)->read(p, {{0}, {9}}, out),
               "parameter 'p' of type i64 expects ones or zeros as random weights, got normal");
  p.init = Init::ones;
  EXPECT_OK(WeightSource::random(1)->read(p, {{0}, {9}}, out));
  EXPECT_EQ(out[8], 1);
}

TEST(RandomWeights, Describe) {
  EXPECT_EQ(WeightSource::random(7)->describe(), "random weights (seed 7)");
  EXPECT_TRUE(WeightSource::random(7)->tensors().empty());
}

} // namespace
