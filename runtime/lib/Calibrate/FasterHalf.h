//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What counts of the times of several loads of a program, in calibrations and in the benchmark that
// compares them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CALIBRATE_FASTERHALF_H
#define BRAID_CALIBRATE_FASTERHALF_H

#include <algorithm>
#include <numeric>
#include <vector>

namespace braid::runtime {

/// The mean of the faster half, rounded up, of at least one time. What others do only makes a load
/// slower; its place in the caches, and the cores of the host that a virtual machine has meanwhile,
/// make it slower or faster by a tenth, so that the least of many would be a rare one.
inline double meanOfFasterHalf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  times.resize((times.size() + 1) / 2);
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

} // namespace braid::runtime
#endif // BRAID_CALIBRATE_FASTERHALF_H
