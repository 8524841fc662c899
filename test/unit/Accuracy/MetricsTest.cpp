//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Metrics of errors, computed by hand or by their definitions in double precision, and bounds.
//
//===----------------------------------------------------------------------===//
#include "braid/Accuracy/Metrics.h"

#include "braid/Base/Status.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace braid;

namespace {

using Rows = std::vector<float>;

RowErrors errorsOf(const Rows &expected, const Rows &got, int64_t columns) {
  return ExpectedRows(expected, columns, /*distributions=*/false, {}).compare(got);
}

std::vector<double> softmax(const float *row, int64_t columns) {
  std::vector<double> p(row, row + columns);
  const double most = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double &x : p)
    sum += x = std::exp(x - most);
  for (double &x : p)
    x /= sum;
  return p;
}

/// Logits, and others beside them.
struct Logits {
  static constexpr int64_t kRows = 7, kColumns = 31;
  Rows expected, got;
  std::vector<int64_t> labels;

  explicit Logits(float shift = 0) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      expected.push_back(4 * normal(random) + shift);
      got.push_back(expected.back() + 0.3F * normal(random));
    }
    for (int64_t r = 0; r < kRows; ++r)
      labels.push_back(r % 3 == 2 ? -1 : 5 * r % kColumns);
  }
  RowErrors errors() const { return ExpectedRows(expected, kColumns, true, labels).compare(got); }
};

TEST(RowErrors, OfWhatIsEqual) {
  const RowErrors errors = errorsOf({1, -2, 3, 0.5F, 0, 0}, {1, -2, 3, 0.5F, 0, 0}, 2);
  EXPECT_EQ(errors.rows, 3);
  EXPECT_DOUBLE_EQ(errors.cosine(), 1); // two rows of zeros are the same
  EXPECT_EQ(errors.relativeL2(), 0);
  const Logits logits;
  const RowErrors same =
      ExpectedRows(logits.expected, Logits::kColumns, true, logits.labels).compare(logits.expected);
  EXPECT_NEAR(same.kl(), 0, 1e-6);
  EXPECT_GE(same.kl(), 0);
  EXPECT_EQ(same.perplexityIncrease(), 0);
}

TEST(RowErrors, OfTwoRows) {
  // Cosines 24/25 and 0, of norms 5 and 1.
  const RowErrors errors = errorsOf({3, 4, 1, 0}, {4, 3, 0, 1}, 2);
  EXPECT_DOUBLE_EQ(errors.cosine(), 0.48);
  EXPECT_EQ(errors.lowestCosine, 0);
  EXPECT_DOUBLE_EQ(errors.relativeL2(), std::sqrt(4.0 / 26));
  // A cosine does not see a length.
  const RowErrors twice = errorsOf({3, 4}, {6, 8}, 2);
  EXPECT_DOUBLE_EQ(twice.cosine(), 1);
  EXPECT_DOUBLE_EQ(twice.relativeL2(), 1);
  EXPECT_DOUBLE_EQ(errorsOf({3, 4}, {-3, -4}, 2).lowestCosine, -1);
}

TEST(RowErrors, OfDistributions) {
  const Logits logits;
  double divergence = 0, likelihood = 0, expectedLikelihood = 0;
  int64_t labels = 0;
  for (int64_t r = 0; r < Logits::kRows; ++r) {
    const auto p = softmax(logits.expected.data() + r * Logits::kColumns, Logits::kColumns),
               q = softmax(logits.got.data() + r * Logits::kColumns, Logits::kColumns);
    for (size_t i = 0; i < p.size(); ++i)
      divergence += p[i] * std::log(p[i] / q[i]);
    if (const int64_t label = logits.labels[static_cast<size_t>(r)]; label >= 0) {
      ++labels;
      likelihood += std::log(q[static_cast<size_t>(label)]);
      expectedLikelihood += std::log(p[static_cast<size_t>(label)]);
    }
  }
  const RowErrors errors = logits.errors();
  EXPECT_GT(divergence, 0.01);
  EXPECT_NEAR(errors.kl(), divergence / Logits::kRows, 1e-6);
  EXPECT_EQ(errors.labels, labels);
  const double perplexity = std::exp(-likelihood / static_cast<double>(labels)),
               expected = std::exp(-expectedLikelihood / static_cast<double>(labels));
  EXPECT_NEAR(errors.perplexity(), perplexity, 1e-5 * perplexity);
  EXPECT_NEAR(errors.expectedPerplexity(), expected, 1e-5 * expected);
  EXPECT_NEAR(errors.perplexityIncrease(), perplexity / expected - 1, 2e-5);
  // A number that all logits of a row have in common changes no distribution, and overflows
  // nothing. It costs their last bits.
  const RowErrors shifted = Logits(1000).errors();
  EXPECT_NEAR(shifted.kl(), errors.kl(), 1e-3);
  EXPECT_NEAR(shifted.perplexity(), errors.perplexity(), 1e-3 * errors.perplexity());
}

