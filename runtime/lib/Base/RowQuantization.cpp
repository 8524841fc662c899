//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/RowQuantization.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid::runtime {

float quantizeRow(const float *x, int64_t count, int8_t *values) {
  float most = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    most = std::max(most, std::fabs(x[i]));
    finite = finite && std::isfinite(x[i]);
  }
  const float scale = most / 127;
  if (!finite || scale < std::numeric_limits<float>::min()) {
    if (values)
      std::fill_n(values, count, int8_t(0));
    return finite ? 0 : std::numeric_limits<float>::quiet_NaN();
  }
  // A number of at most 2^22 is rounded to an integer where it is added to 1.5 * 2^23.
  constexpr float kRound = 12582912;
  for (int64_t i = 0; values && i < count; ++i)
    values[i] = static_cast<int8_t>(static_cast<int32_t>(x[i] / scale + kRound - kRound));
  return scale;
}

double expectedRowError(int64_t count) {
  // The largest of n normal numbers is about sqrt(2 ln(2n)) deviations, and an element's error is
  // uniform within half a scale.
  const double most = std::sqrt(2 * std::log(2 * static_cast<double>(std::max<int64_t>(count, 2))));
  return most / 127 / std::sqrt(12.0);
}

} // namespace braid::runtime
