//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Expected values without a comment were computed with PyTorch (softmax, topk) in f64 from the same
// sines.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "braid/Interpreter/Core/Experts.h"

using namespace braid::interp;
using namespace braid::interp::testing;

namespace {
std::vector<int64_t> elementsOf(const Tensor &tensor) {
  return {tensor.ints(), tensor.ints() + tensor.numElements()};
}
using Integers = std::vector<int64_t>;

/// 2 sin(0.5 + i): two groups of four tokens, three experts.
Tensor logits() {
  Tensor half = sines(0.5, {2, 4, 3});
  std::vector<double> values(half.floats(), half.floats() + half.numElements());
  for (double &value : values)
    value *= 2;
  return floats({2, 4, 3}, std::move(values));
}
} // namespace

TEST(Router, ChoosesTheLargestAndFillsChoiceByChoice) {
  Result<Routing> routing = router(logits(), 2, 2, false);
  ASSERT_TRUE(routing.ok()) << routing.status().message();
  EXPECT_EQ(routing->experts.shape(), (Shape{2, 4, 2}));
  EXPECT_EQ(elementsOf(routing->experts),
            (Integers{1, 2, 0, 2, 1, 2, 0, 2, 2, 1, 0, 1, 2, 1, 0, 1}));
  expectNear(routing->weights, 0,
             {0.5540074131117708, 0.24941854344960265, 0.5626231471875272, 0.27674481682556124,
              0.5019860017188829, 0.37976267038115935, 0.7133457641390296, 0.1439353351279005,
              0.5251143630333145, 0.4039918947549763, 0.797830491250923, 0.12715292669931766,
              0.6553583718529713, 0.2996461772665225, 0.8334371644998392, 0.1224779826935493});
  // Experts have two slots for the tokens of a group: the second choice of the third and fourth
  // token is full.
  EXPECT_EQ(elementsOf(routing->slots),
            (Integers{0, 0, 0, 1, 1, -1, 1, -1, 0, 0, 0, 1, 1, -1, 1, -1}));
  EXPECT_EQ(elementsOf(routing->counts), (Integers{2, 2, 2, 2, 2, 2}));
}

TEST(Router, NormalizesWeights) {
  Result<Routing> routing = router(logits(), 2, 8, true);
  ASSERT_TRUE(routing.ok()) << routing.status().message();
  expectNear(routing->weights, 0,
             {0.689556279066334, 0.31044372093366596, 0.6702938059460583, 0.32970619405394164,
              0.5693073520862961, 0.43069264791370376, 0.8321025212722163, 0.1678974787277838});
  EXPECT_EQ(elementsOf(routing->counts), (Integers{2, 2, 4, 2, 4, 2}));
}

TEST(Router, GivesFirstChoicesPlacesBeforeSecondOnes) {
  // Both tokens choose experts 0 and 1, in different order; each expert has one slot.
  Result<Routing> routing = router(floats({1, 2, 3}, {2, 1, 0, 1, 2, 0}), 2, 1, false);
  ASSERT_TRUE(routing.ok());
  EXPECT_EQ(elementsOf(routing->experts), (Integers{0, 1, 1, 0}));
  EXPECT_EQ(elementsOf(routing->slots), (Integers{0, -1, 0, -1}));
}

TEST(Router, EqualLogitsGoToTheLowerNumber) {
  Result<Routing> routing = router(floats({1, 1, 4}, {1, 3, 3, 1}), 3, 1, false);
  ASSERT_TRUE(routing.ok());
  EXPECT_EQ(elementsOf(routing->experts), (Integers{1, 2, 0}));
}

