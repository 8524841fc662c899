//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "PadParameter.h"
#include "RowPadding.h"
#include "VocabularyPadding.h"
#include "lib/Transforms/Sharding/ColumnRowParallel.h"
#include "lib/Transforms/Sharding/StrategyOptions.h"

#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"

#include "dialects/NN/IR/NN.h"

#include "mlir/IR/Remarks.h"

#include <optional>

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_PADFORSTRATEGY
#include "braid/Transforms/Passes.h.inc"

namespace {

/// Positions are computed head by head.
constexpr int64_t kMaxHeads = 65536;

LogicalResult refuse(Operation *op, const Twine &why) {
  return emitNamedError(op) << "cannot be padded for axis '" << kTensorAxis << "': " << why;
}

constexpr StringLiteral kTooLarge = "it would have more than 2^48 elements";

/// Pads the matmuls of one function, and the parameters that its callers pass.
class FunctionPadder {
public:
  FunctionPadder(ModuleOp module, func::FuncOp func, int64_t ranks)
      : module(module), func(func), ranks(ranks) {}

  LogicalResult run();
  int64_t numPadded = 0;

private:
  LogicalResult padRow(nn::LinearOp row);
  LogicalResult padColumn(nn::LinearOp column, const DimPadding &padding);
  LogicalResult padWeight(OpOperand &weight, int64_t dim, const DimPadding &padding);
  LogicalResult padOperand(OpOperand &operand, int64_t dim, const DimPadding &padding);
  LogicalResult retype(Operation *op);

