//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ReductionPlan.h"

#include "MeshLayouts.h"

#include <set>

using namespace mlir;
using namespace braid::comm;
using braid::runtime::CollectiveKind;

namespace braid {
namespace {

struct Partial {
  SubAxis axis;
  ReduceKind kind;
};

/// Searches the slices of partial sums, which send nothing, and the orders in which partial axes
/// can be scattered; the other axes are all-reduced.
class ReductionSearch {
public:
  ReductionSearch(MeshLayouts layouts, Resharder resharder, std::vector<Layout> wanted,
                  std::vector<Partial> partials, SubAxes free)
      : layouts(layouts), resharder(std::move(resharder)), wanted(std::move(wanted)),
        partials(std::move(partials)), free(std::move(free)), used(this->partials.size(), false) {}

  SmallVector<Reduction> run(const Layout &layout) {
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
      next[step.dim].push_back(step.axis);
      next[step.dim] = joinSubAxes(next[step.dim]);
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
    SmallVector<Reduction> reductions;
    SubAxes group;
    for (const auto &[i, step] : llvm::enumerate(steps)) {
      group.push_back(step.axis);
      if (i + 1 < steps.size() && steps[i + 1].dim == step.dim && steps[i + 1].kind == step.kind)
        continue;
      reductions.push_back({step.kind, layouts.axes(group), static_cast<int64_t>(step.dim)});
      group.clear();
    }
    SaturatingCount bytes = resharder.localBytes(layout);
    for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min}) {
      SubAxes rest;
      for (auto [i, partial] : llvm::enumerate(partials))
        if (!used[i] && partial.kind == kind)
          rest.push_back(partial.axis);
      if (rest.empty())
        continue;
      reductions.push_back({kind, layouts.axes(rest), std::nullopt});
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

  MeshLayouts layouts;
  Resharder resharder;
  std::vector<Layout> wanted;
  std::vector<Partial> partials;
  SubAxes free;
  std::vector<bool> used;
  SmallVector<Step> steps;
  std::set<std::pair<Layout, std::vector<bool>>> seen;
  int64_t states = 0, finished = 0;
  SmallVector<Reduction> best;
  CommunicationCost least;
};

} // namespace

SmallVector<Reduction> planReductions(MeshOp mesh, RankedTensorType whole, ShardingAttr sharding,
                                      ArrayRef<ShardingAttr> wanted) {
  MeshLayouts layouts(mesh);
  Layout layout = layouts.layout(sharding);
  std::vector<Layout> goals;
  SubAxes ends; // where a partial axis is split
  for (ShardingAttr want : wanted) {
    goals.push_back(layouts.layout(want));
    for (const SubAxes &axes : goals.back())
      llvm::append_range(ends, axes);
  }
  std::vector<Partial> partials;
  for (PartialAttr partial : sharding.getPartials())
    for (const SubAxis &part : splitWhere(layouts.subAxis(partial.getAxis()), ends))
      partials.push_back({part, partial.getKind()});
  // A form that is replicated over an axis is not sliced over it, only to be gathered.
  SubAxes free;
  if (!goals.empty())
    for (const SubAxes &axes : goals.front())
      for (const SubAxis &axis : axes)
        for (const SubAxis &part : splitWhere(axis, ends)) {
          auto isWanted = [&](const Layout &goal) {
            return llvm::any_of(goal, [&](const SubAxes &axes) {
              return llvm::any_of(axes, [&](const SubAxis &other) {
                return other.axis == part.axis && part.begin % other.begin == 0 &&
                       other.end % part.end == 0;
              });
            });
          };
          if (llvm::all_of(goals, isWanted) && isFree(layout, part) &&
              llvm::all_of(partials, [&](const Partial &p) { return p.axis.isDisjoint(part); }))
            free.push_back(part);
        }
  return ReductionSearch(layouts, layouts.resharder(whole), std::move(goals), std::move(partials),
                         std::move(free))
      .run(layout);
}

} // namespace braid