TEST(RowErrors, AddUp) {
  const Logits logits;
  const RowErrors all = logits.errors();
  RowErrors sum;
  for (int64_t r = 0; r < Logits::kRows; ++r) {
    auto row = [&](const Rows &rows) {
      return Rows(rows.begin() + r * Logits::kColumns, rows.begin() + (r + 1) * Logits::kColumns);
    };
    sum.add(ExpectedRows(row(logits.expected), Logits::kColumns, true,
                         {logits.labels[static_cast<size_t>(r)]})
                .compare(row(logits.got)));
  }
  EXPECT_EQ(sum.rows, all.rows);
  EXPECT_EQ(sum.labels, all.labels);
  EXPECT_EQ(sum.lowestCosine, all.lowestCosine);
  for (Metric metric : {Metric::cosine, Metric::relativeL2, Metric::kl, Metric::perplexity})
    EXPECT_NEAR(sum.value(metric), all.value(metric), 1e-12) << name(metric);
}

TEST(RowErrors, OfDamage) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (float damage : {nan, infinity, -infinity}) {
    SCOPED_TRACE(damage);
    const RowErrors errors =
        ExpectedRows({1, 2, 3, 4, 5, 6}, 3, true, {0, 1}).compare({1, 2, 3, 4, damage, 6});
    EXPECT_EQ(errors.lowestCosine, -1);
    EXPECT_DOUBLE_EQ(errors.cosine(), 0); // of a row that is right and of one that is lost
    EXPECT_TRUE(std::isinf(errors.relativeL2()));
    EXPECT_TRUE(std::isinf(errors.kl()));
    EXPECT_TRUE(std::isinf(errors.perplexity()));
  }
  // Zeros in place of numbers, and numbers in place of zeros.
  EXPECT_EQ(errorsOf({1, 2}, {0, 0}, 2).cosine(), -1);
  EXPECT_EQ(errorsOf({0, 0}, {1, 2}, 2).cosine(), -1);
  EXPECT_TRUE(std::isinf(errorsOf({0, 0}, {1, 2}, 2).relativeL2()));
}

TEST(RowErrors, OfNoRows) {
  const RowErrors errors;
  EXPECT_EQ(errors.cosine(), 1);
  EXPECT_EQ(errors.relativeL2(), 0);
  EXPECT_EQ(errors.kl(), 0);
  EXPECT_EQ(errors.perplexityIncrease(), 0);
  EXPECT_EQ(ExpectedRows({}, 0, true, {}).compare({}).rows, 0);
}

TEST(Quantile, IsInterpolated) {
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({7}, 0.95), 7);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_EQ(quantile({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.95), 3.85);
}

