//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/Weights.h"

#include "braid/Base/RowQuantization.h"
#include "braid/Base/Slices.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace braid::runtime {

Status readParameter(WeightSource &source, const Parameter &parameter, const Box &box, void *dest) {
  if (!parameter.quantized)
    return source.read(parameter, box, dest);
  RETURN_IF_ERROR(verifyRead(parameter, box));
  constexpr int64_t kChunk = int64_t(1) << 20; // elements
  const bool isScales = parameter.quantized == QuantizedPart::scales;
  const Parameter matrix = sourceOf(parameter);
  const int64_t columns = matrix.globalShape[1], rows = box.sizes[0];
  const int64_t step = std::max<int64_t>(1, std::min(rows, kChunk / columns));
  std::vector<float> values(static_cast<size_t>(step * columns));
  std::vector<int8_t> quantized(static_cast<size_t>(columns));
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t count = std::min(step, rows - begin), first = box.offsets[0] + begin;
    RETURN_IF_ERROR(source.read(matrix, {{first, 0}, {count, columns}}, values.data()));
    for (int64_t row = 0; row < count; ++row) {
      const float scale = quantizeRow(values.data() + row * columns, columns,
                                      isScales ? nullptr : quantized.data());
      if (std::isnan(scale))
        return Status::error("parameter ", inQuotes(parameter.name),
                             " expects finite weights to quantize, got others in row ",
                             first + row);
      if (isScales)
        static_cast<float *>(dest)[begin + row] = scale;
      else
        std::copy_n(quantized.data() + box.offsets[1], box.sizes[1],
                    static_cast<int8_t *>(dest) + (begin + row) * box.sizes[1]);
    }
  }
  return {};
}

Status loadParameter(WeightSource &source, const Mesh &mesh, int64_t rank,
                     const Parameter &parameter, void *dest) {
  if (!parameter.on.contains(mesh, rank))
    return {};
  ASSIGN_OR_RETURN(Box box, localBox(mesh, rank, parameter.globalShape, parameter.sharding)
                                .within("parameter " + inQuotes(parameter.name)));
  return readParameter(source, parameter, box, dest);
}

Status loadParameters(WeightSource &source, const Mesh &mesh, int64_t rank,
                      const std::vector<Parameter> &parameters,
                      const std::function<void *(size_t)> &place,
                      const std::function<void(size_t, size_t)> &progress) {
  RETURN_IF_ERROR(mesh.verify());
  if (rank < 0 || rank >= mesh.numRanks())
    return Status::error("expects a rank below ", mesh.numRanks(), ", got ", rank);
  for (size_t i = 0; i < parameters.size(); ++i) {
    RETURN_IF_ERROR(loadParameter(source, mesh, rank, parameters[i], place(i)));
    if (progress)
      progress(i + 1, parameters.size());
  }
  return {};
}

} // namespace braid::runtime
