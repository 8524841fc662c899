//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Expected values without a comment were computed with NumPy in f64 from the same sines.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "braid/Interpreter/Core/Kernels.h"

#include <cmath>
#include <gmock/gmock.h>

using namespace braid::interp;
using namespace braid::interp::testing;

TEST(Kernels, EmbeddingPicksRows) {
  Tensor table = floats({3, 2}, {0, 1, 10, 11, 20, 21});
  expectEqual(embedding(ints({1, 3}, {2, 0, 2}), table), {1, 3, 2}, {20, 21, 0, 1, 20, 21});
}

TEST(Kernels, EmbeddingNamesTheBadId) {
  Tensor table = floats({3, 2}, {0, 1, 10, 11, 20, 21});
  expectError(embedding(ints({2, 2}, {0, 1, 3, 0}), table).status(),
              "embedding expects ids from 0 to 2, got 3 at position [1, 0]");
  expectError(embedding(ints({1}, {-1}), table).status(),
              "embedding expects ids from 0 to 2, got -1 at position [0]");
}

TEST(Kernels, EmbeddingOfAPart) {
  Tensor table = floats({2, 1}, {20, 30}); // rows 2 and 3 of 6
  expectEqual(embedding(ints({4}, {3, 0, 2, 5}), table, {1, 3}), {4, 1}, {30, 0, 20, 0});
  expectError(embedding(ints({1}, {6}), table, {1, 3}).status(),
              "embedding expects ids from 0 to 5, got 6 at position [0]");
  // The last row of the last shard is padding.
  expectEqual(embedding(ints({2}, {4, 2}), table, {1, 3, 5}), {2, 1}, {0, 20});
  expectError(embedding(ints({1}, {5}), table, {1, 3, 5}).status(),
              "embedding expects ids from 0 to 4, got 5 at position [0]");
}

namespace {
/// x . w^T (+ bias)
Result<Tensor> linear(const Tensor &x, const Tensor &w, const Tensor *bias) {
  MatmulOperands operands;
  operands.lhs = &x;
  operands.rhs = &w;
  operands.bias = bias;
  operands.transposeRhs = true;
  return matmul(operands);
}
} // namespace

TEST(Kernels, ReduceDims) {
  const double nan = std::nan("");
  Tensor x = floats({2, 2, 2}, {1, -2, 3, 4, -5, 6, 7, nan});
  KernelCall call;
  call.inputs = {&x};
  auto reduced = [&](int64_t kind, int64_t dims, Shape shape) {
    call.integers = {kind, dims};
    call.outputs = {{DType::f32, std::move(shape)}};
    Result<std::vector<Tensor>> result = computeLibraryKernel("reduce_dims", call);
    EXPECT_TRUE(result.ok());
    return std::vector<double>(result->at(0).floats(),
                               result->at(0).floats() + result->at(0).numElements());
  };
  using ::testing::ElementsAre;
  using ::testing::IsNan;
  EXPECT_THAT(reduced(0, 3, {2}), ElementsAre(6, IsNan()));
  EXPECT_THAT(reduced(0, 4, {2, 2}), ElementsAre(-1, 7, 1, IsNan()));
  EXPECT_THAT(reduced(1, 1, {2, 2}), ElementsAre(1, 6, 7, IsNan()));
  EXPECT_THAT(reduced(2, 5, {2}), ElementsAre(-5, IsNan()));
  EXPECT_THAT(reduced(1, 7, {}), ElementsAre(IsNan()));
}

TEST(Kernels, MaximumAndSumOfExponentials) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  Tensor x = floats({5, 2}, {std::log(2.0), std::log(6.0), -inf, 0, -inf, -inf, inf, inf, 1, nan});
  KernelCall call;
  call.inputs = {&x};
  call.integers = {1, 2};
  call.outputs = {{DType::f32, {5}}, {DType::f32, {5}}};
  Result<std::vector<Tensor>> result = computeLibraryKernel("reduce_dims", call);
  ASSERT_TRUE(result.ok());
  auto values = [&](size_t i) {
    return std::vector<double>(result->at(i).floats(), result->at(i).floats() + 5);
  };
  using ::testing::DoubleNear;
  using ::testing::ElementsAre;
  using ::testing::IsNan;
  EXPECT_THAT(values(0), ElementsAre(DoubleNear(std::log(6.0), 1e-6), 0, -inf, inf, IsNan()));
  // Without an element the sum is 0; equal infinities count as one each.
  EXPECT_THAT(values(1), ElementsAre(DoubleNear(4.0 / 3, 1e-6), 1, 0, 2, IsNan()));
}

