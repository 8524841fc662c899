//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ReductionPlan.h"

#include <set>

using namespace mlir;
using namespace braid::comm;
using braid::runtime::CollectiveKind;

namespace braid {
namespace {

/// Searches the slices of partial sums, which send nothing, and the orders in which partial axes
/// can be scattered; the other axes are all-reduced.
class ReductionSearch {
public:
  ReductionSearch(const Resharder &resharder, const std::vector<Layout> &wanted,
                  std::vector<PartialAxis> partials, SubAxes free)
      : resharder(resharder), wanted(wanted), partials(std::move(partials)), free(std::move(free)),
        used(this->partials.size(), false) {}

  std::vector<Reduction> run(const Layout &layout) {
    slice(layout, {}, 0);
    return best;
  }

private:
  /// Bounds of the search: states visited, forms from which resharding is searched, and layouts
  /// visited for each of these.
  static constexpr int64_t kMaxStates = 4000, kMaxFinished = 64, kMaxReached = 60;

  /// A step over one sub-axis, to dimension `dim`.
  struct Step {
    std::optional<ReduceKind> kind;
    SubAxis axis;
    size_t dim;
  };

  /// Slices over the free axes from number `first` on, then scatters.
  void slice(const Layout &layout, CommunicationCost cost, size_t first) {
    auto sliceOver = [&](bool inPlace) {
      for (size_t i = first; i < free.size(); ++i)
        if (isFree(layout, free[i]))
          forEachDim(layout, {std::nullopt, free[i], 0}, inPlace,
                     [&](const Layout &next, bool) { slice(next, cost + sliceCost(), i + 1); });
    };
    if (isHopeless(layout, cost, shards(free)))
      return;
    sliceOver(true);
    scatter(layout, cost);
    sliceOver(false);
  }

  void scatter(const Layout &layout, CommunicationCost cost) {
    if (isHopeless(layout, cost, 1))
      return;
    // Another order of the same scatters has sent as much.
    if (!seen.insert({layout, used}).second)
      return;
    SaturatingCount bytes = resharder.localBytes(layout);
    auto scatterOver = [&](bool inPlace) {
      for (auto [i, partial] : llvm::enumerate(partials)) {
        if (used[i])
          continue;
        int64_t n = partial.axis.size();
        used[i] = true;
        forEachDim(
            layout, {partial.kind, partial.axis, 0}, inPlace, [&](const Layout &next, bool joins) {
              CommunicationCost own = collectiveCost(CollectiveKind::reduceScatter, bytes, n);
              own.collectives -= own.collectives && joins;
              scatter(next, cost + own);
            });
        used[i] = false;
      }
    };
    scatterOver(true);
    finish(layout, cost);
    scatterOver(false);
  }

  /// Whether this state cannot improve the result: at least the partial axes have to be scattered
  /// and each wanted form gathered, less what further slices of partial sums can save.
  bool isHopeless(const Layout &layout, CommunicationCost cost, int64_t sliced) {
    if (best.empty())
      return false;
    if (++states > kMaxStates)
      return true;
    int64_t n = 1;
    for (auto [i, partial] : llvm::enumerate(partials))
      if (!used[i])
        n *= partial.axis.size();
    SaturatingCount bytes = resharder.localBytes(layout) / sliced, scattered = bytes / n;
    cost.bytes += collectiveCost(CollectiveKind::reduceScatter, bytes, n).bytes;
    for (const Layout &want : wanted)
      if (SaturatingCount wantedBytes = resharder.localBytes(want); scattered < wantedBytes) {
        cost.bytes += wantedBytes - scattered;
        break; // one may be a slice of another
      }
    return !(cost < least);
  }

