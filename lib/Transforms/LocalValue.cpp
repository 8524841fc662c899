//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "LocalValue.h"

#include "AxisPieces.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

GroupAttr LocalValue::group(ArrayRef<AxisAttr> axes) {
  return GroupAttr::get(mesh.getContext(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                        joinPieces(mesh, axes));
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

Value LocalValue::allToAll(OpBuilder &builder, Value from, int64_t split, int64_t concat,
                           ArrayRef<AxisAttr> axes) {
  int64_t n = shards(axes);
  if (n == 1)
    return from;
  ++counts->allToAll;
  Type type = scaled(scaled(from.getType(), split, 1, n), concat, n, 1);
  auto exchange = AllToAllOp::create(builder, value.getLoc(), TypeRange{type}, ValueRange{from},
                                     split, concat, group(axes), role);
  report(exchange);
  return exchange.getOutputs()[0];
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

  ShardingAttr closest = closestForm(wanted);
  DimAxes want = dimsOf(wanted), have = dimsOf(closest);
  Value current = forms[closest];
  // What the two have in common may be part of an axis.
  refine(mesh, have, want);
  // Every step leaves a form that other users may want too.
  auto step = [&](DimAxes next, llvm::function_ref<Value()> build) {
    have = std::move(next);
    Value &form = forms[makeSharding(mesh, joinPieces(mesh, have))];
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
  /// The axes that dimension d has to lose.
  auto removed = [&](size_t d) { return ArrayRef(have[d]).drop_front(common(d)); };
  /// Those that it has to get, once it has lost nothing any more.
  auto added = [&](size_t d) {
    size_t n = common(d);
    return n == have[d].size() ? ArrayRef(want[d]).drop_front(n) : ArrayRef<AxisAttr>();
  };
  // What is cut before it is sent is less to send.
  auto slice = [&] {
    for (size_t d = 0; d < have.size(); ++d) {
      AxisList cut(added(d));
      bool inUse = llvm::any_of(cut, [&](AxisAttr axis) {
        return llvm::any_of(have, [&](const AxisList &dim) {
          return llvm::any_of(dim, [&](AxisAttr other) { return overlap(axis, other); });
        });
      });
      if (cut.empty() || inUse)
        continue;
      DimAxes next = have;
      next[d] = want[d];
      step(next, [&] { return localSlice(builder, current, d, cut); });
    }
  };
  auto gather = [&](size_t d, size_t count) {
    AxisList lost(ArrayRef(have[d]).take_back(count));
    DimAxes next = have;
    next[d].truncate(have[d].size() - count);
    step(next, [&] { return allGather(builder, current, d, lost); });
  };
  /// Where the minor axes of `axes` could go as they are: the dimension and their number.
  auto destination = [&](size_t d, ArrayRef<AxisAttr> axes) -> std::pair<size_t, size_t> {
    for (size_t count = axes.size(); count > 0; --count)
      for (size_t e = 0; e < have.size(); ++e)
        if (e != d && added(e).size() >= count &&
            added(e).take_front(count) == axes.take_back(count))
          return {e, count};
    return {0, 0};
  };
  auto move = [&](size_t d) {
    auto [e, count] = destination(d, removed(d));
    if (count == 0)
      return false;
    AxisList moved(ArrayRef(have[d]).take_back(count));
    DimAxes next = have;
    next[d].truncate(have[d].size() - count);
    next[e].append(moved);
    step(next, [&, e = e] { return allToAll(builder, current, e, d, moved); });
    return true;
  };
  /// Gathers minor axes, all that are in the way of a move, or all if there is none to come.
  auto makeWay = [&](size_t d, bool onlyForMove) {
    ArrayRef<AxisAttr> lost = removed(d);
    for (size_t count = 1; count < lost.size(); ++count)
      if (destination(d, lost.drop_back(count)).second > 0)
        return gather(d, count), true;
    if (lost.empty() || onlyForMove)
      return false;
    return gather(d, lost.size()), true;
  };
  auto wantedElsewhere = [&](size_t d) {
    return llvm::any_of(removed(d), [&](AxisAttr axis) {
      for (size_t e = 0; e < want.size(); ++e)
        if (e != d && llvm::is_contained(want[e], axis))
          return true;
      return false;
    });
  };
  auto dims = llvm::seq<size_t>(0, have.size());
  // An exchange sends 1/n of what a gather does, so it comes first; then what makes one possible.
  auto advance = [&] {
    slice();
    return llvm::any_of(dims, move) ||
           llvm::any_of(dims, [&](size_t d) { return !wantedElsewhere(d) && makeWay(d, false); }) ||
           llvm::any_of(dims, [&](size_t d) { return makeWay(d, true); }) ||
           llvm::any_of(dims, [&](size_t d) { return makeWay(d, false); });
  };
  while (advance()) {
  }
  tail->advance(builder);
  return current;
}

ShardingAttr LocalValue::closestForm(ShardingAttr wanted) {
  ShardingAttr closest = base;
  int64_t most = -1;
  for (const auto &[form, ignored] : forms) {
    if (form.isPartial())
      continue;
    DimAxes dims = dimsOf(form), want = dimsOf(wanted);
    refine(mesh, dims, want);
    int64_t cuts = 1;
    bool onlyCut = true;
    for (auto [axes, goal] : llvm::zip_equal(dims, want)) {
      cuts *= shards(axes);
      onlyCut &=
          axes.size() <= goal.size() && ArrayRef(goal).take_front(axes.size()) == ArrayRef(axes);
    }
    if (onlyCut && cuts > most) {
      closest = form;
      most = cuts;
    }
  }
  return closest;
}