TEST(Kernels, LinearSmall) {
  // [1 2; 3 4] . [1 0; 0 1; 1 1]^T + [10 20 30], by hand
  Tensor bias = floats({3}, {10, 20, 30});
  expectEqual(linear(floats({2, 2}, {1, 2, 3, 4}), floats({3, 2}, {1, 0, 0, 1, 1, 1}), &bias),
              {2, 3}, {11, 22, 33, 13, 24, 37});
}

TEST(Kernels, LinearAgainstNumPy) {
  Tensor bias = sines(3, {5});
  Result<Tensor> result = linear(sines(1, {2, 3, 4}), sines(2, {5, 4}), &bias);
  expectNear(result, 0,
             {1.653503779135442, -0.566800360329913, -2.719695412696407, 1.832416011175475,
              -0.34301265213064314});
  expectNear(result, 25,
             {2.409442517879586, -2.206812957104888, -1.331666607404691, 1.65787625964271,
              -1.5028678670693352});
}

TEST(Kernels, LinearTilesCoverEveryElement) {
  // Extents below and above the tile sizes, against the sum in its direct form.
  for (int64_t m : {1, 4, 5})
    for (int64_t n : {1, 31, 32, 33, 65}) {
      Tensor x = sines(1, {m, 7}), w = sines(2, {n, 7});
      Result<Tensor> y = linear(x, w, nullptr);
      ASSERT_TRUE(y.ok());
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < 7; ++k)
            sum += x.floats()[i * 7 + k] * w.floats()[j * 7 + k];
          ASSERT_DOUBLE_EQ(y->floats()[i * n + j], sum)
              << m << "x" << n << " at " << i << ", " << j;
        }
    }
}

TEST(Kernels, LinearChecksShapes) {
  expectError(
      linear(sines(1, {2, 4}), sines(1, {5, 3}), nullptr).status(),
      "matmul expects rhs of 4 products with the leading dimensions of f32[2, 4], or none, got "
      "f32[5, 3]");
  Tensor bias = sines(1, {4});
  expectError(linear(sines(1, {2, 4}), sines(1, {5, 4}), &bias).status(),
              "matmul expects a floating-point bias [5], got f32[4]");
}

namespace {
struct Heads : ::testing::Test {
  Tensor query = sines(1, {2, 3, 4, 2}), key = sines(5, {2, 3, 2, 2}),
         value = sines(9, {2, 3, 2, 2});
  AttentionOperands operands() {
    AttentionOperands op;
    op.query = &query;
    op.key = &key;
    op.value = &value;
    op.scale = 0.7;
    return op;
  }
};
} // namespace

TEST_F(Heads, GroupedWithMask) {
  Tensor mask = ints({2, 3}, {1, 1, 0, 0, 1, 1});
  AttentionOperands op = operands();
  op.mask = &mask;
  Result<Tensor> result = attention(op);
  expectNear(result, 8,
             {0.41712135739824685, 0.4098834451118122, 0.41451107404227383, -0.08782289393315512,
              -0.7099664186078112, -0.4928711309776923, -0.35615468876894474, -0.4395575563456318});
  expectNear(result, 40,
             {-0.34718302806114354, 0.054683145135999256, -0.4721754125596128, -0.3571703949130668,
              -0.2137521091273363, 0.5121892981716608, 0.4353140123447027, 0.37835013963582365});
}