  ModuleOp module;
  func::FuncOp func;
  int64_t ranks;
  /// The rules before padding: a factor keeps its place while types change.
  DenseMap<Operation *, ShardingRule> rules;
  DenseMap<Operation *, int64_t> columns; ///< the size that they are padded to
  DenseSet<Operation *> rows;
  DenseSet<Value> changed;       ///< in shape or in the positions of elements
  int64_t before = 0, after = 0; ///< elements of the weights of the pair at hand
};

/// Replaces the parameter of `operand` by one padded along `dim`; other users keep the original.
LogicalResult FunctionPadder::padOperand(OpOperand &operand, int64_t dim,
                                         const DimPadding &padding) {
  auto parameter = operand.get().getDefiningOp<nn::ParameterOp>();
  if (!parameter)
    return refuse(operand.getOwner(), "expects its weights to be parameters");
  if (getSharding(parameter.getResult()))
    return refuse(parameter, "it has a stated sharding");
  if (!isBounded(withDim(parameter.getType(), dim, padding.size)))
    return refuse(operand.getOwner(), kTooLarge);
  operand.set(padParameter(parameter, dim, padding).getResult());
  if (parameter.use_empty())
    parameter.erase();
  return success();
}

LogicalResult FunctionPadder::padWeight(OpOperand &weight, int64_t dim, const DimPadding &padding) {
  auto argument = dyn_cast<BlockArgument>(weight.get());
  if (!argument)
    return padOperand(weight, dim, padding);
  if (isEntry(func))
    return refuse(weight.getOwner(), "its weight is an operand of the entry");
  if (!argument.hasOneUse())
    return refuse(weight.getOwner(), "its weight has other users in the function");
  std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(func, module);
  for (SymbolTable::SymbolUse use : *uses) {
    auto call = dyn_cast<func::CallOp>(use.getUser());
    if (!call)
      return refuse(weight.getOwner(), "its function is used other than by calls");
    if (failed(padOperand(call->getOpOperand(argument.getArgNumber()), dim, padding)))
      return failure();
  }
  argument.setType(withDim(argument.getType(), dim, padding.size));
  return success();
}

LogicalResult FunctionPadder::padColumn(nn::LinearOp column, const DimPadding &padding) {
  auto [it, isNew] = columns.try_emplace(column, padding.size);
  if (!isNew && it->second == padding.size)
    return success();
  if (!isNew)
    return refuse(column, "its users want it padded to " + Twine(it->second) + " and to " +
                              Twine(padding.size));
  before += typeOf(column.getWeight()).getNumElements();
  if (failed(padWeight(column.getWeightMutable(), 0, padding)))
    return failure();
  for (Operation *user : column->getUsers())
    if (auto bias = dyn_cast<nn::AddOp>(user); bias && typeOf(bias.getRhs()).getRank() == 1)
      if (failed(padWeight(bias.getRhsMutable(), 0, padding)))
        return failure();
  after += typeOf(column.getWeight()).getNumElements();
  RankedTensorType type = typeOf(column.getResult());
  column.getResult().setType(withDim(type, type.getRank() - 1, padding.size));
  changed.insert(column.getResult());
  return success();
}

LogicalResult FunctionPadder::padRow(nn::LinearOp row) {
  int64_t in = typeOf(row.getWeight()).getDimSize(1);
  Value input = row.getInput();
  LinearSources sources = findSources(input, typeOf(input).getRank() - 1);
  if (sources.matmuls.empty())
    return success();
  std::string what;
  DimPadding rowPadding;
  before = after = 0;
  SmallVector<std::pair<Operation *, DimPadding>> wanted;
  if (sources.attentions.empty()) {
    if (in % ranks == 0)
      return success();
    rowPadding = padAtEnd(in, ranks);
    for (Operation *source : sources.matmuls)
      wanted.push_back({source, rowPadding});
    what = ("a dimension of " + Twine(in) + " is padded to " + Twine(rowPadding.size)).str();
  } else {
    auto attention = cast<nn::AttentionOp>(sources.attentions.front());
    if (sources.attentions.size() != 1)
      return refuse(row,
                    "expects one attention before it, got " + Twine(sources.attentions.size()));
    int64_t heads = typeOf(attention.getQuery()).getDimSize(2),
            groups = typeOf(attention.getKey()).getDimSize(2);
    if (groups % ranks == 0)
      return success();
    int64_t headDim = typeOf(attention.getKey()).getDimSize(3),
            valueDim = typeOf(attention.getValue()).getDimSize(3);
    if (heads > kMaxHeads)
      return refuse(attention,
                    "expects at most " + Twine(kMaxHeads) + " heads, got " + Twine(heads));
    HeadPadding heading = padHeads(groups, heads / groups, ranks);
    if (saturatingProduct({heading.groups, heading.groupSize, std::max(headDim, valueDim)}) >
        kMaxElements)
      return refuse(attention, kTooLarge);
    std::pair<Value, DimPadding> operands[] = {{attention.getQuery(), heading.queries(headDim)},
                                               {attention.getKey(), heading.keys(headDim)},
                                               {attention.getValue(), heading.keys(valueDim)}};
    for (const auto &[operand, padding] : operands) {
      LinearSources own = findSources(operand, 2);
      if (own.matmuls.empty())
        return refuse(attention, "expects query, key and value from matmuls");
      for (Operation *source : own.matmuls)
        wanted.push_back({source, padding});
    }
    rowPadding = heading.queries(valueDim);
    what = (Twine(heads) + " heads of " + Twine(groups) + " groups are padded to " +
            Twine(heading.groups * heading.groupSize) + " of " + Twine(heading.groups))
               .str();
  }
  for (const auto &[source, padding] : wanted)
    if (failed(padColumn(cast<nn::LinearOp>(source), padding)))
      return failure();
  before += typeOf(row.getWeight()).getNumElements();
  if (failed(padWeight(row.getWeightMutable(), 1, rowPadding)))
    return failure();
  after += typeOf(row.getWeight()).getNumElements();
  rows.insert(row);
  ++numPadded;
  remark::analysis(row.getLoc(), remark::RemarkOpts::name("Padding").category("padding"))
      << (what + " for axis '" + kTensorAxis + "' of size " + Twine(ranks) +
          ": the weights of its matmuls grow from " + Twine(before) + " to " + Twine(after) +
          " elements")
             .str();
  return success();
}

/// Updates an operation's result types from those of its operands.
LogicalResult FunctionPadder::retype(Operation *op) {
  if (llvm::none_of(op->getOperands(), [&](Value v) { return changed.contains(v); }) ||
      columns.contains(op) || rows.contains(op))
    return success();
  auto it = rules.find(op);
  if (it == rules.end())
    return refuse(op, "expects only operations with a sharding rule between the matmuls");
  // What is padded is zero before the first operation, and the last weight has zeros for it.
  if (isa<nn::MapOp>(op))
    return refuse(op, "its body may give no finite number for zeros");
  if (isa<nn::ReduceOp>(op))
    return refuse(op, "it may reduce what is padded");
  const ShardingRule &rule = it->second;
  SmallVector<int64_t> sizes;
  for (const Factor &factor : rule.factors)
    sizes.push_back(factor.size);
  SmallVector<bool> known(sizes.size(), false);
  auto isChanged = [&](Value value) { return changed.contains(value); };
  // Factors with a dimension of their own first: they determine those that share one.
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule.operands))
    for (auto [d, factors] : llvm::enumerate(tensor))
      if (isChanged(operand) && factors.size() == 1) {
        sizes[factors[0]] = typeOf(operand).getDimSize(d);
        known[factors[0]] = true;
      }
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule.operands))
    for (auto [d, factors] : llvm::enumerate(tensor)) {
      if (!isChanged(operand) || factors.size() < 2)
        continue;
      // The quotient is the major factor's size, or with grouped heads the size of a group.
      size_t open = known[factors[0]] && factors.size() == 2 && !known[factors[1]] ? 1 : 0;
      int64_t rest = typeOf(operand).getDimSize(d);
      for (auto [i, factor] : llvm::enumerate(factors))
        if (i != open)
          rest /= sizes[factor];
      sizes[factors[open]] = rest;
      known[factors[open]] = true;
    }
  auto sizeOf = [&](const DimFactors &factors, int64_t otherwise) {
    int64_t size = factors.empty() ? otherwise : 1;
    for (int64_t factor : factors)
      size *= sizes[factor];
    return size;
  };
  for (auto [i, operand, tensor] : llvm::enumerate(op->getOperands(), rule.operands))
    for (auto [d, factors] : llvm::enumerate(tensor)) {
      int64_t has = typeOf(operand).getDimSize(d), wants = sizeOf(factors, has);
      if (has != wants)
        return refuse(op, "dimension " + Twine(d) + " of operand " + Twine(i) + " would be " +
                              Twine(wants) + ", got " + Twine(has));
    }
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), rule.results)) {
    RankedTensorType type = typeOf(result);
    SmallVector<int64_t> shape(type.getShape());
    for (auto [d, factors] : llvm::enumerate(tensor))
      shape[d] = sizeOf(factors, shape[d]);
    result.setType(RankedTensorType::get(shape, type.getElementType()));
    changed.insert(result);
  }
  return success();
}

