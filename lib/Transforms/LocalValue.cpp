//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "LocalValue.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

GroupAttr LocalValue::group(ArrayRef<AxisAttr> axes) {
  return GroupAttr::get(mesh.getContext(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()), axes);
}

int64_t LocalValue::shards(ArrayRef<AxisAttr> axes) {
  int64_t n = 1;
  for (AxisAttr axis : axes)
    n *= axisSize(mesh, axis);
  return n;
}

/// `type` with dimension `dim` multiplied by `num` / `den`.
static RankedTensorType scaled(Type type, int64_t dim, int64_t num, int64_t den) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = shape[dim] * num / den;
  return RankedTensorType::get(shape, tensor.getElementType());
}

void LocalValue::report(CollectiveOpInterface collective) {
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

Value LocalValue::allGather(OpBuilder &builder, Value from, int64_t dim, ArrayRef<AxisAttr> axes) {
  int64_t n = shards(axes);
  if (n == 1)
    return from;
  ++counts->allGather;
  Type type = scaled(from.getType(), dim, n, 1);
  auto gather = AllGatherOp::create(builder, value.getLoc(), TypeRange{type}, ValueRange{from}, dim,
                                    group(axes), role);
  report(gather);
  return gather.getOutputs()[0];
}

Value LocalValue::localSlice(OpBuilder &builder, Value from, int64_t dim, ArrayRef<AxisAttr> axes) {
  int64_t n = shards(axes);
  if (n == 1)
    return from;
  ++counts->localSlice;
  return LocalSliceOp::create(builder, value.getLoc(), scaled(from.getType(), dim, 1, n), from, dim,
                              group(axes));
}

void LocalValue::planReduction(ArrayRef<ShardingAttr> wanted,
                               function_ref<bool(int64_t)> mayScatter) {
  if (wanted.empty() || !sharding.isPartial())
    return;
  DimAxes dims = dimsOf(sharding);
  for (PartialAttr partial : sharding.getPartials()) {
    for (auto [d, axes] : llvm::enumerate(dims)) {
      AxisList cut = axes;
      cut.push_back(partial.getAxis());
      if (!mayScatter(d) || !llvm::all_of(wanted, [&, d = d](ShardingAttr want) {
            ArrayRef<AxisAttr> there = want.getDims()[d].getAxes();
            return there.size() >= cut.size() && there.take_front(cut.size()) == ArrayRef(cut);
          }))
        continue;
      axes = cut;
      scatters.push_back({partial.getAxis(), d});
      break;
    }
  }
}

void LocalValue::reduce(OpBuilder &builder) {
  Value current = value;
  DimAxes dims = dimsOf(sharding);
  for (auto [axis, dim] : scatters) {
    auto partial = llvm::find_if(sharding.getPartials(),
                                 [&, axis = axis](PartialAttr p) { return p.getAxis() == axis; });
    dims[dim].push_back(axis);
    if (int64_t n = shards(axis); n != 1) {
      ++counts->reduceScatter;
      Type type = scaled(current.getType(), dim, 1, n);
      auto scatter =
          ReduceScatterOp::create(builder, value.getLoc(), TypeRange{type}, partial->getKind(),
                                  ValueRange{current}, dim, group(axis), role);
      report(scatter);
      current = scatter.getOutputs()[0];
    }
  }
  for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min}) {
    AxisList axes;
    for (PartialAttr partial : sharding.getPartials())
      if (partial.getKind() == kind &&
          llvm::none_of(scatters, [&](auto scatter) { return scatter.first == partial.getAxis(); }))
        axes.push_back(partial.getAxis());
    if (shards(axes) == 1)
      continue;
    ++counts->allReduce;
    auto reduction = AllReduceOp::create(builder, value.getLoc(), TypeRange{current.getType()},
                                         kind, ValueRange{current}, group(axes), role);
    report(reduction);
    current = reduction.getOutputs()[0];
  }
  if (finish)
    current = finish(builder, current)[0];
  base = makeSharding(mesh, dims);
  forms[base] = current;
}

Value LocalValue::get(ShardingAttr wanted) {
  if (auto it = forms.find(wanted); it != forms.end() && !(finish && wanted == sharding))
    return it->second;
  OpBuilder builder(mesh.getContext());
  tail->setInsertionPoint(builder);
  if (!base) {
    if (sharding.isPartial())
      reduce(builder);
    else
      base = sharding;
  }

  DimAxes have = dimsOf(base), want = dimsOf(wanted);
  Value current = forms[base];
  // Every step leaves a form that other users may want too.
  auto step = [&](int64_t dim, AxisList axes, llvm::function_ref<Value()> build) {
    have[dim] = std::move(axes);
    Value &form = forms[makeSharding(mesh, have)];
    if (!form)
      form = build();
    current = form;
  };
  auto common = [&](size_t d) {
    size_t n = 0;
    while (n < have[d].size() && n < want[d].size() && have[d][n] == want[d][n])
      ++n;
    return n;
  };
  auto inUse = [&](AxisAttr axis) {
    return llvm::any_of(have, [&](const AxisList &dim) {
      return llvm::any_of(dim, [&](AxisAttr other) { return overlap(axis, other); });
    });
  };
  auto slice = [&](bool onlyFree) {
    for (size_t d = 0; d < have.size(); ++d) {
      size_t n = common(d);
      if (n != have[d].size() || n == want[d].size())
        continue;
      AxisList added(ArrayRef(want[d]).drop_front(n));
      if (onlyFree && llvm::any_of(added, inUse))
        continue;
      step(d, want[d], [&] { return localSlice(builder, current, d, added); });
    }
  };
  // What is cut before it is gathered is less to send.
  slice(/*onlyFree=*/true);
  for (size_t d = 0; d < have.size(); ++d) {
    size_t n = common(d);
    if (n == have[d].size())
      continue;
    AxisList removed(ArrayRef(have[d]).drop_front(n));
    step(d, AxisList(ArrayRef(have[d]).take_front(n)),
         [&] { return allGather(builder, current, d, removed); });
  }
  slice(/*onlyFree=*/false);
  tail->advance(builder);
  return current;
}