TEST_F(Heads, CausalWithLengthAndOffset) {
  Tensor length = ints({2}, {2, 3}), offset = ints({2}, {-1, 1});
  AttentionOperands op = operands();
  op.causal = true;
  op.validLength = &length;
  op.positionOffset = &offset;
  Result<Tensor> result = attention(op);
  // Offset -1 leaves the first query without a key.
  expectNear(result, 0, {0, 0, 0, 0, 0, 0, 0, 0}, 0);
  expectNear(result, 16,
             {0.4146420971773349, -0.0628405314887669, 0.41609194183702986, 0.21360335576562423,
              -0.5433842181065403, -0.467769949106639, 0.4445263824420571, -0.3189081644616302});
  expectNear(result, 24,
             {0.2967829278937072, 0.4209318718369907, 0.0680165186760535, 0.6030487915302865,
              0.682720796214859, 0.09230178259983923, -0.13155783846045643, -0.4391460464680652});
}

/// An offset is data: any value is accepted, and a query then sees all keys or none.
TEST_F(Heads, OffsetsAtTheEndsOfTheirType) {
  Tensor offset = ints({2}, {INT64_MIN, INT64_MAX});
  AttentionOperands op = operands();
  Result<Tensor> whole = attention(op);
  op.causal = true;
  op.positionOffset = &offset;
  Result<Tensor> result = attention(op);
  ASSERT_TRUE(whole.ok() && result.ok());
  const int64_t half = result->numElements() / 2;
  for (int64_t i = 0; i < half; ++i) {
    EXPECT_EQ(result->floats()[i], 0);
    EXPECT_EQ(result->floats()[half + i], whole->floats()[half + i]);
  }
}

TEST(Kernels, CrossAttentionAgainstPyTorch) {
  // Three queries attend to the five keys of another sequence: scaled_dot_product_attention with
  // enable_gqa.
  Tensor query = sines(1, {2, 3, 4, 4}), key = sines(2, {2, 5, 2, 4}),
         value = sines(3, {2, 5, 2, 4});
  Tensor mask = ints({2, 5}, {1, 1, 1, 1, 0, 1, 0, 1, 1, 1});
  AttentionOperands op;
  op.query = &query;
  op.key = &key;
  op.value = &value;
  op.mask = &mask;
  op.scale = 0.5;
  Result<Tensor> result = attention(op);
  expectNear(result, 0,
             {0.4451816611715617, -0.0883943024549057, -0.5407009520555444, -0.49588963990651247,
              -0.11760095740276806});
  expectNear(result, 48,
             {-0.5591996952968635, 0.15848703433956818, 0.730461515504607, 0.6308530480105818,
              -0.3393067111939243});
  EXPECT_EQ(result->shape(), query.shape());
}

TEST_F(Heads, LargeScoresDoNotOverflow) {
  AttentionOperands op = operands();
  op.scale = 1e6;
  Result<Tensor> result = attention(op);
  ASSERT_TRUE(result.ok());
  for (int64_t i = 0; i < result->numElements(); ++i)
    EXPECT_LE(std::fabs(result->floats()[i]), 1.0);
}

TEST_F(Heads, ChecksShapes) {
  Tensor mask = ints({3, 2}, {1, 1, 1, 1, 1, 1}), three = sines(1, {2, 3, 3, 2});
  AttentionOperands op = operands();
  op.mask = &mask;
  expectError(attention(op).status(), "attention expects an integer mask [2, 3], got i64[3, 2]");
  op = operands();
  op.key = op.value = &three;
  expectError(attention(op).status(), "attention expects a number of key heads that divides the 4 "
                                      "query heads, got f32[2, 3, 3, 2]");
}

TEST(Kernels, LayerNorm) {
  expectNear(layerNorm(sines(1, {2, 4}), sines(2, {4}), sines(3, {4}), 1e-5), 0,
             {0.895930729169108, -0.6254114521130454, -0.7982336067378211, 1.2057987714289224,
              -1.113084224749303, -0.826781178646092, -1.504985643946792, -1.3856828005690125});
  // A constant row has variance 0, so the result is the bias.
  expectEqual(layerNorm(floats({1, 2}, {7, 7}), floats({2}, {3, 4}), floats({2}, {5, 6}), 1e-12),
              {1, 2}, {5, 6});
}

