//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/Placement.h"

#include "llvm/ADT/STLExtras.h"

using namespace braid::comm;

namespace braid {

Held Placement::heldOn(const SubAxis &axis, size_t *dim, AddendKind *kind) const {
  if (llvm::is_contained(varying, axis))
    return Held::Varies;
  for (const Addend &addend : addends)
    if (addend.axis == axis) {
      if (kind)
        *kind = addend.kind;
      return Held::Addend;
    }
  for (size_t d = 0; d < dims.size(); ++d)
    if (llvm::is_contained(dims[d], axis)) {
      if (dim)
        *dim = d;
      return Held::Part;
    }
  return Held::Same;
}

void Placement::makeSame(const SubAxis &axis) {
  for (SubAxes &dim : dims)
    llvm::erase(dim, axis);
  llvm::erase(varying, axis);
  llvm::erase_if(addends, [&](const Addend &addend) { return addend.axis == axis; });
}

void Placement::makeVarying(const SubAxis &axis) {
  makeSame(axis);
  varying.push_back(axis);
}

void Placement::normalize() {
  for (SubAxes &dim : dims)
    dim = mergeSubAxes(dim);
  std::sort(varying.begin(), varying.end());
  varying = mergeSubAxes(varying);
  std::sort(addends.begin(), addends.end());
  std::vector<Addend> merged;
  for (const Addend &addend : addends)
    if (!merged.empty() && merged.back().kind == addend.kind &&
        merged.back().axis.axis == addend.axis.axis && merged.back().axis.end == addend.axis.begin)
      merged.back().axis.end = addend.axis.end;
    else
      merged.push_back(addend);
  addends = std::move(merged);
}

void Digits::add(const SubAxes &axes) {
  for (const SubAxis &axis : axes)
    points[axis.axis].insert({axis.begin, axis.end});
}

void Digits::add(const Placement &placement) {
  for (const SubAxes &dim : placement.dims)
    add(dim);
  add(placement.varying);
  for (const Addend &addend : placement.addends)
    add(SubAxes{addend.axis});
}

void Digits::addPrimes() {
  for (auto &[axis, ends] : points) {
    if (crosses(axis))
      continue;
    std::set<int64_t> primes = ends;
    for (auto it = ends.begin(), next = std::next(it); next != ends.end(); ++it, ++next) {
      int64_t at = *it;
      for (int64_t p : primeFactors(*next / *it))
        primes.insert(at *= p);
    }
    ends = std::move(primes);
  }
}

bool Digits::crosses(int axis) const {
  auto it = points.find(axis);
  if (it == points.end())
    return false;
  for (auto at = it->second.begin(), next = std::next(at); next != it->second.end(); ++at, ++next)
    if (*next % *at != 0)
      return true;
  return false;
}

SubAxes Digits::split(const SubAxis &axis) const {
  if (crosses(axis.axis))
    return {{axis.axis, 1, sizes[axis.axis]}};
  SubAxes digits;
  int64_t begin = axis.begin;
  if (auto it = points.find(axis.axis); it != points.end())
    for (int64_t point : it->second)
      if (point > begin && point <= axis.end) {
        digits.push_back({axis.axis, begin, point});
        begin = point;
      }
  if (begin != axis.end)
    digits.push_back({axis.axis, begin, axis.end});
  return digits;
}

SubAxes Digits::split(const SubAxes &axes) const {
  SubAxes digits;
  for (const SubAxis &axis : axes)
    for (const SubAxis &digit : split(axis))
      if (!llvm::is_contained(digits, digit))
        digits.push_back(digit);
  return digits;
}

Placement Digits::split(const Placement &placement) const {
  Placement digits;
  digits.uniform = placement.uniform;
  digits.varying = split(placement.varying);
  auto keep = [&](const SubAxis &axis) {
    if (!crosses(axis.axis))
      return true;
    for (const SubAxis &digit : split(axis))
      if (!llvm::is_contained(digits.varying, digit))
        digits.varying.push_back(digit);
    return false;
  };
  for (const SubAxes &dim : placement.dims) {
    digits.dims.emplace_back();
    for (const SubAxis &axis : dim)
      if (keep(axis))
        llvm::append_range(digits.dims.back(), split(axis));
  }
  for (const Addend &addend : placement.addends)
    if (keep(addend.axis))
      for (const SubAxis &digit : split(addend.axis))
        digits.addends.push_back({digit, addend.kind});
  return digits;
}

std::string nameOf(const MeshLayouts &layouts, const SubAxis &axis) {
  AxisAttr attribute = layouts.axis(axis);
  std::string name = attribute.getName().str();
  if (attribute.isFull())
    return "axis '" + name + "'";
  return "sub-axis '" + name + ":(" + std::to_string(attribute.getPre()) + ")" +
         std::to_string(attribute.getSize()) + "'";
}

llvm::StringRef nameOfPartials(AddendKind kind) {
  switch (kind) {
  case AddendKind::Sum:
    return "partial sums";
  case AddendKind::Max:
    return "partial maxima";
  case AddendKind::Min:
    return "partial minima";
  case AddendKind::LogSum:
    return "logarithms of partial sums";
  case AddendKind::Relative:
    return "values relative to each rank's own maximum or sum";
  }
  llvm_unreachable("unknown reduction");
}

std::string describeHeld(const Placement &placement, const SubAxis &digit) {
  size_t dim = 0;
  AddendKind kind = AddendKind::Sum;
  switch (placement.heldOn(digit, &dim, &kind)) {
  case Held::Same:
    return "the same value";
  case Held::Part:
    return "parts along dimension " + std::to_string(dim);
  case Held::Addend:
    return nameOfPartials(kind).str();
  case Held::Varies:
    return "values of which nothing is known";
  }
  llvm_unreachable("unknown placement");
}

} // namespace braid
