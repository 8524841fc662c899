//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/RankSet.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <map>

namespace braid::runtime {

const std::vector<int64_t> *RankSet::along(const std::string &axis) const {
  for (const Axis &named : axes)
    if (named.axis == axis)
      return &named.coordinates;
  return nullptr;
}

bool RankSet::containsCoordinates(const Mesh &mesh, const std::vector<int64_t> &coordinates) const {
  for (size_t i = 0; i < mesh.axes.size(); ++i)
    if (const std::vector<int64_t> *listed = along(mesh.axes[i].name);
        listed && !std::binary_search(listed->begin(), listed->end(), coordinates[i]))
      return false;
  return true;
}

Status RankSet::verify(const Mesh &mesh) const {
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis &named = axes[i];
    Result<int64_t> size = mesh.axisSize({named.axis});
    RETURN_IF_ERROR(size.status());
    for (size_t j = 0; j < i; ++j)
      if (axes[j].axis == named.axis)
        return Status::error("axis ", inQuotes(named.axis), " is named twice");
    const std::string which = "axis " + inQuotes(named.axis) + " of size " + std::to_string(*size);
    if (named.coordinates.empty())
      return Status::error(which, ": expects at least one coordinate");
    for (size_t c = 0; c < named.coordinates.size(); ++c) {
      const int64_t coordinate = named.coordinates[c];
      if (coordinate < 0 || coordinate >= *size)
        return Status::error(which, " has no coordinate ", coordinate);
      if (c > 0 && coordinate <= named.coordinates[c - 1])
        return Status::error(which, ": expects ascending coordinates, got ", coordinate, " after ",
                             named.coordinates[c - 1]);
    }
    if (static_cast<int64_t>(named.coordinates.size()) == *size)
      return Status::error(which,
                           ": expects some of the coordinates, got all (leave out the axis)");
  }
  return {};
}

std::string rankSetString(const RankSet &ranks) {
  if (ranks.isAll())
    return "all ranks";
  std::string text;
  for (const RankSet::Axis &named : ranks.axes) {
    text += (text.empty() ? "{" : ", ") + named.axis + " = [";
    for (size_t i = 0; i < named.coordinates.size(); ++i)
      text += (i ? ", " : "") + std::to_string(named.coordinates[i]);
    text += "]";
  }
  return text + "}";
}

std::optional<RankSet> intersection(const RankSet &a, const RankSet &b) {
  RankSet both = a;
  for (const RankSet::Axis &named : b.axes) {
    auto same = std::find_if(both.axes.begin(), both.axes.end(),
                             [&](const auto &axis) { return axis.axis == named.axis; });
    if (same == both.axes.end()) {
      both.axes.push_back(named);
      continue;
    }
    std::vector<int64_t> common;
    std::set_intersection(same->coordinates.begin(), same->coordinates.end(),
                          named.coordinates.begin(), named.coordinates.end(),
                          std::back_inserter(common));
    if (common.empty())
      return std::nullopt;
    same->coordinates = std::move(common);
  }
  return both;
}

bool isInside(const RankSet &inner, const RankSet &outer) {
  return std::all_of(outer.axes.begin(), outer.axes.end(), [&](const RankSet::Axis &named) {
    const std::vector<int64_t> *listed = inner.along(named.axis);
    return listed && std::includes(named.coordinates.begin(), named.coordinates.end(),
                                   listed->begin(), listed->end());
  });
}

const AxisRef *incompleteAxis(const Mesh &mesh, const RankSet &ranks,
                              const std::vector<AxisRef> &axes) {
  for (const AxisRef &axis : axes) {
    const std::vector<int64_t> *listed = ranks.along(axis.name);
    if (!listed)
      continue;
    const int64_t whole = *mesh.axisSize({axis.name}), size = *mesh.axisSize(axis),
                  step = whole / (axis.pre * size);
    for (int64_t coordinate : *listed) {
      const int64_t base = coordinate - coordinate / step % size * step;
      for (int64_t i = 0; i < size; ++i)
        if (!std::binary_search(listed->begin(), listed->end(), base + i * step))
          return &axis;
    }
  }
  return nullptr;
}

Result<RankRoles> RankRoles::of(const Mesh &mesh, const std::vector<RankSet> &sets) {
  RankRoles result;
  if (std::all_of(sets.begin(), sets.end(), [](const RankSet &set) { return set.isAll(); }))
    return result;
  const int64_t ranks = mesh.numRanks();
  if (ranks > kMaxRanks)
    return Status::error("where ranks run different commands, expects at most ", kMaxRanks,
                         " ranks, got ", ranks);
  result.first.clear();
  result.roles.resize(static_cast<size_t>(ranks));
  std::map<std::vector<bool>, size_t> known;
  // In the order of coordinates, since a rank's coordinates are looked up in the mesh's order.
  for (int64_t tuple = 0; tuple < ranks; ++tuple) {
    const int64_t rank = mesh.order.empty() ? tuple : mesh.order[static_cast<size_t>(tuple)];
    std::vector<int64_t> coordinates(mesh.axes.size());
    int64_t rest = tuple;
    for (size_t i = mesh.axes.size(); i-- > 0; rest /= mesh.axes[i].size)
      coordinates[i] = rest % mesh.axes[i].size;
    std::vector<bool> isIn;
    for (const RankSet &set : sets)
      isIn.push_back(set.containsCoordinates(mesh, coordinates));
    auto [role, isNew] = known.try_emplace(std::move(isIn), result.first.size());
    if (isNew)
      result.first.push_back(rank);
    result.first[role->second] = std::min(result.first[role->second], rank);
    result.roles[static_cast<size_t>(rank)] = role->second;
  }
  return result;
}

} // namespace braid::runtime