TEST(Kernels, Gelu) {
  Tensor x = floats({5}, {-3, -0.5, 0, 0.5, 2});
  expectNear(
      activation("gelu", x), 0,
      {-0.00404969409489031, -0.15426876936299344, 0.0, 0.34573123063700656, 1.9544997361036416});
  expectNear(
      activation("gelu_tanh", x), 0,
      {-0.0036373920817729943, -0.15428599017485606, 0.0, 0.34571400982514394, 1.954597694087775});
}

TEST(Kernels, RmsNorm) {
  // The mean square is 12.5, with epsilon 25: every element is divided by 5.
  expectNear(rmsNorm(floats({1, 2}, {3, 4}), floats({2}, {5, 10}), 12.5), 0, {3, 8});
  expectError(rmsNorm(floats({1, 2}, {3, 4}), floats({1}, {5}), 1).status(),
              "rms_norm expects a floating-point weight [2], got f32[1]");
}

TEST(Kernels, Silu) {
  Tensor x = floats({4}, {0, 1, -1, -1000});
  expectNear(activation("silu", x), 0, {0, 0.7310585786300049, -0.2689414213699951, 0});
}

// PyTorch's results in f64.
TEST(Kernels, Activations) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<double> inputs = {-8, -3, -0.5, 0, 0.5, 2, 8, inf, -inf, nan};
  const std::pair<const char *, std::vector<double>> cases[] = {
      {"gelu",
       {-4.884981308350689e-15, -0.00404969409489031, -0.15426876936299344, 0, 0.34573123063700656,
        1.9544997361036416, 7.999999999999995, inf, nan, nan}},
      {"gelu_tanh",
       {0, -0.0036373920817729943, -0.15428599017485606, 0, 0.34571400982514394, 1.954597694087775,
        8, inf, nan, nan}},
      {"gelu_10",
       {-4.884981308350689e-15, -0.00404969409489031, -0.15426876936299344, 0, 0.34573123063700656,
        1.9544997361036416, 7.999999999999995, 10, nan, nan}},
      {"quick_gelu",
       {-9.766428865730381e-06, -0.01807130970778597, -0.1496115633936199, 0, 0.35038843660638014,
        1.9356586231442083, 7.999990233571134, inf, nan, nan}},
      {"silu",
       {-0.002682801043731825, -0.14227761953270035, -0.1887703343990727, 0, 0.3112296656009273,
        1.7615941559557646, 7.997317198956269, inf, nan, nan}},
      {"relu", {0, 0, 0, 0, 0.5, 2, 8, inf, 0, nan}},
      {"relu2", {0, 0, 0, 0, 0.25, 4, 64, inf, 0, nan}},
      {"relu6", {0, 0, 0, 0, 0.5, 2, 6, 6, 0, nan}},
      {"leaky_relu", {-0.08, -0.03, -0.005, 0, 0.5, 2, 8, inf, -inf, nan}},
      {"mish",
       {-0.002683250882546538, -0.1456474612756246, -0.22074377465173, 0, 0.3752452113048951,
        1.9439589595339946, 7.999998200644843, inf, nan, nan}},
      {"tanh",
       {-0.9999997749296758, -0.9950547536867305, -0.46211715726000974, 0, 0.46211715726000974,
        0.9640275800758169, 0.9999997749296758, 1, -1, nan}},
      {"sigmoid",
       {0.0003353501304664781, 0.04742587317756678, 0.3775406687981454, 0.5, 0.6224593312018546,
        0.8807970779778823, 0.9996646498695336, 1, 0, nan}},
      {"hardswish",
       {0, 0, -0.20833333333333334, 0, 0.2916666666666667, 1.6666666666666667, 8, inf, nan, nan}},
      {"laplace",
       {0, 0, 9.383381167682447e-06, 0.006094459617935588, 0.23142114841057387, 0.9999977102450648,
        1, 1, 0, nan}},
  };
  for (const auto &[kind, expected] : cases) {
    SCOPED_TRACE(kind);
    Result<Tensor> got = activation(kind, floats({10}, inputs));
    ASSERT_TRUE(got.ok());
    for (size_t i = 0; i < inputs.size(); ++i) {
      double value = got->floats()[i];
      if (std::isfinite(expected[i]))
        EXPECT_NEAR(value, expected[i], 1e-14) << "of " << inputs[i];
      else
        EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(value) : value == expected[i])
            << value << " of " << inputs[i];
    }
  }
}

