//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_MEDIAN_H
#define BRAID_BASE_MEDIAN_H

#include <algorithm>
#include <cstddef>
#include <vector>

namespace braid::runtime {

/// Of at least one number; of an even number of them the mean of the two in the middle.
inline double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const size_t half = numbers.size() / 2;
  return numbers.size() % 2 != 0 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

} // namespace braid::runtime
#endif // BRAID_BASE_MEDIAN_H
