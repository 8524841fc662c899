//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ReshardCache.h"

#include "lib/Transforms/Collectives/CollectiveUtils.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

Value ReshardCache::report(CollectiveOpInterface collective) const {
  int64_t n = groupSize(collective, collective.getGroup());
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << collective->getName() << " over " << n << " ranks";
  if (role)
    stream << " for '" << role.getValue() << "'";
  stream << ": value is " << sharding;
  remark::analysis(collective.getLoc(),
                   remark::RemarkOpts::name("CollectiveInserted").category("sharding"))
      << text << remark::metric("bytesSentPerRank", collective.getBytesSent(n));
  return collective.getOutputs()[0];
}

Value ReshardCache::slice(OpBuilder &builder, Value from, size_t dim, const SubAxes &axes) {
  return PartOp::create(builder, value.getLoc(), shardType(from.getType(), dim, shards(axes)), from,
                        dim, /*shift=*/0, layouts.group(axes));
}

Value ReshardCache::emit(OpBuilder &builder, Value from, const Layout &before,
                         const ReshardStep &step) {
  int64_t n = shards(step.axes);
  GroupAttr group = layouts.group(step.axes);
  Type type = from.getType();
  switch (step.kind) {
  case ReshardStep::Slice:
    return slice(builder, from, step.dim, step.axes);
  case ReshardStep::Gather:
    return report(AllGatherOp::create(builder, value.getLoc(),
                                      TypeRange{gatheredType(type, step.dim, n)}, ValueRange{from},
                                      step.dim, group, role));
  case ReshardStep::AllToAll:
    type = gatheredType(shardType(type, step.to, n), step.dim, n);
    return report(AllToAllOp::create(builder, value.getLoc(), TypeRange{type}, ValueRange{from},
                                     step.to, step.dim, group, role));
  case ReshardStep::Permute:
    return report(PermuteOp::create(builder, value.getLoc(), TypeRange{type}, ValueRange{from},
                                    permutation(before, step.after), group, role));
  }
  llvm_unreachable("unknown step");
}

Value ReshardCache::emit(OpBuilder &builder, ArrayRef<Reduction> steps) {
  Value current = value;
  for (const Reduction &step : steps) {
    int64_t n = shards(step.axes);
    GroupAttr group = layouts.group(step.axes);
    if (n == 1)
      continue; // One rank alone has the reduced value.
    if (!step.kind)
      current = slice(builder, current, *step.dim, step.axes);
    else if (step.dim)
      current = report(ReduceScatterOp::create(
          builder, value.getLoc(), TypeRange{shardType(current.getType(), *step.dim, n)},
          *step.kind, ValueRange{current}, *step.dim, group, role));
    else
      current = report(AllReduceOp::create(builder, value.getLoc(), TypeRange{current.getType()},
                                           *step.kind, ValueRange{current}, group, role));
  }
  return current;
}

std::vector<Reduction> ReshardCache::plan(ArrayRef<PartialAttr> partials,
                                          ArrayRef<ShardingAttr> wanted) const {
  std::vector<PartialAxis> axes;
  for (PartialAttr partial : partials)
    axes.push_back({layouts.subAxis(partial.getAxis()), partial.getKind()});
  std::vector<Layout> goals;
  for (ShardingAttr want : wanted)
    goals.push_back(layouts.layout(want));
  return planReductions(resharder(), layouts.layout(sharding), axes, goals);
}

Layout ReshardCache::layoutAfter(ArrayRef<Reduction> steps) const {
  Layout layout = layouts.layout(sharding);
  for (const Reduction &step : steps)
    if (step.dim)
      appendMerged(layout[*step.dim], step.axes);
  return layout;
}

void ReshardCache::planReduction(ArrayRef<ShardingAttr> wanted) {
  if (sharding.isPartial())
    reductions = plan(sharding.getPartials(), wanted);
}

Value ReshardCache::reduceSome(ShardingAttr wanted) {
  SmallVector<PartialAttr> reduced(
      llvm::make_filter_range(sharding.getPartials(), [&](PartialAttr partial) {
        return !llvm::is_contained(wanted.getPartials(), partial);
      }));
  if (reduced.size() + wanted.getPartials().size() != sharding.getPartials().size())
    return {};
  std::vector<Reduction> steps = plan(reduced, wanted);
  if (layoutAfter(steps) != layouts.layout(wanted))
    return {};
  OpBuilder builder(value.getContext());
  tail->setInsertionPoint(builder);
  Value current = forms[wanted] = emit(builder, steps);
  tail->advance(builder);
  return current;
}

Value ReshardCache::get(ShardingAttr wanted) {
  if (auto it = forms.find(wanted); it != forms.end())
    return it->second;
  if (wanted.isPartial())
    return reduceSome(wanted);
  OpBuilder builder(value.getContext());
  tail->setInsertionPoint(builder);
  if (!base) {
    base = sharding;
    if (sharding.isPartial()) {
      base = layouts.sharding(layoutAfter(reductions));
      forms[base] = emit(builder, reductions);
    }
  }

  SmallVector<Value> values;
  std::vector<Layout> from;
  for (const auto &[form, held] : forms)
    if (!form.isPartial()) {
      values.push_back(held);
      from.push_back(layouts.layout(form));
    }
  std::optional<ReshardPath> path = resharder().cheapest(from, layouts.layout(wanted));
  if (!path)
    return {};
  Value current = values[path->from];
  Layout before = from[path->from];
  for (size_t i = 0; i < path->steps.size(); ++i) {
    ReshardStep step = path->steps[i];
    // Consecutive slices of one dimension are merged.
    for (; step.kind == ReshardStep::Slice && i + 1 < path->steps.size(); ++i) {
      const ReshardStep &next = path->steps[i + 1];
      if (next.kind != ReshardStep::Slice || next.dim != step.dim)
        break;
      step.axes.insert(step.axes.end(), next.axes.begin(), next.axes.end());
      step.after = next.after;
    }
    // Every intermediate form is cached for other users.
    Value &form = forms[layouts.sharding(step.after)];
    if (!form)
      form = emit(builder, current, before, step);
    current = form;
    before = step.after;
  }
  forms[wanted] = current;
  tail->advance(builder);
  return current;
}