TEST(Kernels, ActivationErrors) {
  expectError(activation("gelu", Tensor::ofInts(DType::i64, {1}, {0})).status(),
              "gelu expects a floating-point input, got i64[1]");
  expectError(activation("gulu", floats({1}, {0})).status(),
              "activation 'gulu' has no meaning here");
}

TEST(Kernels, Softmax) {
  expectNear(softmax(floats({2, 2}, {1, 1, 1000, 1001})), 0,
             {0.5, 0.5, 0.2689414213699951, 0.7310585786300049});
}

TEST(Kernels, Mul) {
  expectEqual(mul(floats({2, 2}, {1, 2, 3, 4}), floats({2}, {10, 20})), {2, 2}, {10, 40, 30, 80});
  expectError(
      mul(floats({2, 2}, {1, 2, 3, 4}), floats({3}, {1, 2, 3})).status(),
      "mul expects a floating-point right operand whose shape ends that of f32[2, 2], got f32[3]");
}

TEST(Kernels, PositionIds) {
  Tensor ids = Tensor::ofInts(DType::i64, {2, 4}, {7, 1, 8, 9, 1, 1, 1, 5});
  Result<Tensor> positions = positionIds(ids, 1);
  ASSERT_TRUE(positions.ok());
  EXPECT_EQ(std::vector<int64_t>(positions->ints(), positions->ints() + 8),
            (std::vector<int64_t>{2, 1, 3, 4, 1, 1, 1, 2}));
  expectError(positionIds(floats({1, 2}, {1, 2}), 1).status(),
              "position_ids expects integer ids of rank 2, got f32[1, 2]");
}