  /// Tries the step on every dimension where a wanted form has the axis in this position, or on the
  /// others; `body` receives whether it merges with the previous step.
  void forEachDim(const Layout &layout, Step step, bool inPlace,
                  function_ref<void(const Layout &, bool)> body) {
    for (step.dim = 0; step.dim < layout.size(); ++step.dim) {
      if (!resharder.divides(layout, step.dim, step.axis.size()))
        continue;
      Layout next = layout;
      appendMerged(next[step.dim], step.axis);
      if (isInPlace(next[step.dim], step.dim) != inPlace)
        continue;
      bool joins = !steps.empty() && steps.back().dim == step.dim && steps.back().kind == step.kind;
      steps.push_back(step);
      body(next, joins);
      steps.pop_back();
    }
  }

  bool isInPlace(const SubAxes &axes, size_t dim) const {
    return llvm::any_of(wanted, [&](const Layout &want) { return isMajorOf(axes, want[dim]); });
  }

  /// All-reduces the remaining axes and reshards to the wanted forms.
  void finish(const Layout &layout, CommunicationCost cost) {
    if (!best.empty() && ++finished > kMaxFinished)
      return;
    std::vector<Reduction> reductions;
    for (const Step &step : steps) {
      if (reductions.empty() || reductions.back().dim != step.dim ||
          reductions.back().kind != step.kind)
        reductions.push_back({step.kind, {}, step.dim});
      reductions.back().axes.push_back(step.axis);
    }
    SaturatingCount bytes = resharder.localBytes(layout);
    for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min}) {
      SubAxes rest;
      for (auto [i, partial] : llvm::enumerate(partials))
        if (!used[i] && partial.kind == kind)
          rest.push_back(partial.axis);
      if (rest.empty())
        continue;
      reductions.push_back({kind, rest, std::nullopt});
      cost = cost + collectiveCost(CollectiveKind::allReduce, bytes, shards(rest));
    }
    std::vector<Layout> there{layout};
    for (const Layout &want : wanted) {
      std::optional<ReshardPath> path = resharder.cheapest(there, want, kMaxReached);
      if (!path)
        return;
      cost = cost + path->cost;
      for (ReshardStep &step : path->steps)
        there.push_back(std::move(step.after));
    }
    if (!best.empty() && !(cost < least))
      return;
    least = cost;
    best = std::move(reductions);
  }

  const Resharder &resharder;
  const std::vector<Layout> &wanted;
  std::vector<PartialAxis> partials;
  SubAxes free;
  std::vector<bool> used;
  SmallVector<Step> steps;
  std::set<std::pair<Layout, std::vector<bool>>> seen;
  int64_t states = 0, finished = 0;
  std::vector<Reduction> best;
  CommunicationCost least;
};

} // namespace

std::vector<Reduction> planReductions(const Resharder &resharder, const Layout &layout,
                                      const std::vector<PartialAxis> &partials,
                                      const std::vector<Layout> &wanted) {
  SubAxes ends; // where a partial axis is split
  for (const Layout &want : wanted)
    for (const SubAxes &axes : want)
      llvm::append_range(ends, axes);
  std::vector<PartialAxis> split;
  for (const PartialAxis &partial : partials)
    for (const SubAxis &axis : splitWhere(partial.axis, ends))
      split.push_back({axis, partial.kind});
  // A value is not sliced over an axis that some wanted layout is replicated over: it would be
  // gathered again.
  auto isSplitOver = [](const Layout &want, const SubAxis &axis) {
    return llvm::any_of(want, [&](const SubAxes &axes) {
      return llvm::any_of(axes, [&](const SubAxis &other) { return other.contains(axis); });
    });
  };
  SubAxes free;
  if (!wanted.empty())
    for (const SubAxes &axes : wanted.front())
      for (const SubAxis &outer : axes)
        for (const SubAxis &axis : splitWhere(outer, ends))
          if (llvm::all_of(wanted, [&](const Layout &w) { return isSplitOver(w, axis); }) &&
              isFree(layout, axis) && llvm::all_of(split, [&](const PartialAxis &partial) {
                return partial.axis.isDisjoint(axis);
              }))
            free.push_back(axis);
  return ReductionSearch(resharder, wanted, std::move(split), std::move(free)).run(layout);
}

} // namespace braid
