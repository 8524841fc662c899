//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ReductionPlan.h"

#include "AxisPieces.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {

NumberedForms::NumberedForms(MeshOp mesh, RankedTensorType whole, ArrayRef<DimAxes> forms)
    : resharder(makeResharder(mesh, whole, forms)) {}

Resharder NumberedForms::makeResharder(MeshOp mesh, RankedTensorType whole,
                                       ArrayRef<DimAxes> forms) {
  SmallVector<DimAxes> refined(forms);
  SmallVector<DimAxes *> all;
  for (DimAxes &form : refined)
    all.push_back(&form);
  refine(mesh, all);
  for (const DimAxes &form : refined) {
    Cuts &own = cuts.emplace_back();
    for (const AxisList &dim : form) {
      std::vector<int> &axes = own.emplace_back();
      for (AxisAttr axis : dim) {
        auto *it = llvm::find(numbers, axis);
        axes.push_back(static_cast<int>(it - numbers.begin()));
        if (it == numbers.end())
          numbers.push_back(axis);
      }
    }
  }
  std::vector<int64_t> sizes;
  std::vector<std::pair<int, int>> exclusive;
  for (auto [i, axis] : llvm::enumerate(numbers)) {
    sizes.push_back(axisSize(mesh, axis));
    for (size_t j = 0; j < i; ++j)
      if (overlap(numbers[j], axis))
        exclusive.emplace_back(j, i);
  }
  return Resharder(std::move(sizes), std::move(exclusive), whole.getShape().vec(),
                   elementBytes(whole));
}

AxisList NumberedForms::axes(ArrayRef<int> of) const {
  return AxisList(llvm::map_range(of, [&](int number) { return numbers[number]; }));
}

DimAxes NumberedForms::dims(const Cuts &of) const {
  return DimAxes(llvm::map_range(of, [&](const std::vector<int> &dim) { return axes(dim); }));
}

namespace {

/// Tries all ways to cut addends, which sends nothing, and all orders in which partial axes can be
/// scattered; the others are reduced to all.
class ReductionSearch {
public:
  ReductionSearch(const NumberedForms &forms, std::vector<Cuts> wanted,
                  std::vector<std::pair<int, ReduceKind>> partials, ArrayRef<bool> mayScatter)
      : forms(forms), wanted(std::move(wanted)), partials(std::move(partials)),
        mayScatter(mayScatter), used(this->partials.size(), false) {}

  SmallVector<Reduction> run(const Cuts &cuts) {
    slice(cuts, {}, 0);
    return best;
  }

private:
  /// A step over one axis, to dimension `dim`.
  struct Step {
    std::optional<ReduceKind> kind;
    int axis;
    size_t dim;
  };

  /// Slices over axes from number `first` on that are free; then scatters.
  void slice(const Cuts &cuts, ReshardCost cost, int first) {
    scatter(cuts, cost);
    for (int axis = first; axis < static_cast<int>(forms.numbers.size()); ++axis) {
      bool isPartial = llvm::any_of(partials, [&](const auto &partial) {
        return overlap(forms.numbers[partial.first], forms.numbers[axis]);
      });
      if (isPartial || !forms.resharder.isFree(cuts, axis) || !allWant(axis))
        continue;
      forEachDim(cuts, {std::nullopt, axis, 0}, [&](const Cuts &next, bool) {
        slice(next, cost + ReshardCost{0, 0, 1}, axis + 1);
      });
    }
  }

  void scatter(const Cuts &cuts, ReshardCost cost) {
    if (!best.empty() && !(cost < least))
      return; // it only gets more
    finish(cuts, cost);
    for (auto [i, partial] : llvm::enumerate(partials)) {
      if (used[i])
        continue;
      int64_t n = forms.resharder.parts({partial.first});
      SaturatingCount bytes = forms.resharder.localBytes(cuts);
      used[i] = true;
      forEachDim(cuts, {partial.second, partial.first, 0}, [&](const Cuts &next, bool joins) {
        scatter(next, cost + ReshardCost{bytes / n * (n - 1), n > 1 && !joins, 0});
      });
      used[i] = false;
    }
  }