TEST(MetricBound, ReadsWhatItWrites) {
  const struct {
    const char *text;
    Metric metric;
    double bound;
  } cases[] = {{"cosine>=0.999", Metric::cosine, 0.999},
               {"relative-l2<=0.02", Metric::relativeL2, 0.02},
               {"kl<=0.01", Metric::kl, 0.01},
               {"perplexity<=+1%", Metric::perplexity, 0.01},
               {"perplexity<=+0.25%", Metric::perplexity, 0.0025},
               // A bound is what was promised, to the last digit.
               {"cosine>=0.9999995", Metric::cosine, 0.9999995},
               {"kl<=1.2345678e-07", Metric::kl, 1.2345678e-7},
               {"perplexity<=+0.12345%", Metric::perplexity, 0.0012345}};
  for (const auto &c : cases) {
    const runtime::Result<MetricBound> bound = MetricBound::parse(c.text);
    ASSERT_TRUE(bound.ok()) << bound.status().message();
    EXPECT_EQ(bound->metric, c.metric);
    EXPECT_DOUBLE_EQ(bound->bound, c.bound);
    EXPECT_EQ(bound->str(), c.text);
  }
}

TEST(MetricBound, MeasuredValuesAreRounded) {
  EXPECT_EQ(MetricBound::text(Metric::cosine, 0.9991234), "0.99912");
  EXPECT_EQ(MetricBound::text(Metric::perplexity, 0.0041234), "+0.412%");
  EXPECT_EQ(MetricBound::text(Metric::perplexity, -0.001), "-0.1%");
}

TEST(MetricBound, HoldsAtTheBound) {
  const MetricBound cosine = *MetricBound::parse("cosine>=0.75"),
                    kl = *MetricBound::parse("kl<=0.25");
  EXPECT_TRUE(cosine.holds(0.75));
  EXPECT_TRUE(cosine.holds(0.8));
  EXPECT_FALSE(cosine.holds(0.7499));
  EXPECT_TRUE(kl.holds(0.25));
  EXPECT_TRUE(kl.holds(0));
  EXPECT_FALSE(kl.holds(0.2501));
  for (const char *text : {"cosine>=0.75", "kl<=0.25"})
    EXPECT_FALSE(MetricBound::parse(text)->holds(std::nan("")));
}

TEST(MetricBound, DamageGrowsFromZero) {
  EXPECT_EQ(MetricBound::damage(Metric::cosine, 1), 0);
  EXPECT_EQ(MetricBound::damage(Metric::cosine, 0.75), 0.25);
  EXPECT_EQ(MetricBound::damage(Metric::relativeL2, 0.5), 0.25);
  EXPECT_EQ(MetricBound::damage(Metric::kl, 0.5), 0.5);
  EXPECT_EQ(MetricBound::damage(Metric::perplexity, 0.5), 0.5);
  EXPECT_EQ(MetricBound::parse("relative-l2<=0.5")->allowedDamage(), 0.25);
}

TEST(MetricBound, NamesWhatIsWrong) {
  const std::string expected = "expects a budget such as cosine>=0.999, relative-l2<=0.02, "
                               "kl<=0.01 or perplexity<=+1%, got ";
  const struct {
    const char *text, *why;
  } cases[] = {{"", ""},
               {"cosine", ""},
               {"cosine=0.9", ""},
               {"cosine=>0.9", ""},
               {"cosine>0.9", ""},
               {"cosine>", ""},
               {"speed<=1", ": there is no metric 'speed'"},
               {"cosine<=0.9", ": cosine expects >="},
               {"kl>=0.9", ": kl expects <="},
               {"perplexity<=1", ": perplexity expects an increase in percent, as +1%"},
               {"perplexity<=+%", ": perplexity expects an increase in percent, as +1%"},
               {"kl<=", ": it has no number"},
               {"kl<=a", ": it has no number"},
               {"kl<=0.1x", ": it has no number"},
               {"kl<=nan", ": it has no number"},
               {"kl<=inf", ": it has no number"},
               {"kl<=0", ": a bound is above 0"},
               {"kl<=-1", ": a bound is above 0"},
               {"perplexity<=+-1%", ": a bound is above 0"},
               {"cosine>=1", ": a bound of cosine is between 0 and 1"},
               {"cosine>=0", ": a bound of cosine is between 0 and 1"}};
  for (const auto &c : cases) {
    const runtime::Result<MetricBound> bound = MetricBound::parse(c.text);
    ASSERT_FALSE(bound.ok()) << c.text;
    EXPECT_EQ(bound.status().message(), expected + "'" + c.text + "'" + c.why);
  }
}

} // namespace
