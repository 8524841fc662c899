//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/Kernels.h"

#include <cmath>

namespace braid::interp {

Result<RotaryTables> rotaryTables(DType type, int64_t seq, const std::vector<double> &frequencies,
                                  double scale, const Tensor *positionOffset) {
  if (positionOffset && (positionOffset->isFloat() || positionOffset->rank() != 1))
    return Status::error("rotary_table expects an integer position_offset of rank 1, got " +
                         positionOffset->typeString());
  auto n = static_cast<int64_t>(frequencies.size());
  int64_t batch = positionOffset ? positionOffset->dim(0) : 1;
  std::vector<double> cos, sin;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t s = 0; s < seq; ++s)
      for (double frequency : frequencies) {
        // Added as doubles, which do not overflow: the offset is data.
        const int64_t offset = positionOffset ? positionOffset->ints()[b] : 0;
        double angle = (static_cast<double>(s) + static_cast<double>(offset)) * frequency;
        cos.push_back(scale * std::cos(angle));
        sin.push_back(scale * std::sin(angle));
      }
  Shape shape{seq, n};
  if (positionOffset)
    shape.insert(shape.begin(), batch);
  return RotaryTables{Tensor::ofFloats(type, shape, std::move(cos)),
                      Tensor::ofFloats(type, shape, std::move(sin))};
}

Result<Tensor> rotary(const Tensor &input, const Tensor &cos, const Tensor &sin) {
  if (input.rank() != 4 || !input.isFloat() || input.dim(3) % 2 != 0)
    return Status::error("rotary expects a floating-point input [batch, seq, heads, 2 * n], got " +
                         input.typeString());
  int64_t batch = input.dim(0), seq = input.dim(1), heads = input.dim(2), n = input.dim(3) / 2;
  for (const Tensor *table : {&cos, &sin})
    if (!table->isFloat() ||
        (table->shape() != Shape{seq, n} && table->shape() != Shape{batch, seq, n}) ||
        table->rank() != cos.rank())
      return Status::error("rotary expects floating-point tables [" + std::to_string(seq) + ", " +
                           std::to_string(n) + "], with or without the batch, for " +
                           input.typeString() + ", got " + table->typeString());
  std::vector<double> values(static_cast<size_t>(input.numElements()));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t s = 0; s < seq; ++s) {
      int64_t row = (cos.rank() == 3 ? b * seq + s : s) * n;
      for (int64_t h = 0; h < heads; ++h) {
        int64_t base = ((b * seq + s) * heads + h) * 2 * n;
        for (int64_t i = 0; i < n; ++i) {
          double c = cos.floats()[row + i], d = sin.floats()[row + i];
          double x = input.floats()[base + i], y = input.floats()[base + n + i];
          values[static_cast<size_t>(base + i)] = x * c - y * d;
          values[static_cast<size_t>(base + n + i)] = y * c + x * d;
        }
      }
    }
  return Tensor::ofFloats(input.dtype(), input.shape(), std::move(values));
}

} // namespace braid::interp
