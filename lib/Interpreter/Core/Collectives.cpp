//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/Collectives.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <cmath>

namespace braid::interp {

bool Collective::isUniform() const {
  return kind == CollectiveKind::allReduce || kind == CollectiveKind::allGather ||
         kind == CollectiveKind::broadcast;
}

std::string Collective::describe() const {
  std::string text = runtime::name(kind);
  if (runtime::hasReduction(kind))
    text += std::string(" ") + runtime::name(reduce);
  switch (kind) {
  case CollectiveKind::allReduce:
  case CollectiveKind::allToAllV:
    break;
  case CollectiveKind::reduceScatter:
  case CollectiveKind::allGather:
    text += " dim " + std::to_string(dim);
    break;
  case CollectiveKind::allToAll:
    text += " split " + std::to_string(dim) + " concat " + std::to_string(concatDim);
    break;
  case CollectiveKind::reduce:
    text += " to " + std::to_string(root);
    break;
  case CollectiveKind::broadcast:
    text += " from " + std::to_string(root);
    break;
  case CollectiveKind::permute:
  case CollectiveKind::send:
  case CollectiveKind::recv:
    text += " pairs [";
    for (size_t i = 0; i < pairs.size(); ++i)
      text += (i ? ", " : "") + std::to_string(pairs[i].first) + " -> " +
              std::to_string(pairs[i].second);
    text += "]";
    break;
  }
  text += " over {";
  for (size_t i = 0; i < axes.size(); ++i) {
    text += (i ? ", " : "") + axes[i].name;
    if (axes[i].size != 0)
      text += ":(" + std::to_string(axes[i].pre) + ")" + std::to_string(axes[i].size);
  }
  text += "}";
  return tag == 0 ? text : text + " tag " + std::to_string(tag);
}

namespace {
template <typename T> T combineTwo(ReduceKind kind, T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (kind != ReduceKind::sum && (std::isnan(a) || std::isnan(b)))
      return std::isnan(a) ? a : b;
  switch (kind) {
  case ReduceKind::sum:
    return a + b;
  case ReduceKind::max:
    return std::max(a, b);
  case ReduceKind::min:
    return std::min(a, b);
  }
  return a;
}

Status checkDim(const Tensor &tensor, int64_t dim) {
  if (dim < 0 || dim >= static_cast<int64_t>(tensor.rank()))
    return Status::error("expects a dimension of " + tensor.typeString() + ", got " +
                         std::to_string(dim));
  return {};
}

Status checkPosition(int64_t position, size_t ranks) {
  if (position < 0 || position >= static_cast<int64_t>(ranks))
    return Status::error("expects a position in a group of " + std::to_string(ranks) +
                         " ranks, got " + std::to_string(position));
  return {};
}
} // namespace

Result<Tensor> combine(ReduceKind kind, const std::vector<Tensor> &parts) {
  const Tensor &first = parts.front();
  for (const Tensor &part : parts)
    if (part.shape() != first.shape() || part.dtype() != first.dtype())
      return Status::error("expects parts of type " + first.typeString() + ", got " +
                           part.typeString());
  auto reduce = [&](auto values, auto elements) {
    for (size_t p = 1; p < parts.size(); ++p) {
      auto part = elements(parts[p]);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = combineTwo(kind, values[i], part[i]);
    }
    return values;
  };
  int64_t count = first.numElements();
  if (first.isFloat())
    return Tensor::ofFloats(first.dtype(), first.shape(),
                            reduce(std::vector<double>(first.floats(), first.floats() + count),
                                   [](const Tensor &t) { return t.floats(); }));
  return Tensor::ofInts(first.dtype(), first.shape(),
                        reduce(std::vector<int64_t>(first.ints(), first.ints() + count),
                               [](const Tensor &t) { return t.ints(); }));
}

Result<Tensor> concatenate(const std::vector<Tensor> &parts, int64_t dim) {
  const Tensor &first = parts.front();
  RETURN_IF_ERROR(checkDim(first, dim));
  auto d = static_cast<size_t>(dim);
  Shape shape = first.shape();
  shape[d] = 0;
  std::vector<PlacedTensor> placed;
  for (const Tensor &part : parts) {
    Shape expected = first.shape();
    if (part.rank() == first.rank())
      expected[d] = part.dim(d);
    if (part.shape() != expected || part.dtype() != first.dtype())
      return Status::error("expects parts that differ from " + first.typeString() +
                           " in dimension " + std::to_string(dim) + " only, got " +
                           part.typeString());
    runtime::Box box{Shape(part.rank(), 0), part.shape()};
    box.offsets[d] = shape[d];
    shape[d] += part.dim(d);
    placed.push_back({std::move(box), part});
  }
  return assemble(first.dtype(), std::move(shape), placed);
}

Result<Tensor> sliceShard(const Tensor &tensor, int64_t dim, int64_t index, int64_t count) {
  RETURN_IF_ERROR(checkDim(tensor, dim));
  auto d = static_cast<size_t>(dim);
  if (tensor.dim(d) % count != 0)
    return Status::error("expects dimension " + std::to_string(dim) + " of " + tensor.typeString() +
                         " to divide into " + std::to_string(count) + " shards");
  runtime::Box box{Shape(tensor.rank(), 0), tensor.shape()};
  box.sizes[d] /= count;
  box.offsets[d] = index * box.sizes[d];
  return extractBox(tensor, box);
}

Result<Tensor> apply(const Collective &collective, const std::vector<Tensor> &parts,
                     int64_t position) {
  switch (collective.kind) {
  case CollectiveKind::allReduce:
    return combine(collective.reduce, parts);
  case CollectiveKind::allGather:
    return concatenate(parts, collective.dim);
  case CollectiveKind::reduceScatter:
  case CollectiveKind::allToAll: {
    std::vector<Tensor> slices;
    for (const Tensor &part : parts) {
      ASSIGN_OR_RETURN(Tensor slice, sliceShard(part, collective.dim, position,
                                                static_cast<int64_t>(parts.size())));
      slices.push_back(std::move(slice));
    }
    return collective.kind == CollectiveKind::allToAll ? concatenate(slices, collective.concatDim)
                                                       : combine(collective.reduce, slices);
  }
  case CollectiveKind::reduce:
  case CollectiveKind::broadcast: {
    RETURN_IF_ERROR(checkPosition(collective.root, parts.size()));
    if (collective.kind == CollectiveKind::broadcast)
      return parts[static_cast<size_t>(collective.root)];
    if (position == collective.root)
      return combine(collective.reduce, parts);
    return Tensor::zeros(parts.front().dtype(), parts.front().shape());
  }
  case CollectiveKind::permute:
    for (auto [source, target] : collective.pairs) {
      for (int64_t end : {source, target})
        RETURN_IF_ERROR(checkPosition(end, parts.size()));
      if (target == position)
        return parts[static_cast<size_t>(source)];
    }
    return Tensor::zeros(parts.front().dtype(), parts.front().shape());
  case CollectiveKind::allToAllV:
  case CollectiveKind::send:
  case CollectiveKind::recv:
    break;
  }
  return Status::error("expects a collective of independent values, got " + collective.describe());
}

namespace {
/// The first rows of each block, as many as its count; zeros beyond.
Result<Tensor> countedRows(const Tensor &value, const Tensor &counts) {
  if (counts.isFloat() || counts.rank() != 1 || value.rank() < 2 || value.dim(0) != counts.dim(0))
    return Status::error("expects blocks by capacity with a count for each block, got " +
                         value.typeString() + " and " + counts.typeString());
  int64_t blocks = value.dim(0), capacity = value.dim(1);
  std::vector<PlacedTensor> placed;
  for (int64_t b = 0; b < blocks; ++b) {
    int64_t count = counts.ints()[b];
    if (count < 0 || count > capacity)
      return Status::error("expects counts in [0, " + std::to_string(capacity) + "], got " +
                           std::to_string(count) + " at block " + std::to_string(b));
    runtime::Box box{Shape(value.rank(), 0), value.shape()};
    box.offsets[0] = b;
    box.sizes[0] = 1;
    box.sizes[1] = count;
    placed.push_back({box, extractBox(value, box)});
  }
  return assemble(value.dtype(), value.shape(), placed);
}
} // namespace

Result<std::vector<Tensor>> applyAll(const Collective &collective,
                                     const std::vector<std::vector<Tensor>> &contributions,
                                     int64_t position) {
  Collective single = collective;
  bool counted = collective.kind == CollectiveKind::allToAllV;
  if (counted) // exchanges equally many blocks
    single.kind = CollectiveKind::allToAll;
  std::vector<Tensor> results;
  size_t count = contributions.front().size();
  for (size_t v = 0; v < count; ++v) {
    std::vector<Tensor> parts;
    for (const std::vector<Tensor> &contribution : contributions) {
      if (!counted || v + 1 == count) {
        parts.push_back(contribution[v]);
        continue;
      }
      ASSIGN_OR_RETURN(Tensor rows, countedRows(contribution[v], contribution.back()));
      parts.push_back(std::move(rows));
    }
    ASSIGN_OR_RETURN(Tensor result, apply(single, parts, position));
    results.push_back(std::move(result));
  }
  return results;
}

} // namespace braid::interp