TEST(Experts, ThereAndBackIsTheWeightedSum) {
  // Expert e multiplies by e + 1; no token is dropped.
  Tensor x = sines(2, {2, 4, 3});
  Result<Routing> routing = router(logits(), 2, 4, true);
  ASSERT_TRUE(routing.ok());
  Result<Tensor> blocks = dispatch(x, routing->experts, routing->slots, 3, 4);
  ASSERT_TRUE(blocks.ok()) << blocks.status().message();
  EXPECT_EQ(blocks->shape(), (Shape{2, 3, 4, 3}));
  std::vector<double> worked(blocks->floats(), blocks->floats() + blocks->numElements());
  for (size_t i = 0; i < worked.size(); ++i)
    worked[i] *= static_cast<double>(i / 12 % 3 + 1);
  Result<Tensor> y = combineExperts(floats({2, 3, 4, 3}, worked), routing->weights,
                                    routing->experts, routing->slots);
  expectNear(y, 0, {2.100880530270536,   0.3260498365200285,  -1.748549573271133,
                    -1.5912508206333784, -0.4636655391406335, 1.0902117007348213,
                    2.4048258162202467,  1.0017333721464698,  -1.3223481145486369,
                    -1.3357818754153812, -0.7167513981722008, 0.5612570090820748,
                    2.541088403167585,   1.668106823399295,   -0.7385244769335512,
                    -1.0935560824462531, -0.8542217745348734, 0.17048009343832055,
                    2.452386274338635,   2.2474543820218575,  -0.023776704458905853,
                    -0.9546435924903643, -1.0216068727747052, -0.14930950561146047});
}

TEST(Experts, WhoHasNoPlaceIsLeftOut) {
  Tensor x = floats({1, 2, 2}, {1, 2, 3, 4});
  Tensor experts = ints({1, 2, 1}, {1, 1}), slots = ints({1, 2, 1}, {0, -1});
  expectEqual(dispatch(x, experts, slots, 2, 1), {1, 2, 1, 2}, {0, 0, 1, 2});
  expectEqual(
      combineExperts(floats({1, 2, 1, 2}, {5, 6, 7, 8}), floats({1, 2, 1}, {2, 2}), experts, slots),
      {1, 2, 2}, {14, 16, 0, 0});
}

TEST(Experts, RowsOfOnePlaceAreAdded) {
  Tensor x = floats({1, 2, 1}, {1, 2});
  Tensor experts = ints({1, 2, 1}, {0, 0}), slots = ints({1, 2, 1}, {0, 0});
  expectEqual(dispatch(x, experts, slots, 1, 1), {1, 1, 1, 1}, {3});
}

TEST(Experts, NameWhatIsOutside) {
  Tensor x = floats({1, 2, 1}, {1, 2}), zeros = ints({1, 2, 1}, {0, 0});
  expectError(dispatch(x, ints({1, 2, 1}, {0, 3}), zeros, 3, 2).status(),
              "dispatch expects experts from 0 to 2, got 3 at position [0, 1, 0]");
  expectError(dispatch(x, zeros, ints({1, 2, 1}, {-2, 0}), 3, 2).status(),
              "dispatch expects slots from -1 to 1, got -2 at position [0, 0, 0]");
  expectError(combineExperts(floats({1, 1, 2, 1}, {1, 2}), floats({1, 2, 1}, {1, 1}), zeros,
                             ints({1, 2, 1}, {0, 2}))
                  .status(),
              "combine expects slots from -1 to 1, got 2 at position [0, 1, 0]");
}

TEST(Experts, CheckShapes) {
  Tensor x = floats({1, 2, 1}, {1, 2}), one = ints({1, 1, 1}, {0}), zeros = ints({1, 2, 1}, {0, 0});
  expectError(router(x, 2, 1, false).status(), "router expects from 1 to 1 choices, got 2");
  expectError(router(floats({2, 1}, {1, 2}), 1, 1, false).status(),
              "router expects floating-point logits of rank 3, got f32[2, 1]");
  expectError(
      dispatch(x, one, one, 1, 1).status(),
      "dispatch expects experts for the groups and tokens of f32[1, 2, 1], got i64[1, 1, 1]");
  expectError(
      dispatch(x, zeros, one, 1, 1).status(),
      "dispatch expects integer slots of the shape of experts i64[1, 2, 1], got i64[1, 1, 1]");
  expectError(combineExperts(x, x, zeros, zeros).status(),
              "combine expects floating-point blocks of rank 4, got f32[1, 2, 1]");
  expectError(combineExperts(floats({1, 1, 1, 1}, {1}), x, one, one).status(),
              "combine expects experts of the shape of weights f32[1, 2, 1], got i64[1, 1, 1]");
}
