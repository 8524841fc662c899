//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveExtents.h"
#include "MessageSlots.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>

namespace braid::runtime {

namespace {

/// The shape of a collective's result, from its input's, while its extents are computed.
struct Shapes {
  const std::vector<int64_t> &input;
  std::vector<int64_t> output;
  int64_t ranks;

  Status isDim(size_t dim) const {
    if (dim < input.size())
      return {};
    return Status::error("expects a dimension of " + shapeString(input) + ", got " +
                         std::to_string(dim));
  }
  Status divide(size_t dim) {
    RETURN_IF_ERROR(isDim(dim));
    if (input[dim] % ranks != 0)
      return Status::error("expects dimension " + std::to_string(dim) + " of " +
                           shapeString(input) + " to divide by " + std::to_string(ranks));
    output[dim] /= ranks;
    return {};
  }
};

Status setChunks(Shapes &shapes, const Collective &c, CollectiveValue &value) {
  const auto dim = static_cast<size_t>(c.dim);
  const bool scatter = c.kind == CollectiveKind::reduceScatter;
  RETURN_IF_ERROR(scatter ? shapes.divide(dim) : shapes.isDim(dim));
  value.inner = 1;
  for (size_t d = 0; d < shapes.output.size(); ++d)
    (d < dim ? value.outer : value.inner) *= shapes.output[d];
  if (!scatter)
    shapes.output[dim] *= shapes.ranks;
  return {};
}

Status setExchanged(Shapes &shapes, const Collective &c, CollectiveValue &value) {
  const auto dim = static_cast<size_t>(c.dim), concat = static_cast<size_t>(c.concatDim);
  RETURN_IF_ERROR(shapes.isDim(concat));
  RETURN_IF_ERROR(shapes.divide(dim));
  const size_t first = std::min(dim, concat), second = std::max(dim, concat);
  value.inner = 1;
  for (size_t d = 0; d < shapes.output.size(); ++d) {
    int64_t &extent = d < first                       ? value.outer
                      : d > second || first == second ? value.inner
                      : d == first                    ? value.first
                      : d == second                   ? value.second
                                                      : value.between;
    extent *= shapes.output[d];
  }
  shapes.output[concat] *= shapes.ranks;
  return {};
}

/// Blocks, rows of a block, elements of a row; the counts are blocks of one element.
Status setCounted(Shapes &shapes, bool isCounts, DType dtype, CollectiveValue &value) {
  if (isCounts && (shapes.input.size() != 1 || (dtype != DType::i32 && dtype != DType::i64)))
    return Status::error("expects counts as the last value, i32 or i64 for each block, got " +
                         std::string(name(dtype)) + " " + shapeString(shapes.input));
  if (!isCounts && shapes.input.size() < 2)
    return Status::error("expects blocks of rows, got " + shapeString(shapes.input));
  RETURN_IF_ERROR(shapes.divide(0));
  value.outer = shapes.output[0];
  value.inner = 1;
  for (size_t d = 1; d < shapes.input.size(); ++d)
    (d == 1 ? value.first : value.inner) *= shapes.input[d];
  shapes.output = shapes.input;
  return {};
}

} // namespace

Status setExtents(const Collective &c, const Tensor &input, const Tensor &output, bool isLast,
                  CollectiveValue &value) {
  value.dtype = input.dtype;
  Shapes shapes{input.shape, input.shape, static_cast<int64_t>(c.group->ranks.size())};
  Status status;
  switch (c.kind) {
  case CollectiveKind::allReduce:
  case CollectiveKind::reduce:
  case CollectiveKind::broadcast:
  case CollectiveKind::permute:
  case CollectiveKind::send:
  case CollectiveKind::recv:
    value.inner = input.numElements();
    break;
  case CollectiveKind::reduceScatter:
  case CollectiveKind::allGather:
    status = setChunks(shapes, c, value);
    break;
  case CollectiveKind::allToAll:
    status = setExchanged(shapes, c, value);
    break;
  case CollectiveKind::allToAllV:
    status = setCounted(shapes, isLast, input.dtype, value);
    break;
  }
  RETURN_IF_ERROR(status);
  if (output.dtype != input.dtype || output.shape != shapes.output)
    return Status::error(std::string("expects output ") + name(input.dtype) + " " +
                         shapeString(shapes.output) + ", got " + name(output.dtype) + " " +
                         shapeString(output.shape));
  return {};
}

int64_t countedRows(const Collective &c) {
  int64_t rows = INT64_MAX;
  for (size_t v = 0; v + 1 < c.values.size(); ++v)
    rows = std::min(rows, c.values[v].first);
  return rows;
}

Status noRoom(const Collective &c, int64_t count, int64_t block) {
  return Status::error(signature(c) + " expects counts in [0, " + std::to_string(countedRows(c)) +
                           "], got " + std::to_string(count) + " at block " + std::to_string(block),
                       Code::rankFailed);
}

bool isSource(const Collective &c) {
  switch (c.kind) {
  case CollectiveKind::reduce:
    return c.position != c.root;
  case CollectiveKind::broadcast:
    return c.position == c.root;
  case CollectiveKind::permute:
    return std::any_of(c.pairs.begin(), c.pairs.end(), [&](auto pair) {
      return pair.first == c.position && pair.second != c.position;
    });
  case CollectiveKind::send:
    return MessageSlots::peer(c) >= 0;
  default:
    return true;
  }
}

} // namespace braid::runtime
