//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Base/EncodingTable.h"
#include "braid/Transforms/Identity.h"
#include "braid/Transforms/ShardingUtils.h"
#include "braid/Transforms/TablePasses.h"
#include "dialects/NN/IR/NNTable.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_TABULATEENCODINGS
#include "braid/Transforms/TablePasses.h.inc"

namespace {

enum class Half { reduce, gather };

RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }
bool isLast(Value value, int64_t dim) { return dim == tensorOf(value).getRank() - 1; }

/// Passes the values of one collective through the encodings that `codes` holds, as
/// braid-expand-encoded passes them through payloads.
class Tabulation {
public:
  Tabulation(CollectiveOpInterface op, Value codes, int64_t n)
      : op(op), builder(op), loc(NameLoc::get(builder.getStringAttr(op.getRoleName()))),
        codes(codes), n(n) {}

  void apply() {
    if (auto reduce = dyn_cast<AllReduceOp>(op.getOperation()))
      return allReduce(reduce);
    if (auto scatter = dyn_cast<ReduceScatterOp>(op.getOperation()))
      return inputs(Half::reduce, isLast(scatter.getInputs()[0], dimOf(scatter)) ? n : 1);
    if (auto exchange = dyn_cast<AllToAllOp>(op.getOperation())) {
      const auto split = static_cast<int64_t>(exchange.getSplitDim());
      const auto concat = static_cast<int64_t>(exchange.getConcatDim());
      return inputs(Half::gather,
                    split >= concat && isLast(exchange.getInputs()[0], split) ? n : 1);
    }
    // Each row of a block travels by itself, and those of two dimensions are elements.
    if (auto exchange = dyn_cast<AllToAllVOp>(op.getOperation())) {
      RankedTensorType type = tensorOf(exchange.getValues()[0]);
      return inputs(Half::gather, type.getRank() == 2 ? type.getShape().back() : 1);
    }
    inputs(Half::gather, 1);
  }

private:
  static int64_t dimOf(ReduceScatterOp scatter) { return static_cast<int64_t>(scatter.getDim()); }

  void allReduce(AllReduceOp reduce) {
    SmallVector<Type> results(reduce.getResultTypes());
    for (OpOperand &input : reduce->getOpOperands())
      input.set(through(input.get(), Half::reduce, builder.getF32Type(), n));
    builder.setInsertionPointAfter(reduce);
    for (auto [output, type] : llvm::zip_equal(reduce.getOutputs(), results)) {
      output.setType(RankedTensorType::get(tensorOf(output).getShape(), builder.getF32Type()));
      Value encoded =
          through(output, Half::gather, cast<RankedTensorType>(type).getElementType(), n);
      output.replaceAllUsesExcept(encoded, encoded.getDefiningOp());
    }
  }

  /// Rows that a collective cuts into `pieces`, or hands on.
  void inputs(Half half, int64_t pieces) {
    for (OpOperand &input : op->getOpOperands()) {
      RankedTensorType type = tensorOf(input.get());
      if (!isa<FloatType>(type.getElementType())) // counts of an all_to_all_v
        continue;
      Value rows = pieces == 1 ? input.get() : splitLast(input.get(), pieces);
      Value encoded = through(rows, half, type.getElementType(), 1);
      input.set(pieces == 1 ? encoded
                            : tensor::CollapseShapeOp::create(builder, loc, type, encoded,
                                                              lastTwo(type.getRank())));
    }
  }

  Value through(Value value, Half half, Type element, int64_t ranks) {
    return nn::FakeQuantizeOp::create(
        builder, loc, RankedTensorType::get(tensorOf(value).getShape(), element), value, codes,
        half == Half::gather ? builder.getUnitAttr() : UnitAttr(),
        builder.getI64IntegerAttr(ranks));
  }

