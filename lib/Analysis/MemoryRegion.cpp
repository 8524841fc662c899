//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/MemoryRegion.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace braid;

namespace {

constexpr int64_t kMaxBlocks = int64_t(1) << 20;
constexpr int64_t kMaxPositions = int64_t(1) << 12;

/// Bytes [begin, end).
using Interval = std::pair<int64_t, int64_t>;

int64_t numBlocks(const MemoryRegion &region) {
  int64_t count = 1;
  for (const MemoryRegion::Step &step : region.steps)
    count = std::min(kMaxBlocks + 1, count * step.count);
  return count;
}

Interval bounds(const MemoryRegion &region, int64_t shift = 0) {
  int64_t last = region.begin + region.length;
  for (const MemoryRegion::Step &step : region.steps)
    last += (step.count - 1) * step.bytes;
  return {region.begin + shift, last + shift};
}

/// The region's blocks `shift` bytes further on, in ascending order.
std::vector<Interval> blocks(const MemoryRegion &region, int64_t shift) {
  std::vector<Interval> result{{region.begin + shift, region.begin + shift + region.length}};
  for (const MemoryRegion::Step &step : region.steps) {
    const size_t before = result.size();
    for (int64_t i = 1; i < step.count; ++i)
      for (size_t k = 0; k < before; ++k)
        result.emplace_back(result[k].first + i * step.bytes, result[k].second + i * step.bytes);
  }
  llvm::sort(result);
  return result;
}

/// Positions in groups: one number for each group, and how many it can be.
class Positions {
public:
  void add(const MemoryRegion &region) {
    for (const MemoryRegion::ByRank &place : region.byRank)
      ranks[place.group] = place.ranks;
  }
  /// All combinations; more than kMaxPositions are not counted.
  int64_t count() const {
    int64_t product = 1;
    for (auto [group, size] : ranks)
      product = std::min(kMaxPositions + 1, product * size);
    return product;
  }
  /// The distance of the region's begin in combination `number`.
  int64_t shiftOf(const MemoryRegion &region, int64_t number) const {
    llvm::SmallDenseMap<Attribute, int64_t, 2> position;
    for (auto [group, size] : ranks) {
      position[group] = number % size;
      number /= size;
    }
    int64_t shift = 0;
    for (const MemoryRegion::ByRank &place : region.byRank) {
      int64_t part = (position[place.group] + place.shift) % place.ranks;
      shift += (part < 0 ? part + place.ranks : part) * place.bytes;
    }
    return shift;
  }

private:
  llvm::MapVector<Attribute, int64_t> ranks;
};

bool overlap(const MemoryRegion &a, int64_t shiftA, const MemoryRegion &b, int64_t shiftB) {
  const Interval boundsA = bounds(a, shiftA), boundsB = bounds(b, shiftB);
  if (boundsA.first >= boundsB.second || boundsB.first >= boundsA.second)
    return false;
  if (a.steps.empty() && b.steps.empty())
    return true;
  if (numBlocks(a) > kMaxBlocks || numBlocks(b) > kMaxBlocks)
    return true;
  const std::vector<Interval> first = blocks(a, shiftA), second = blocks(b, shiftB);
  for (size_t i = 0, k = 0; i < first.size() && k < second.size();) {
    if (first[i].second <= second[k].first)
      ++i;
    else if (second[k].second <= first[i].first)
      ++k;
    else
      return true;
  }
  return false;
}

} // namespace

MemoryRegion braid::regionOf(Value memory) {
  auto type = cast<MemRefType>(memory.getType());
  const int64_t elementBytes = braid::elementBytes(type);
  MemoryRegion region;
  // Joins dimensions that follow each other without a gap, from the innermost one on.
  region.length = elementBytes;
  for (auto [size, stride] :
       llvm::reverse(llvm::zip_equal(type.getShape(), rt::getStrides(type)))) {
    const int64_t bytes = stride * elementBytes;
    if (size == 1)
      continue;
    if (region.steps.empty() && bytes == region.length)
      region.length *= size;
    else if (!region.steps.empty() &&
             bytes == region.steps.front().count * region.steps.front().bytes)
      region.steps.front().count *= size;
    else
      region.steps.insert(region.steps.begin(), {size, bytes});
  }
  while (Operation *view = memory.getDefiningOp()) {
    if (auto part = dyn_cast<rt::SubviewOp>(view)) {
      region.begin += part.getOffsetInElements() * elementBytes;
      if (part.getGroup()) {
        const int64_t dim = *part.getPart();
        const int64_t stride = rt::getStrides(part.getSource().getType())[dim];
        region.byRank.push_back(
            {*part.getGroup(), static_cast<int64_t>(part.getShift().value_or(0)),
             comm::groupSize(part, *part.getGroup()),
             part.getResult().getType().getDimSize(dim) * stride * elementBytes});
      }
    } else if (!isa<rt::ViewOp>(view)) {
      break;
    }
    memory = view->getOperand(0);
  }
  region.root = memory;
  return region;
}

MemoryRegion braid::inCaller(const MemoryRegion &inArgument, const MemoryRegion &passed) {
  MemoryRegion region = inArgument;
  region.root = passed.root;
  region.begin += passed.begin;
  region.byRank.append(passed.byRank);
  return region;
}

bool braid::mayOverlap(const MemoryRegion &a, const MemoryRegion &b) {
  if (a.root != b.root)
    return false;
  Positions positions;
  positions.add(a);
  positions.add(b);
  const int64_t count = positions.count();
  if (count > kMaxPositions)
    return true;
  for (int64_t number = 0; number < count; ++number)
    if (overlap(a, positions.shiftOf(a, number), b, positions.shiftOf(b, number)))
      return true;
  return false;
}

bool braid::cover(ArrayRef<const MemoryRegion *> parts, const MemoryRegion &whole) {
  if (llvm::is_contained(llvm::map_range(parts, [](auto *part) -> auto & { return *part; }), whole))
    return true;
  Positions positions;
  positions.add(whole);
  for (const MemoryRegion *part : parts)
    positions.add(*part);
  const int64_t count = positions.count();
  if (count > kMaxPositions || numBlocks(whole) > kMaxBlocks)
    return false;
  for (int64_t number = 0; number < count; ++number) {
    std::vector<Interval> covered;
    for (const MemoryRegion *part : parts) {
      if (numBlocks(*part) > kMaxBlocks)
        continue;
      llvm::append_range(covered, blocks(*part, positions.shiftOf(*part, number)));
    }
    llvm::sort(covered);
    size_t next = 0;
    for (auto [begin, end] : blocks(whole, positions.shiftOf(whole, number))) {
      int64_t reached = begin;
      while (next < covered.size() && covered[next].second <= begin)
        ++next;
      for (size_t i = next; i < covered.size() && reached < end && covered[i].first <= reached; ++i)
        reached = std::max(reached, covered[i].second);
      if (reached < end)
        return false;
    }
  }
  return true;
}
