//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "braid/Interpreter/Core/Kernels.h"

using namespace braid::interp;
using namespace braid::interp::testing;

namespace {
constexpr int64_t kSeed = 0x0123456789abcdef;

/// Applies dropout to ones: a slice of `shape` that begins at `begin` of the full tensor.
Result<Tensor> dropOnes(const Shape &shape, const Shape &begin, int64_t seed, uint32_t site,
                        double rate) {
  std::vector<Tensor> positions;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < shape[d]; ++i)
      values.push_back(begin[d] + i);
    positions.push_back(ints({shape[d]}, values));
  }
  std::vector<const Tensor *> pointers;
  for (const Tensor &tensor : positions)
    pointers.push_back(&tensor);
  return dropout(floats(shape, std::vector<double>(static_cast<size_t>(numElements(shape)), 1)),
                 pointers, seed, site, rate);
}
} // namespace

TEST(Dropout, AgainstAnImplementationOfItsOwn) {
  // The kept elements were computed with a Philox4x32-10 in Python that reproduces its authors'
  // known answers.
  expectEqual(dropOnes({2, 2, 3}, {0, 0, 0}, kSeed, 7, 0.5), {2, 2, 3},
              {2, 0, 2, 0, 2, 2, 2, 0, 2, 2, 0, 0});
}

TEST(Dropout, APartIsAPartOfTheWhole) {
  Result<Tensor> whole = dropOnes({4, 6, 8}, {0, 0, 0}, 11, 2, 0.3);
  ASSERT_TRUE(whole.ok());
  Shape begin{2, 3, 4}, size{2, 3, 4};
  Result<Tensor> part = dropOnes(size, begin, 11, 2, 0.3);
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(firstDifference(*part, extractBox(*whole, {begin, size})), -1);
}

TEST(Dropout, DropsAsOftenAsTheRateSays) {
  for (double rate : {0.0, 0.1, 0.5, 0.9}) {
    Result<Tensor> result = dropOnes({100, 1000}, {0, 0}, 3, 0, rate);
    ASSERT_TRUE(result.ok());
    int64_t dropped = 0;
    for (int64_t i = 0; i < result->numElements(); ++i) {
      if (result->floats()[i] == 0)
        ++dropped;
      else
        ASSERT_DOUBLE_EQ(result->floats()[i], 1 / (1 - rate));
    }
    // Five standard deviations.
    EXPECT_NEAR(static_cast<double>(dropped), 1e5 * rate, 5 * std::sqrt(1e5 * rate * (1 - rate)));
  }
}

TEST(Dropout, SeedsAndSitesDiffer) {
  Result<Tensor> one = dropOnes({64}, {0}, 1, 0, 0.5);
  EXPECT_NE(firstDifference(*one, *dropOnes({64}, {0}, 2, 0, 0.5)), -1);
  EXPECT_NE(firstDifference(*one, *dropOnes({64}, {0}, 1, 1, 0.5)), -1);
  // The upper 32 bits of a seed matter too.
  EXPECT_NE(firstDifference(*one, *dropOnes({64}, {0}, 1 + (int64_t(1) << 32), 0, 0.5)), -1);
  EXPECT_EQ(firstDifference(*one, *dropOnes({64}, {0}, 1, 0, 0.5)), -1);
}

TEST(Dropout, Checks) {
  Tensor x = floats({2}, {1, 2}), two = ints({2}, {0, 1}), three = ints({3}, {0, 1, 2});
  expectError(
      dropout(x, {}, 0, 0, 0.5).status(),
      "dropout expects a floating-point input of 1 to 3 dimensions with positions for each, "
      "got f32[2] and 0");
  expectError(dropout(x, {&three}, 0, 0, 0.5).status(),
              "dropout expects integer positions [2] of dimension 0, got i64[3]");
  expectError(dropout(x, {&two}, 0, 0, 1).status(),
              "dropout expects a rate of at least 0 and below 1, got 1.000000");
}

TEST(CrossEntropy, AgainstPyTorch) {
  // torch.nn.functional.cross_entropy, reduction none, ignore_index -100, of 3 sin(1 + i) in f64.
  Tensor sine = sines(1, {2, 3, 5});
  std::vector<double> logits(sine.floats(), sine.floats() + sine.numElements());
  for (double &x : logits)
    x *= 3;
  Tensor labels = ints({2, 3}, {0, 4, -100, 2, 1, 3});
  Result<Tensor> loss = crossEntropy(floats({2, 3, 5}, logits), labels, -100);
  expectNear(loss, 0,
             {0.8589882981884059, 5.056424582715939, 0.0, 5.121955609976512, 2.6724221258464063,
              5.389290236309009});
  EXPECT_EQ(loss->shape(), (Shape{2, 3}));
}

TEST(CrossEntropy, LargeLogitsDoNotOverflowAndPaddingDoesNotCount) {
  double inf = std::numeric_limits<double>::infinity();
  expectEqual(crossEntropy(floats({1, 3}, {1e4, 1e4, -inf}), ints({1}, {1}), std::nullopt), {1},
              {std::log(2.0)});
}

TEST(CrossEntropy, NamesTheBadLabel) {
  Tensor logits = sines(1, {2, 3});
  expectError(crossEntropy(logits, ints({2}, {0, 3}), std::nullopt).status(),
              "cross_entropy expects labels from 0 to 2, got 3 at label 1");
  expectError(crossEntropy(logits, ints({2}, {-100, 0}), -1).status(),
              "cross_entropy expects labels from 0 to 2, got -100 at label 0");
  expectError(crossEntropy(logits, ints({3}, {0, 0, 0}), std::nullopt).status(),
              "cross_entropy expects an integer label for each row of f32[2, 3], got i64[3]");
}