LogicalResult FunctionPadder::run() {
  auto styles = findColumnRowParallel(func);
  func.walk([&](ShardingRuleOpInterface op) { rules[op] = op.getShardingRule(); });
  for (auto [linear, style] : styles)
    if (style == ParallelStyle::Row && failed(padRow(linear)))
      return failure();
  if (numPadded == 0)
    return success();
  for (Operation &op : func.getBody().front())
    if (failed(retype(&op)))
      return failure();
  updateType(func);
  return success();
}

struct PadForStrategy : impl::PadForStrategyBase<PadForStrategy> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<SmallVector<StringRef>> names = components();
    FailureOr<SmallVector<MeshAxis>> axes = meshAxes();
    if (failed(names) || failed(axes))
      return signalPassFailure();
    auto sizeOf = [&](StringRef axis) {
      const MeshAxis *found = llvm::find_if(*axes, [&](MeshAxis own) { return own.name == axis; });
      return found == axes->end() ? 1 : found->size;
    };
    auto has = [&](StringRef name) { return llvm::is_contained(*names, name); };
    const int64_t tp = sizeOf(kTensorAxis), dp = sizeOf(kDataAxis);
    if (tp != 1 && (has("tp") || has("tp-sp")) && failed(padLayers(tp)))
      return signalPassFailure();
    if (tp != 1 && has("vocab") && failed(padVocabularies(tp)))
      return signalPassFailure();
    if (tp != 1 && has("tp-sp") &&
        failed(padAll(kTensorAxis, tp, [&] { return sequences(has("vocab")); })))
      return signalPassFailure();
    if (dp != 1 && has("dp") && failed(padAll(kDataAxis, dp, [&] { return batches(); })))
      signalPassFailure();
  }