  static SmallVector<ReassociationIndices> lastTwo(int64_t rank) {
    SmallVector<ReassociationIndices> groups;
    for (int64_t d = 0; d < rank; ++d)
      groups.push_back({d});
    groups.back().push_back(rank);
    return groups;
  }
  /// [..., columns] as [..., pieces, columns / pieces].
  Value splitLast(Value value, int64_t pieces) {
    RankedTensorType type = tensorOf(value);
    SmallVector<int64_t> shape(type.getShape());
    shape.back() /= pieces;
    shape.insert(shape.end() - 1, pieces);
    return tensor::ExpandShapeOp::create(builder, loc,
                                         RankedTensorType::get(shape, type.getElementType()), value,
                                         lastTwo(type.getRank()));
  }

  CollectiveOpInterface op;
  OpBuilder builder;
  Location loc;
  Value codes;
  int64_t n;
};

struct TabulateEncodings : impl::TabulateEncodingsBase<TabulateEncodings> {
  void runOnOperation() override {
    identify(getOperation());
    size_t count = 0;
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (function->hasAttr(nn::NNDialect::kEntryAttrName))
        count += addEntry(function);
    numEntries += count; // counts nothing in libraries that are built without statistics
    if (count == 0) {
      getOperation().emitError("expects a collective that can be encoded, found none");
      signalPassFailure();
    }
  }

private:
  using Names = SmallVector<std::string>;

  /// The number of its collectives in the table.
  size_t addEntry(func::FuncOp entry) {
    const unsigned before = entry.getNumArguments();
    OpBuilder builder(entry);
    const Names &names = addArguments(entry);
    for (auto [i, name] : llvm::enumerate(names)) {
      const unsigned argument = before + static_cast<unsigned>(i);
      entry.setArgAttr(argument, nn::NNDialect::kNameAttrName,
                       builder.getStringAttr(runtime::EncodingTable::operandOf(
                           ("@" + entry.getSymName() + "/" + name).str())));
      entry.setArgAttr(argument, nn::NNDialect::kDefaultAttrName, builder.getI32IntegerAttr(0));
    }
    return names.size();
  }

  /// Gives a function an argument for each collective in it and in its callees. Their names, from
  /// the function on.
  const Names &addArguments(func::FuncOp function) {
    auto [known, isNew] = namesOf.try_emplace(function);
    Names &names = known->second; // stays where it is when callees are added
    if (!isNew)
      return names;
    auto addArgument = [&](std::string name) -> Value {
      names.push_back(std::move(name));
      auto type = RankedTensorType::get({2}, IntegerType::get(&getContext(), 32));
      // A module that is being built has no uses of the arguments to be checked.
      (void)function.insertArgument(function.getNumArguments(), type, {}, function.getLoc());
      return function.getArguments().back();
    };
    SmallVector<Operation *> found;
    function.walk([&](Operation *op) {
      if (isa<CollectiveOpInterface, func::CallOp>(op))
        found.push_back(op);
    });
    for (Operation *op : found) {
      if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
        if (std::string why = tableObstacle(collective); !why.empty()) {
          remarkMissed(op, "TabulateEncodings", why);
          continue;
        }
        Value codes = addArgument(collective.getRoleName().str());
        Tabulation(collective, codes, groupSize(op, collective.getGroup())).apply();
        continue;
      }
      auto call = cast<func::CallOp>(op);
      func::FuncOp callee = calleeOf(call);
      if (callee.isExternal())
        continue;
      SmallVector<Value> operands(call.getOperands());
      for (const std::string &name : addArguments(callee))
        operands.push_back(addArgument("@" + callName(call) + "/" + name));
      call.getOperandsMutable().assign(operands);
    }
    return names;
  }

  std::map<Operation *, Names> namesOf;
};

} // namespace

std::string tableObstacle(CollectiveOpInterface op) {
  if (isStarted(op))
    return "it is in a comm.start";
  if (op->hasAttr(CommDialect::kEncodingAttrName))
    return "it has an encoding";
  if (std::string why = encodingObstacle(op); !why.empty())
    return why;
  if (groupSize(op, op.getGroup()) == 1)
    return "its group has one rank, so that nothing is sent";
  if (op->getNumOperands() == 0)
    return "it has no operand: what is received has the error of what was sent";
  if (isa<ReduceScatterOp>(op) && !tensorOf(op->getOperand(0)).getElementType().isF32())
    return "it adds values of half precision";
  return {};
}

} // namespace braid
