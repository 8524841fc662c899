//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What counts of several times, in calibrations and in the benchmark that compares them. Each
// expects at least one time.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CALIBRATE_STATISTICS_H
#define BRAID_CALIBRATE_STATISTICS_H

#include "runtime/lib/Base/Median.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace braid::runtime {

/// The mean of the faster half, rounded up, of the times of loads of a program. What others do only
/// makes a load slower; its place in the caches makes it slower or faster, so that the least of
/// many would be a rare one.
inline double meanOfFasterHalf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  times.resize((times.size() + 1) / 2);
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

/// The means over repetitions that follow each other and take so many seconds together, or over all
/// where these take less. There is one at least.
inline std::vector<double> meansOfRepetitions(const std::vector<double> &times, double seconds) {
  std::vector<double> means;
  double sum = 0;
  size_t count = 0;
  for (double time : times) {
    sum += time;
    ++count;
    if (sum >= seconds) {
      means.push_back(sum / static_cast<double>(count));
      sum = 0;
      count = 0;
    }
  }
  // The last ones are too few to tell, unless there are no others.
  if (means.empty() && count > 0)
    means.push_back(sum / static_cast<double>(count));
  return means;
}

/// How many times as long loads took from the number `first` on, as those before it did. Both are
/// at least one.
inline double endOverBegin(const std::vector<double> &times, size_t first) {
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(first);
  return meanOfFasterHalf({at, times.end()}) /
         std::max(meanOfFasterHalf({times.begin(), at}), 1e-9);
}

/// The geometric mean of the rates that are next to one in a full grid, in one direction. The grid
/// has two points at least, and `rate` gives that of a number in row-major order.
template <size_t N, typename Rate>
double meanOfNeighbours(const std::array<size_t, N> &lengths, size_t index, const Rate &rate) {
  double logarithms = 0;
  int count = 0;
  size_t step = 1;
  for (size_t d = N; d-- > 0; step *= lengths[d]) {
    const size_t at = index / step % lengths[d];
    if (at > 0)
      logarithms += std::log(rate(index - step));
    if (at + 1 < lengths[d])
      logarithms += std::log(rate(index + step));
    count += static_cast<int>(at > 0) + static_cast<int>(at + 1 < lengths[d]);
  }
  return std::exp(logarithms / count);
}

} // namespace braid::runtime
#endif // BRAID_CALIBRATE_STATISTICS_H