  /// Tries the step on every dimension; `body` is told whether it joins the step before.
  void forEachDim(const Cuts &cuts, Step step, function_ref<void(const Cuts &, bool)> body) {
    for (step.dim = 0; step.dim < cuts.size(); ++step.dim) {
      if (!mayScatter[step.dim] ||
          !forms.resharder.divides(cuts, step.dim, forms.resharder.parts({step.axis})))
        continue;
      bool joins = !steps.empty() && steps.back().dim == step.dim && steps.back().kind == step.kind;
      Cuts next = cuts;
      next[step.dim].push_back(step.axis);
      steps.push_back(step);
      body(next, joins);
      steps.pop_back();
    }
  }

  /// What somebody wants whole over an axis is not cut over it only to be gathered.
  bool allWant(int axis) const {
    return llvm::all_of(wanted, [&](const Cuts &want) {
      return llvm::any_of(
          want, [&](const std::vector<int> &dim) { return llvm::is_contained(dim, axis); });
    });
  }

  /// Reduces what is left to all, and goes from there to what is wanted.
  void finish(const Cuts &cuts, ReshardCost cost) {
    SmallVector<Reduction> reductions;
    const Step *last = nullptr;
    for (const Step &step : steps) {
      AxisAttr axis = forms.numbers[step.axis];
      if (last && last->dim == step.dim && last->kind == step.kind)
        reductions.back().axes.push_back(axis);
      else
        reductions.push_back({step.kind, {axis}, static_cast<int64_t>(step.dim)});
      last = &step;
    }
    SaturatingCount bytes = forms.resharder.localBytes(cuts);
    for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min}) {
      Reduction rest{kind, {}, std::nullopt};
      int64_t n = 1;
      for (auto [i, partial] : llvm::enumerate(partials))
        if (!used[i] && partial.second == kind) {
          rest.axes.push_back(forms.numbers[partial.first]);
          n *= forms.resharder.parts({partial.first});
        }
      if (rest.axes.empty())
        continue;
      reductions.push_back(std::move(rest));
      cost = cost + ReshardCost{bytes * 2 / n * (n - 1), n > 1, 0};
    }
    std::vector<Cuts> there{cuts};
    for (const Cuts &want : wanted) {
      std::optional<ReshardPath> path = forms.resharder.cheapest(there, want);
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

  const NumberedForms &forms;
  std::vector<Cuts> wanted;
  std::vector<std::pair<int, ReduceKind>> partials;
  ArrayRef<bool> mayScatter;
  std::vector<bool> used;
  SmallVector<Step> steps;
  SmallVector<Reduction> best;
  ReshardCost least;
};

} // namespace

SmallVector<Reduction> planReductions(MeshOp mesh, RankedTensorType whole, ShardingAttr sharding,
                                      ArrayRef<ShardingAttr> wanted, ArrayRef<bool> mayScatter) {
  SmallVector<DimAxes> dims{dimsOf(sharding), DimAxes(1)};
  for (PartialAttr partial : sharding.getPartials())
    dims[1][0].push_back(partial.getAxis());
  for (ShardingAttr want : wanted)
    dims.push_back(dimsOf(want));
  NumberedForms forms(mesh, whole, dims);
  std::vector<std::pair<int, ReduceKind>> partials;
  for (int number : forms.cuts[1][0])
    for (PartialAttr partial : sharding.getPartials())
      if (overlap(partial.getAxis(), forms.numbers[number]))
        partials.emplace_back(number, partial.getKind());
  std::vector<Cuts> goals(forms.cuts.begin() + 2, forms.cuts.end());
  return ReductionSearch(forms, std::move(goals), std::move(partials), mayScatter)
      .run(forms.cuts[0]);
}

} // namespace braid