private:
  LogicalResult padLayers(int64_t ranks) {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!func.getBody().hasOneBlock())
        continue;
      FunctionPadder padder(getOperation(), func, ranks);
      if (failed(padder.run()))
        return failure();
      numPadded += padder.numPadded;
    }
    return success();
  }

  LogicalResult padVocabularies(int64_t ranks) {
    FailureOr<int64_t> padded =
        padVocabulary(getOperation(), ranks, /*wherePossible=*/strategy == "auto");
    numVocabularies += padded.value_or(0);
    return padded;
  }

  /// The sums that sequence parallelism scatters (braid-apply-strategy), and their sequences.
  SmallVector<RowDim> sequences(bool vocabulary) {
    SmallVector<RowDim> dims;
    auto add = [&](Operation *sum) {
      if (int64_t rank = typeOf(sum->getResult(0)).getRank(); rank >= 3)
        dims.push_back({sum->getResult(0), rank - 2});
    };
    for (auto func : getOperation().getOps<func::FuncOp>())
      for (auto [linear, style] : findColumnRowParallel(func))
        if (style == ParallelStyle::Row)
          add(linear);
    if (vocabulary)
      walkVocabularies(getOperation(), [&](Operation *op, OpOperand &, bool isHead) {
        if (!isHead)
          add(op);
        return WalkResult::advance();
      });
    return dims;
  }

  /// The operands that data parallelism splits, and their batches.
  SmallVector<RowDim> batches() {
    SmallVector<RowDim> dims;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (isEntry(func) && !func.isExternal())
        for (BlockArgument argument : func.getArguments())
          if (auto type = dyn_cast<RankedTensorType>(argument.getType());
              type && type.getRank() != 0)
            dims.push_back({argument, 0});
    return dims;
  }

  /// Pads those that the axis does not divide, one size after the other.
  LogicalResult padAll(StringRef axis, int64_t ranks, function_ref<SmallVector<RowDim>()> find) {
    auto sizeOf = [](RowDim dim) { return typeOf(dim.value).getDimSize(dim.dim); };
    auto misfits = [&] {
      return llvm::to_vector(llvm::make_filter_range(find(), [&](RowDim dim) {
        return !typeOf(dim.value).isDynamicDim(dim.dim) && sizeOf(dim) % ranks != 0 &&
               !getSharding(dim.value);
      }));
    };
    llvm::SetVector<int64_t> sizes;
    for (RowDim dim : misfits())
      sizes.insert(sizeOf(dim));
    for (int64_t size : sizes) {
      SmallVector<RowDim> dims = misfits();
      llvm::erase_if(dims, [&](RowDim dim) { return sizeOf(dim) != size; });
      FailureOr<int64_t> padded = padRows(getOperation(), dims, axis, ranks);
      if (failed(padded))
        return failure();
      numRows += *padded;
    }
    return success();
  }

  /// The names of the strategy's components, and of those that 'auto' may use.
  FailureOr<SmallVector<StringRef>> components() {
    if (strategy == "auto")
      return SmallVector<StringRef>{"tp", "vocab", "dp"};
    FailureOr<SmallVector<const StrategyComponent *>> components =
        parseStrategy(getOperation(), strategy);
    if (failed(components))
      return failure();
    return llvm::map_to_vector(*components,
                               [](const StrategyComponent *c) -> StringRef { return c->name; });
  }

  FailureOr<SmallVector<MeshAxis>> meshAxes() {
    if (!mesh.empty())
      return parseMesh(getOperation(), mesh, /*anyAxis=*/true);
    SmallVector<MeshAxis> axes;
    for (auto op : getOperation().getOps<MeshOp>())
      llvm::append_range(axes, axesOf(op));
    return axes;
  }
};

} // namespace
} // namespace braid
