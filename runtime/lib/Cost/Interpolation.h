//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Numbers between those that were measured.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_INTERPOLATION_H
#define BRAID_COST_INTERPOLATION_H

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace braid::cost {

/// Rates at every combination of some sizes. Between them the logarithm of the rate is linear in
/// the logarithm of each size; beyond them it is that of the nearest size.
template <size_t N> class RateGrid {
public:
  using Sizes = std::array<int64_t, N>;

  /// The points are a full grid, in any order, and all numbers positive.
  explicit RateGrid(const std::vector<std::pair<Sizes, double>> &points) {
    for (size_t d = 0; d < N; ++d) {
      for (const auto &[sizes, rate] : points)
        axes[d].push_back(sizes[d]);
      std::sort(axes[d].begin(), axes[d].end());
      axes[d].erase(std::unique(axes[d].begin(), axes[d].end()), axes[d].end());
    }
    logRates.resize(points.size());
    for (const auto &[sizes, rate] : points) {
      size_t index = 0;
      for (size_t d = 0; d < N; ++d)
        index = index * axes[d].size() +
                static_cast<size_t>(std::lower_bound(axes[d].begin(), axes[d].end(), sizes[d]) -
                                    axes[d].begin());
      logRates[index] = std::log(rate);
    }
  }
  bool empty() const { return logRates.empty(); }

  double rate(const std::array<double, N> &sizes) const {
    std::array<size_t, N> low;
    std::array<double, N> part; // of the way from the lower to the next size
    for (size_t d = 0; d < N; ++d) {
      const std::vector<int64_t> &axis = axes[d];
      size_t next = 0;
      while (next < axis.size() && static_cast<double>(axis[next]) < sizes[d])
        ++next;
      if (next == 0 || next == axis.size()) {
        low[d] = next == 0 ? 0 : next - 1;
        part[d] = 0;
        continue;
      }
      low[d] = next - 1;
      const double from = std::log(static_cast<double>(axis[next - 1])),
                   to = std::log(static_cast<double>(axis[next]));
      part[d] = (std::log(sizes[d]) - from) / (to - from);
    }
    double sum = 0;
    for (size_t corner = 0; corner < size_t(1) << N; ++corner) {
      double weight = 1;
      size_t index = 0;
      for (size_t d = 0; d < N; ++d) {
        const bool upper = (corner >> d & 1) != 0;
        weight *= upper ? part[d] : 1 - part[d];
        index = index * axes[d].size() + low[d] + (upper && part[d] > 0 ? 1 : 0);
      }
      if (weight > 0)
        sum += weight * logRates[index];
    }
    return std::exp(sum);
  }

private:
  std::array<std::vector<int64_t>, N> axes;
  std::vector<double> logRates; ///< row-major
};

/// Seconds by bytes: linear between the points, in proportion to the bytes below the first one, and
/// beyond the last at the rate of the last two (of the last one alone, if there is only one). The
/// time does not shrink there, even if it does between these two.
inline double secondsAt(const std::vector<std::pair<double, double>> &points, double bytes) {
  if (points.empty() || bytes <= 0)
    return 0;
  if (bytes <= points.front().first)
    return points.front().second * bytes / points.front().first;
  size_t next = 1;
  while (next < points.size() && points[next].first < bytes)
    ++next;
  if (points.size() == 1)
    return points[0].second * bytes / points[0].first;
  next = std::min(next, points.size() - 1);
  const auto &[x0, y0] = points[next - 1];
  const auto &[x1, y1] = points[next];
  if (bytes > x1 && y1 < y0)
    return y1;
  return y0 + (bytes - x0) * (y1 - y0) / (x1 - x0);
}

} // namespace braid::cost
#endif // BRAID_COST_INTERPOLATION_H
