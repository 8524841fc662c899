//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Accuracy/Metrics.h"

#include "braid/Base/Status.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace braid {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string formatted(const char *format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

} // namespace

const char *name(Metric metric) {
  switch (metric) {
  case Metric::cosine:
    return "cosine";
  case Metric::relativeL2:
    return "relative-l2";
  case Metric::kl:
    return "kl";
  case Metric::perplexity:
    return "perplexity";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// RowErrors
//===----------------------------------------------------------------------===//

void RowErrors::add(const RowErrors &other) {
  rows += other.rows;
  cosines += other.cosines;
  lowestCosine = std::min(lowestCosine, other.lowestCosine);
  squares += other.squares;
  errorSquares += other.errorSquares;
  divergence += other.divergence;
  labels += other.labels;
  logLikelihood += other.logLikelihood;
  expectedLogLikelihood += other.expectedLogLikelihood;
}

double RowErrors::relativeL2() const {
  if (errorSquares == 0)
    return 0;
  return squares == 0 ? kInfinity : std::sqrt(errorSquares / squares);
}

double RowErrors::perplexity() const {
  return labels == 0 ? 1 : std::exp(-logLikelihood / static_cast<double>(labels));
}
double RowErrors::expectedPerplexity() const {
  return labels == 0 ? 1 : std::exp(-expectedLogLikelihood / static_cast<double>(labels));
}

double RowErrors::value(Metric metric) const {
  switch (metric) {
  case Metric::cosine:
    return cosine();
  case Metric::relativeL2:
    return relativeL2();
  case Metric::kl:
    return kl();
  case Metric::perplexity:
    return perplexityIncrease();
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// ExpectedRows
//===----------------------------------------------------------------------===//

/// The logarithm of the sum of exp(x) over a row.
static double logSumExp(const float *row, int64_t columns) {
  const float most = *std::max_element(row, row + columns);
  double sum = 0;
  for (int64_t i = 0; i < columns; ++i)
    sum += static_cast<double>(std::exp(row[i] - most));
  return static_cast<double>(most) + std::log(sum);
}

ExpectedRows::ExpectedRows(std::vector<float> given, int64_t columns, bool distributions,
                           std::vector<int64_t> labels)
    : values(std::move(given)), columns(columns), distributions(distributions),
      labels(std::move(labels)) {
  if (!distributions)
    return;
  probabilities.resize(values.size());
  for (int64_t r = 0; r < rows(); ++r) {
    const float *row = values.data() + r * columns;
    logSums.push_back(logSumExp(row, columns));
    const auto sum = static_cast<float>(logSums.back());
    for (int64_t i = 0; i < columns; ++i)
      probabilities[static_cast<size_t>(r * columns + i)] = std::exp(row[i] - sum);
  }
}

RowErrors ExpectedRows::compare(const std::vector<float> &got) const {
  RowErrors errors;
  for (int64_t r = 0; r < rows(); ++r) {
    const float *x = values.data() + r * columns, *y = got.data() + r * columns;
    double xx = 0, yy = 0, xy = 0, dd = 0;
    for (int64_t i = 0; i < columns; ++i) {
      const double a = x[i], b = y[i];
      xx += a * a;
      yy += b * b;
      xy += a * b;
      dd += (b - a) * (b - a);
    }
    double cosine = xx == 0 && yy == 0 ? 1 : xy / std::sqrt(xx * yy);
    if (!std::isfinite(cosine)) { // an infinity, a NaN, or zeros beside numbers
      cosine = -1;
      dd = kInfinity;
    }
    ++errors.rows;
    errors.cosines += cosine;
    errors.lowestCosine = std::min(errors.lowestCosine, cosine);
    errors.squares += xx;
    errors.errorSquares += dd;
    if (!distributions)
      continue;
    // The sum of p (x - y), shifted by what the softmax of each row subtracts.
    const double logSum = logSumExp(y, columns), expected = logSums[static_cast<size_t>(r)];
    const float *p = probabilities.data() + r * columns;
    double moved = 0;
    for (int64_t i = 0; i < columns; ++i)
      moved += static_cast<double>(p[i]) * (static_cast<double>(x[i]) - static_cast<double>(y[i]));
    const double divergence = moved - expected + logSum;
    errors.divergence += std::isfinite(divergence) ? std::max(divergence, 0.0) : kInfinity;
    if (labels.empty() || labels[static_cast<size_t>(r)] < 0)
      continue;
    const int64_t label = labels[static_cast<size_t>(r)];
    const double likelihood = static_cast<double>(y[label]) - logSum;
    ++errors.labels;
    errors.logLikelihood += std::isfinite(likelihood) ? likelihood : -kInfinity;
    errors.expectedLogLikelihood += static_cast<double>(x[label]) - expected;
  }
  return errors;
}

double quantile(std::vector<double> numbers, double q) {
  if (numbers.empty())
    return 0;
  std::sort(numbers.begin(), numbers.end());
  const double place = q * static_cast<double>(numbers.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, numbers.size() - 1);
  return numbers[below] + (place - static_cast<double>(below)) * (numbers[above] - numbers[below]);
}

//===----------------------------------------------------------------------===//
// MetricBound
//===----------------------------------------------------------------------===//

runtime::Result<MetricBound> MetricBound::parse(const std::string &text) {
  auto error = [&](const std::string &why) {
    return runtime::Status::error("expects a budget such as cosine>=0.999, relative-l2<=0.02, "
                                  "kl<=0.01 or perplexity<=+1%, got ",
                                  runtime::inQuotes(text), why.empty() ? "" : ": " + why);
  };
  const size_t at = text.find_first_of("<>=");
  if (at == std::string::npos || at + 2 > text.size() || text[at + 1] != '=' || text[at] == '=')
    return error("");
  MetricBound result;
  const std::string metric = text.substr(0, at);
  bool found = false;
  for (Metric one : {Metric::cosine, Metric::relativeL2, Metric::kl, Metric::perplexity})
    if (metric == braid::name(one)) {
      result.metric = one;
      found = true;
    }
  if (!found)
    return error("there is no metric " + runtime::inQuotes(metric));
  const bool isCosine = result.metric == Metric::cosine,
             isPerplexity = result.metric == Metric::perplexity;
  if ((text[at] == '>') != isCosine)
    return error(metric + " expects " + (isCosine ? ">=" : "<="));
  std::string number = text.substr(at + 2);
  if (isPerplexity && (number.size() < 3 || number.front() != '+' || number.back() != '%'))
    return error("perplexity expects an increase in percent, as +1%");
  if (isPerplexity)
    number = number.substr(1, number.size() - 2);
  char *end = nullptr;
  result.bound = std::strtod(number.c_str(), &end);
  if (number.empty() || end != number.c_str() + number.size() || !std::isfinite(result.bound))
    return error("it has no number");
  if (isPerplexity)
    result.bound /= 100;
  if (isCosine ? !(result.bound > 0 && result.bound < 1) : !(result.bound > 0))
    return error(isCosine ? "a bound of cosine is between 0 and 1" : "a bound is above 0");
  return result;
}

std::string MetricBound::text(Metric metric, double value) {
  return metric == Metric::perplexity ? formatted("%+.3g%%", value * 100)
                                      : formatted("%.5g", value);
}

std::string MetricBound::str() const {
  return std::string(braid::name(metric)) + (metric == Metric::cosine ? ">=" : "<=") +
         (metric == Metric::perplexity ? formatted("%+.15g%%", bound * 100)
                                       : formatted("%.15g", bound));
}

double MetricBound::damage(Metric metric, double value) {
  if (metric == Metric::cosine)
    return 1 - value;
  return metric == Metric::relativeL2 ? value * value : value;
}

bool MetricBound::holds(double value) const {
  return metric == Metric::cosine ? value >= bound : value <= bound;
}

} // namespace braid