TEST(Kernels, RotaryTables) {
  Tensor offset = Tensor::ofInts(DType::i64, {1}, {2});
  Result<RotaryTables> tables = rotaryTables(DType::f32, 2, {0.5, 0}, 3, &offset);
  ASSERT_TRUE(tables.ok());
  // Angles 1 and 1.5.
  expectNear(Result<Tensor>(tables->cos), 0, {1.6209069176044193, 3, 0.2122116050031087, 3});
  expectNear(Result<Tensor>(tables->sin), 0, {2.5244129544236893, 0, 2.9924849598121632, 0});
  EXPECT_EQ(tables->cos.shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(rotaryTables(DType::f32, 2, {0.5, 0}, 3, nullptr)->cos.shape(), (Shape{2, 2}));
  // An offset is data: it gives a large angle and does not wrap around.
  Tensor largest = Tensor::ofInts(DType::i64, {1}, {INT64_MAX});
  tables = rotaryTables(DType::f64, 2, {0x1p-63}, 1, &largest);
  ASSERT_TRUE(tables.ok());
  for (int64_t s = 0; s < 2; ++s)
    EXPECT_DOUBLE_EQ(tables->cos.floats()[s], std::cos(1.0));
}

TEST(Kernels, RotaryTurnsHalvesOfAHead) {
  // A quarter turn maps (x, y) to (-y, x); a turn by zero changes nothing.
  Tensor x = floats({1, 2, 1, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  Tensor cos = floats({2, 2}, {0, 1, 1, 0}), sin = floats({2, 2}, {1, 0, 0, 1});
  expectEqual(rotary(x, cos, sin), {1, 2, 1, 4}, {-3, 2, 1, 4, 5, -8, 7, 6});
  expectError(rotary(x, floats({2}, {1, 1}), sin).status(),
              "rotary expects floating-point tables [2, 2], with or without the batch, for "
              "f32[1, 2, 1, 4], got f32[2]");
}

TEST(Kernels, AddBroadcastsLeadingDimensions) {
  Tensor x = floats({2, 2}, {1, 2, 3, 4});
  expectEqual(add(x, floats({2}, {10, 20})), {2, 2}, {11, 22, 13, 24});
  expectEqual(add(x, x), {2, 2}, {2, 4, 6, 8});
  expectError(
      add(x, floats({3}, {1, 2, 3})).status(),
      "add expects a floating-point right operand whose shape ends that of f32[2, 2], got f32[3]");
}

TEST(Kernels, ReshapeKeepsOrder) {
  expectEqual(reshape(floats({2, 3}, {1, 2, 3, 4, 5, 6}), {3, 2}), {3, 2}, {1, 2, 3, 4, 5, 6});
  expectError(reshape(floats({2}, {1, 2}), {3}).status(),
              "reshape expects as many elements as [3] has, got f32[2]");
}

TEST(Kernels, LastTokenIsTheLastThatTheMaskHas) {
  Tensor input = floats({4, 3, 2}, {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                    13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24});
  // Padding behind, before, within, and nothing else.
  Tensor mask = Tensor::ofInts(DType::i64, {4, 3}, {1, 1, 0, 0, 0, 1, 1, 0, -7, 0, 0, 0});
  KernelCall call;
  call.inputs = {&input, &mask};
  call.outputs = {{DType::f32, {4, 1, 2}}};
  Result<std::vector<Tensor>> result = computeLibraryKernel("last_token", call);
  ASSERT_TRUE(result.ok());
  expectEqual(result->at(0), {4, 1, 2}, {3, 4, 11, 12, 17, 18, 0, 0});
}

TEST(Kernels, AppendPutsEachRowAtItsPosition) {
  Tensor source = floats({2, 1, 2}, {91, 92, 93, 94}),
         cache = floats({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
         position = Tensor::ofInts(DType::i32, {2}, {2, 0});
  KernelCall call;
  call.inputs = {&source, &position, &cache};
  call.outputs = {{DType::f32, {2, 3, 2}}};
  call.integers = {1};
  Result<std::vector<Tensor>> result = computeLibraryKernel("append", call);
  ASSERT_TRUE(result.ok());
  expectEqual(result->at(0), {2, 3, 2}, {1, 2, 3, 4, 91, 92, 93, 94, 9, 10, 11, 12});
  // Along an inner dimension.
  Tensor column = floats({2, 3, 1}, {91, 92, 93, 94, 95, 96}),
         second = Tensor::ofInts(DType::i64, {2}, {1, 0});
  call.inputs = {&column, &second, &cache};
  call.integers = {2};
  result = computeLibraryKernel("append", call);
  ASSERT_TRUE(result.ok());
  expectEqual(result->at(0), {2, 3, 2}, {1, 91, 3, 92, 5, 93, 94, 8, 95, 10, 96, 12});
  Tensor beyond = Tensor::ofInts(DType::i64, {2}, {1, 2});
  call.inputs = {&column, &beyond, &cache};
  expectError(computeLibraryKernel("append", call).status(),
              "position 2 of row 1 is outside of [0, 1], for a capacity of 2");
}

TEST(Kernels, TopKOrdersEqualsByIndexAndNaNFirst) {
  const double nan = std::nan(""), inf = INFINITY;
  Tensor input = floats({3, 5}, {1, 3, 3, -inf, 2, nan, 7, nan, inf, 0, -0.0, 0, -1, 0, -0.0});
  KernelCall call;
  call.inputs = {&input};
  call.outputs = {{DType::f32, {3, 3}}, {DType::i32, {3, 3}}};
  Result<std::vector<Tensor>> result = computeLibraryKernel("top_k", call);
  ASSERT_TRUE(result.ok());
  const std::vector<int64_t> expected{1, 2, 4, 0, 2, 3, 0, 1, 3};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(result->at(1).ints()[i], expected[i]) << i;
  EXPECT_EQ(result->at(0).floats()[2], 2);
  EXPECT_TRUE(std::isnan(result->at(0).floats()[4]));
  EXPECT_EQ(result->at(0).floats()[5], inf);
  expectError(computeLibraryKernel("none", call).status(),
              "the interpreter knows no library kernel 'none'");
}
