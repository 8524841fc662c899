//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rows of 8-bit integers, as the text of braid/Base/RowQuantization.h defines them: the other
// implementations are tested against this one, so it shares no code with them.
//
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/Kernels.h"

#include <cmath>
#include <limits>

namespace braid::interp {

QuantizedRows quantizeRows(const Tensor &input) {
  const Tensor stored = input.roundedToStorage();
  const int64_t columns = input.shape().back();
  std::vector<int64_t> values;
  std::vector<double> scales;
  for (const double *row = stored.floats(), *end = row + stored.numElements(); row < end;
       row += columns) {
    float most = 0;
    bool finite = true;
    for (int64_t i = 0; i < columns; ++i) {
      const auto magnitude = std::fabs(static_cast<float>(row[i]));
      finite = finite && std::isfinite(magnitude);
      most = std::fmax(most, magnitude);
    }
    float scale = finite ? most / 127.0F : std::numeric_limits<float>::quiet_NaN();
    const bool isNormal = scale >= std::ldexp(1.0F, -126);
    if (finite && !isNormal)
      scale = 0;
    scales.push_back(static_cast<double>(scale));
    for (int64_t i = 0; i < columns; ++i)
      values.push_back(
          isNormal ? static_cast<int64_t>(std::nearbyintf(static_cast<float>(row[i]) / scale)) : 0);
  }
  return {Tensor::ofInts(DType::i8, input.shape(), std::move(values)),
          Tensor::ofFloats(DType::f32, Shape(input.shape().begin(), input.shape().end() - 1),
                           std::move(scales))};
}

} // namespace braid::interp
