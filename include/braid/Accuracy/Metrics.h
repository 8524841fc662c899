//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How far results are from those without encodings.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ACCURACY_METRICS_H
#define BRAID_ACCURACY_METRICS_H

#include "braid/Base/HostTensor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid {

/// The error of one batch, or the promise on it.
enum class Metric { cosine, relativeL2, kl, perplexity };
/// "cosine", "relative-l2", "kl", "perplexity".
const char *name(Metric metric);

/// Sums over the rows of a result: what is a row is up to the caller (a token's logits, a
/// sentence's embedding).
struct RowErrors {
  int64_t rows = 0;
  double cosines = 0, lowestCosine = 1;
  double squares = 0, errorSquares = 0;
  double divergence = 0; ///< KL(expected || got) of the rows' softmax, in nats
  /// Of rows with a label.
  int64_t labels = 0;
  double logLikelihood = 0, expectedLogLikelihood = 0;

  void add(const RowErrors &other);
  double cosine() const { return rows == 0 ? 1 : cosines / static_cast<double>(rows); }
  double relativeL2() const;
  double kl() const { return rows == 0 ? 0 : divergence / static_cast<double>(rows); }
  double perplexity() const;
  double expectedPerplexity() const;
  /// How much larger the perplexity is: 0.01 for 1%.
  double perplexityIncrease() const { return perplexity() / expectedPerplexity() - 1; }

  double value(Metric metric) const;
};

/// Rows of expected results, with what all comparisons with them need.
class ExpectedRows {
public:
  /// `values` is rows of `columns`; of each row a label (a column) or -1; empty: none have one.
  /// With `distributions`, rows are logits.
  ExpectedRows(std::vector<float> values, int64_t columns, bool distributions,
               std::vector<int64_t> labels);
  /// Of memory that it holds.
  size_t bytes() const { return (values.size() + probabilities.size()) * sizeof(float); }
  int64_t rows() const { return columns == 0 ? 0 : static_cast<int64_t>(values.size()) / columns; }
  /// Compares rows of the same number; damage shows as a cosine of -1 and infinite errors.
  RowErrors compare(const std::vector<float> &got) const;

private:
  std::vector<float> values;
  int64_t columns;
  bool distributions;
  std::vector<int64_t> labels;
  std::vector<double> logSums;
  std::vector<float> probabilities;
};

/// The q-th quantile of some numbers, 0 <= q <= 1, interpolated linearly; 0 for none.
double quantile(std::vector<double> numbers, double q);

/// A promise on the mean of a metric over batches: "cosine>=0.999", "relative-l2<=0.02",
/// "kl<=0.01", "perplexity<=+1%".
struct MetricBound {
  Metric metric = Metric::cosine;
  double bound = 0; ///< of perplexity: of its increase, 0.01 for 1%

  static runtime::Result<MetricBound> parse(const std::string &text);
  std::string str() const;
  /// A value in the metric's own form: "0.99912", "+0.41%".
  static std::string text(Metric metric, double value);
  std::string text(double value) const { return text(metric, value); }
  /// How bad a value is, from 0 for none: 1 - cosine, the square of a relative L2 distance, else
  /// the value. Small errors of independent encodings add up in it.
  static double damage(Metric metric, double value);
  double damage(double value) const { return damage(metric, value); }
  double allowedDamage() const { return damage(bound); }
  bool holds(double value) const;
};

} // namespace braid
#endif // BRAID_ACCURACY_METRICS_H
