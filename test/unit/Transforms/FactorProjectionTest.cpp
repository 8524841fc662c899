//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Axes.h"

#include "lib/Transforms/Sharding/FactorProjection.h"

using namespace braid;
using namespace braid::comm;
using braid::test::Axes;

namespace {

struct FactorProjection : Axes {
  /// Projects the axes of one dimension to factors of these sizes. Returns the axes of the factors
  /// and the axis that does not fit.
  std::string projected(std::vector<int64_t> sizes, const std::string &dim,
                        FactorKind last = FactorKind::Parallel) {
    ShardingRule rule;
    DimFactors factors;
    for (int64_t size : sizes)
      factors.push_back(rule.addFactor("f", size));
    rule.factors.back().kind = last;
    FactorAxes axes(sizes.size());
    std::optional<Misfit> misfit = projectDim(rule, factors, list(dim), axes);
    std::string result = text(axes);
    return misfit ? result + " without " + text(SubAxes{misfit->axis}) : result;
  }
};

TEST_F(FactorProjection, AxesBeyondAPrefix) {
  auto beyond = [&](const std::string &prefix, const std::string &axes) {
    std::optional<SubAxes> rest = axesBeyond(list(prefix), list(axes));
    return rest ? "{" + text(*rest) + "}" : "no prefix";
  };
  EXPECT_EQ(beyond("", "a, b"), "{a, b}");
  EXPECT_EQ(beyond("a", "a, b"), "{b}");
  EXPECT_EQ(beyond("a, b", "a, b"), "{}");
  EXPECT_EQ(beyond("b", "a, b"), "no prefix");
  EXPECT_EQ(beyond("a, b", "a"), "no prefix");
  // Sub-axes are compared by coordinates.
  EXPECT_EQ(beyond("a:(1)2", "a"), "{a:(2)2}");
  EXPECT_EQ(beyond("a:(1)2, a:(2)2", "a, b"), "{b}");
  EXPECT_EQ(beyond("a", "a:(1)2, a:(2)2, b"), "{b}");
  EXPECT_EQ(beyond("a:(2)2", "a"), "no prefix");
  EXPECT_EQ(beyond("a", "a:(1)2"), "no prefix");
  // 2 does not divide 3.
  EXPECT_EQ(beyond("x:(1)2", "x:(1)3"), "no prefix");
  EXPECT_EQ(beyond("x:(1)2", "x"), "{x:(2)3}");
}

TEST_F(FactorProjection, CommonPrefix) {
  auto common = [&](const std::string &a, const std::string &b) {
    std::string result = text(commonPrefix(list(a), list(b)));
    EXPECT_EQ(result, text(commonPrefix(list(b), list(a))));
    return result;
  };
  EXPECT_EQ(common("a, b", "a, c"), "a");
  EXPECT_EQ(common("a", "b"), "");
  EXPECT_EQ(common("a, b", "a:(1)2, c"), "a:(1)2");
  EXPECT_EQ(common("a, b", "a:(1)2, a:(2)2, b, c"), "a, b");
  EXPECT_EQ(common("x:(1)2", "x:(1)3"), "");
  // The common divisor of the sizes 4 and 6.
  setMesh("y = 24");
  EXPECT_EQ(common("y:(1)4", "y:(1)6"), "y:(1)2");
}

TEST_F(FactorProjection, SplitsAxesToFit) {
  EXPECT_EQ(projected({8}, "a, b"), "{a, b}");
  EXPECT_EQ(projected({2, 4}, "a"), "{a:(1)2}, {a:(2)2}");
  EXPECT_EQ(projected({2, 4}, "b, a"), "{b}, {a}");
  EXPECT_EQ(projected({2, 1, 4}, "b, c"), "{b}, {}, {c}");
  EXPECT_EQ(projected({4, 4}, "b, c"), "{b, c}, {}");
  EXPECT_EQ(projected({2, 6}, "x"), "{x:(1)2}, {x:(2)3}");
}

TEST_F(FactorProjection, EndsWhereAnAxisDoesNotDivide) {
  EXPECT_EQ(projected({6, 4}, "a"), "{a:(1)2}, {} without a");
  EXPECT_EQ(projected({3, 8}, "a"), "{}, {} without a");
  EXPECT_EQ(projected({3, 8}, "a, b"), "{}, {} without a");
  EXPECT_EQ(projected({8, 4}, "x"), "{x:(1)2}, {} without x");
  // A replicated factor takes no axes, and this is not an error.
  EXPECT_EQ(projected({2, 4}, "a", FactorKind::Replicated), "{a:(1)2}, {}");
  EXPECT_EQ(projected({4}, "a", FactorKind::Replicated), "{}");
}

TEST_F(FactorProjection, MinorFactorsNeedCompleteMajorOnes) {
  ShardingRule rule;
  int64_t major = rule.addFactor("major", 4), minor = rule.addFactor("minor", 4);
  rule.operands = {{{major}, {minor}}};
  rule.results = {{{major, minor}}};
  auto expressible = [&](const std::string &axes) {
    FactorAxes result = layout(axes);
    dropInexpressible(rule, result);
    return text(result);
  };
  EXPECT_EQ(expressible("{a}, {b}"), "{a}, {b}");
  EXPECT_EQ(expressible("{b}, {c}"), "{b}, {}");
  EXPECT_EQ(expressible("{}, {a}"), "{}, {}");
  FactorAxes both{list("a:(1)2, b"), list("a:(2)2")};
  EXPECT_EQ(text(dimsOf(rule.results[0], both)), "{a:(1)2, b, a:(2)2}");
  // Adjacent sub-axes are merged.
  FactorAxes subAxes{list("a:(1)2"), list("a:(2)2")};
  EXPECT_EQ(text(dimsOf(rule.results[0], subAxes)), "{a}");
}

} // namespace
