//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/Kernels.h"

#include "braid/Base/Philox.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid::interp {

Result<Tensor> dropout(const Tensor &input, const std::vector<const Tensor *> &positions,
                       int64_t seed, uint32_t site, double rate) {
  size_t rank = input.rank();
  if (!input.isFloat() || rank < 1 || rank > 3 || positions.size() != rank)
    return Status::error("dropout expects a floating-point input of 1 to 3 dimensions with "
                         "positions for each, got " +
                         input.typeString() + " and " + std::to_string(positions.size()));
  for (size_t d = 0; d < rank; ++d)
    if (positions[d]->isFloat() || positions[d]->shape() != Shape{input.dim(d)})
      return Status::error("dropout expects integer positions [" + std::to_string(input.dim(d)) +
                           "] of dimension " + std::to_string(d) + ", got " +
                           positions[d]->typeString());
  if (!(rate >= 0 && rate < 1))
    return Status::error("dropout expects a rate of at least 0 and below 1, got " +
                         std::to_string(rate));
  auto bits = static_cast<uint64_t>(seed);
  std::array<uint32_t, 2> key{static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
  const double threshold = std::ldexp(rate, 32), scale = 1 / (1 - rate);
  std::vector<double> out(static_cast<size_t>(input.numElements()));
  for (int64_t i = 0; i < input.numElements(); ++i) {
    Shape at = unflatten(i, input.shape());
    std::array<uint32_t, 4> counter{0, 0, 0, site};
    for (size_t d = 0; d < rank; ++d)
      counter[d] = static_cast<uint32_t>(positions[d]->ints()[at[d]]);
    bool kept = runtime::philox4x32(counter, key)[0] >= threshold;
    out[static_cast<size_t>(i)] = kept ? input.floats()[i] * scale : 0;
  }
  return Tensor::ofFloats(input.dtype(), input.shape(), std::move(out));
}

Result<Tensor> crossEntropy(const Tensor &logits, const Tensor &labels,
                            std::optional<int64_t> ignore) {
  if (!logits.isFloat() || logits.rank() < 1)
    return Status::error("cross_entropy expects floating-point logits of rank 1 or more, got " +
                         logits.typeString());
  Shape rows(logits.shape().begin(), logits.shape().end() - 1);
  if (labels.isFloat() || labels.shape() != rows)
    return Status::error("cross_entropy expects an integer label for each row of " +
                         logits.typeString() + ", got " + labels.typeString());
  int64_t classes = logits.shape().back();
  std::vector<double> out(static_cast<size_t>(labels.numElements()));
  for (int64_t i = 0; i < labels.numElements(); ++i) {
    int64_t label = labels.ints()[i];
    if (label == ignore)
      continue;
    if (label < 0 || label >= classes)
      return Status::error("cross_entropy expects labels from 0 to " + std::to_string(classes - 1) +
                           ", got " + std::to_string(label) + " at label " + std::to_string(i));
    const double *row = logits.floats() + i * classes;
    double most = *std::max_element(row, row + classes), total = 0;
    for (int64_t c = 0; c < classes; ++c)
      total += std::exp(row[c] - most);
    out[static_cast<size_t>(i)] = std::log(total) + (most - row[label]);
  }
  return Tensor::ofFloats(logits.dtype(), std::move(rows), std::move(out));
}

} // namespace braid::interp
