//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/Mesh.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace braid::runtime {

int64_t Mesh::numRanks() const {
  return std::accumulate(axes.begin(), axes.end(), int64_t(1),
                         [](int64_t n, const Axis &a) { return n * a.size; });
}

Status Mesh::verify() const {
  std::set<std::string> seen;
  int64_t ranks = 1;
  for (const Axis &axis : axes) {
    if (axis.name.empty())
      return Status::error("mesh ", inQuotes(name), " has an axis without a name");
    if (axis.size < 1)
      return Status::error("mesh axis ", inQuotes(axis.name), " expects a size of at least 1, got ",
                           axis.size);
    if (!seen.insert(axis.name).second)
      return Status::error("mesh ", inQuotes(name), " names axis ", inQuotes(axis.name), " twice");
    if (axis.size > kMaxRanks / ranks)
      return Status::error("mesh ", inQuotes(name), " expects at most ", kMaxRanks, " ranks");
    ranks *= axis.size;
  }
  if (order.empty())
    return {};
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> expected(static_cast<size_t>(numRanks()));
  std::iota(expected.begin(), expected.end(), 0);
  if (sorted != expected)
    return Status::error("mesh ", inQuotes(name), " expects 'order' to be a permutation of 0..",
                         numRanks() - 1);
  return {};
}

Status Mesh::verify(const std::vector<AxisRef> &refs) const {
  for (size_t i = 0; i < refs.size(); ++i) {
    ASSIGN_OR_RETURN(int64_t size, axisSize(refs[i]));
    for (size_t j = 0; j < i; ++j) {
      // Sub-axes of one axis are disjoint if one of them is major to the other.
      int64_t otherSize = *axisSize(refs[j]);
      if (refs[i].name == refs[j].name && refs[j].pre % (refs[i].pre * size) != 0 &&
          refs[i].pre % (refs[j].pre * otherSize) != 0)
        return Status::error("axis ", inQuotes(refs[i].name), " is used twice");
    }
  }
  return {};
}

Result<int64_t> Mesh::axisSize(const AxisRef &axis) const {
  for (const Axis &candidate : axes) {
    if (candidate.name != axis.name)
      continue;
    if (axis.size == 0 && axis.pre == 1)
      return candidate.size;
    if (axis.pre < 1 || axis.size < 1 || candidate.size % axis.pre != 0 ||
        (candidate.size / axis.pre) % axis.size != 0)
      return Status::error("sub-axis (", axis.pre, ")", axis.size, " does not divide axis ",
                           inQuotes(axis.name), " of size ", candidate.size);
    return axis.size;
  }
  return Status::error("unknown axis ", inQuotes(axis.name), " in mesh ", inQuotes(name));
}

Result<int64_t> Mesh::numShards(const std::vector<AxisRef> &refs) const {
  int64_t product = 1;
  for (const AxisRef &ref : refs) {
    ASSIGN_OR_RETURN(int64_t size, axisSize(ref));
    product *= size;
  }
  return product;
}

std::vector<int64_t> Mesh::coordinates(int64_t rank) const {
  int64_t tuple = rank;
  if (!order.empty())
    tuple = std::find(order.begin(), order.end(), rank) - order.begin();
  std::vector<int64_t> result(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    result[i] = tuple % axes[i].size;
    tuple /= axes[i].size;
  }
  return result;
}

Result<int64_t> Mesh::groupPosition(int64_t rank, const std::vector<AxisRef> &refs) const {
  std::vector<int64_t> coords = coordinates(rank);
  int64_t position = 0;
  for (const AxisRef &ref : refs) {
    ASSIGN_OR_RETURN(int64_t size, axisSize(ref));
    size_t i = 0;
    while (axes[i].name != ref.name)
      ++i;
    int64_t post = axes[i].size / (ref.pre * size);
    position = position * size + (coords[i] / post) % size;
  }
  return position;
}

Result<std::vector<int64_t>> Mesh::group(int64_t rank, const std::vector<AxisRef> &refs) const {
  ASSIGN_OR_RETURN(int64_t count, numShards(refs));
  // A member differs from `rank` only in its coordinates along the axes and sub-axes.
  std::vector<int64_t> base = coordinates(rank);
  std::vector<int64_t> members(static_cast<size_t>(count));
  for (int64_t position = 0; position < count; ++position) {
    std::vector<int64_t> coords = base;
    int64_t rest = position;
    for (size_t r = refs.size(); r-- > 0;) {
      int64_t size = *axisSize(refs[r]);
      size_t i = 0;
      while (axes[i].name != refs[r].name)
        ++i;
      int64_t post = axes[i].size / (refs[r].pre * size);
      int64_t current = (coords[i] / post) % size;
      coords[i] += (rest % size - current) * post;
      rest /= size;
    }
    int64_t tuple = 0;
    for (size_t i = 0; i < axes.size(); ++i)
      tuple = tuple * axes[i].size + coords[i];
    members[static_cast<size_t>(position)] =
        order.empty() ? tuple : order[static_cast<size_t>(tuple)];
  }
  return members;
}

int64_t shiftedPosition(int64_t position, int64_t shift, int64_t count) {
  const int64_t forward = shift % count < 0 ? shift % count + count : shift % count;
  // Without a sum beyond `count`.
  return position % count < count - forward ? position % count + forward
                                            : position % count - (count - forward);
}

Result<Box> localBox(const Mesh &mesh, int64_t rank, const std::vector<int64_t> &globalShape,
                     const Sharding &sharding) {
  Box box{std::vector<int64_t>(globalShape.size(), 0), globalShape};
  if (sharding.dims.empty())
    return box;
  if (sharding.dims.size() != globalShape.size())
    return Status::error("sharding of ", sharding.dims.size(), " dimensions on a tensor of rank ",
                         globalShape.size());
  std::vector<AxisRef> all;
  for (const std::vector<AxisRef> &dim : sharding.dims)
    all.insert(all.end(), dim.begin(), dim.end());
  RETURN_IF_ERROR(mesh.verify(all));
  for (size_t d = 0; d < globalShape.size(); ++d) {
    ASSIGN_OR_RETURN(int64_t shards, mesh.numShards(sharding.dims[d]));
    if (globalShape[d] % shards != 0)
      return Status::error("dimension ", d, " of size ", globalShape[d], " does not divide into ",
                           shards, " shards");
    ASSIGN_OR_RETURN(int64_t position, mesh.groupPosition(rank, sharding.dims[d]));
    box.sizes[d] = globalShape[d] / shards;
    box.offsets[d] = position * box.sizes[d];
  }
  return box;
}

} // namespace braid::runtime
