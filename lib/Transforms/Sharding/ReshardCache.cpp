//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ReshardCache.h"

#include "MeshLayouts.h"
#include "ReductionPlan.h"
#include "lib/Transforms/Collectives/CollectiveUtils.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

GroupAttr ReshardCache::group(ArrayRef<AxisAttr> axes) {
  return GroupAttr::get(mesh.getContext(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                        MeshLayouts(mesh).axes(MeshLayouts(mesh).subAxes(axes)));
}

int64_t ReshardCache::shards(ArrayRef<AxisAttr> axes) const {
  int64_t n = 1;
  for (AxisAttr axis : axes)
    n *= axisSize(mesh, axis);
  return n;
}

void ReshardCache::report(CollectiveOpInterface collective) {
  int64_t n = shards(collective.getGroup().getAxes());
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << collective->getName() << " over " << n << " ranks";
  if (role)
    stream << " for '" << role.getValue() << "'";
  stream << ": value is " << sharding;
  remark::analysis(collective.getLoc(),
                   remark::RemarkOpts::name("CollectiveInserted").category("sharding"))
      << text << remark::metric("bytesSentPerRank", collective.getBytesSent(n));
}

Value ReshardCache::allGather(OpBuilder &builder, Value from, int64_t dim,
                              ArrayRef<AxisAttr> axes) {
  int64_t n = shards(axes);
  if (n == 1)
    return from;
  ++counts->allGather;
  Type type = braid::globalType(from.getType(), dim, n);
  auto gather = AllGatherOp::create(builder, value.getLoc(), TypeRange{type}, ValueRange{from}, dim,
                                    group(axes), role);
  report(gather);
  return gather.getOutputs()[0];
}

Value ReshardCache::localSlice(OpBuilder &builder, Value from, int64_t dim,
                               ArrayRef<AxisAttr> axes) {
  int64_t n = shards(axes);
  if (n == 1)
    return from;
  ++counts->localSlice;
  return LocalSliceOp::create(builder, value.getLoc(), partType(from.getType(), dim, n), from, dim,
                              group(axes));
}

Value ReshardCache::allToAll(OpBuilder &builder, Value from, int64_t split, int64_t concat,
                             ArrayRef<AxisAttr> axes) {
  int64_t n = shards(axes);
  if (n == 1)
    return from;
  ++counts->allToAll;
  Type type = braid::globalType(partType(from.getType(), split, n), concat, n);
  auto exchange = AllToAllOp::create(builder, value.getLoc(), TypeRange{type}, ValueRange{from},
                                     split, concat, group(axes), role);
  report(exchange);
  return exchange.getOutputs()[0];
}

Value ReshardCache::permute(OpBuilder &builder, Value from, ArrayRef<int64_t> pairs,
                            ArrayRef<AxisAttr> axes) {
  ++counts->permute;
  auto exchange = PermuteOp::create(builder, value.getLoc(), TypeRange{from.getType()},
                                    ValueRange{from}, pairs, group(axes), role);
  report(exchange);
  return exchange.getOutputs()[0];
}

RankedTensorType ReshardCache::globalType() const {
  auto tensor = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape;
  for (auto [size, axes] : llvm::zip_equal(tensor.getShape(), dimsOf(sharding)))
    shape.push_back(size * shards(axes));
  return RankedTensorType::get(shape, tensor.getElementType());
}

void ReshardCache::planReduction(ArrayRef<ShardingAttr> wanted) {
  if (sharding.isPartial())
    reductions = planReductions(mesh, globalType(), sharding, wanted);
}

Value ReshardCache::emit(OpBuilder &builder, ArrayRef<Reduction> steps) {
  Value current = value;
  for (const Reduction &reduction : steps) {
    int64_t n = shards(reduction.axes);
    CollectiveOpInterface collective;
    if (!reduction.kind) {
      current = localSlice(builder, current, *reduction.dim, reduction.axes);
      continue;
    }
    if (n == 1)
      continue;
    if (reduction.dim) {
      ++counts->reduceScatter;
      Type type = partType(current.getType(), *reduction.dim, n);
      collective =
          ReduceScatterOp::create(builder, value.getLoc(), TypeRange{type}, *reduction.kind,
                                  ValueRange{current}, *reduction.dim, group(reduction.axes), role);
    } else {
      ++counts->allReduce;
      collective =
          AllReduceOp::create(builder, value.getLoc(), TypeRange{current.getType()},
                              *reduction.kind, ValueRange{current}, group(reduction.axes), role);
    }
    report(collective);
    current = collective.getOutputs()[0];
  }
  return current;
}

/// The dimensions after the steps of the reduction.
static DimAxes dimsAfter(ShardingAttr sharding, ArrayRef<Reduction> steps) {
  DimAxes dims = dimsOf(sharding);
  for (const Reduction &step : steps)
    if (step.dim)
      llvm::append_range(dims[*step.dim], step.axes);
  return dims;
}

void ReshardCache::reduce(OpBuilder &builder) {
  base = makeSharding(mesh, dimsAfter(sharding, reductions));
  forms[base] = emit(builder, reductions);
}

Value ReshardCache::reduceSome(ShardingAttr wanted) {
  if (auto it = forms.find(wanted); it != forms.end())
    return it->second;
  SmallVector<PartialAttr> reduced(
      llvm::make_filter_range(sharding.getPartials(), [&](PartialAttr partial) {
        return !llvm::is_contained(wanted.getPartials(), partial);
      }));
  if (reduced.size() + wanted.getPartials().size() != sharding.getPartials().size())
    return {};
  SmallVector<Reduction> steps = planReductions(
      mesh, globalType(), makeSharding(mesh, dimsOf(sharding), reduced), wanted.withoutPartials());
  MeshLayouts layouts(mesh);
  if (layouts.layout(makeSharding(mesh, dimsAfter(sharding, steps))) != layouts.layout(wanted))
    return {};
  OpBuilder builder(mesh.getContext());
  tail->setInsertionPoint(builder);
  Value current = emit(builder, steps);
  forms[wanted] = current;
  tail->advance(builder);
  return current;
}

Value ReshardCache::get(ShardingAttr wanted) {
  if (wanted.isPartial())
    return reduceSome(wanted);
  if (auto it = forms.find(wanted); it != forms.end())
    return it->second;
  OpBuilder builder(mesh.getContext());
  tail->setInsertionPoint(builder);
  if (!base) {
    if (sharding.isPartial())
      reduce(builder);
    else
      base = sharding;
  }

  SmallVector<Value> values;
  std::vector<Layout> from;
  MeshLayouts layouts(mesh);
  for (const auto &[form, held] : forms)
    if (!form.isPartial()) {
      values.push_back(held);
      from.push_back(layouts.layout(form));
    }
  std::optional<ReshardPath> path =
      layouts.resharder(globalType()).cheapest(from, layouts.layout(wanted));
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
    AxisList axes = layouts.axes(step.axes);
    // Every intermediate form is cached for other users.
    Value &form = forms[layouts.sharding(step.after)];
    if (!form) {
      switch (step.kind) {
      case ReshardStep::Slice:
        form = localSlice(builder, current, step.dim, axes);
        break;
      case ReshardStep::Gather:
        form = allGather(builder, current, step.dim, axes);
        break;
      case ReshardStep::AllToAll:
        form = allToAll(builder, current, step.to, step.dim, axes);
        break;
      case ReshardStep::Permute:
        form = permute(builder, current, permutation(before, step.after), axes);
        break;
      }
    }
    current = form;
    before = step.after;
  }
  forms[wanted] = current;
  tail->advance(builder);
  return current;
}
