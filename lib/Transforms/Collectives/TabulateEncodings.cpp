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
    inputs(isa<ReduceScatterOp>(op) ? Half::reduce : Half::gather);
  }

private:
  void allReduce(AllReduceOp reduce) {
    SmallVector<Type> results(reduce.getResultTypes());
    for (OpOperand &input : reduce->getOpOperands())
      input.set(through(input.get(), Half::reduce, builder.getF32Type(), n, 1, reduce.getGroup()));
    builder.setInsertionPointAfter(reduce);
    for (auto [output, type] : llvm::zip_equal(reduce.getOutputs(), results)) {
      output.setType(RankedTensorType::get(tensorOf(output).getShape(), builder.getF32Type()));
      Value encoded =
          through(output, Half::gather, cast<RankedTensorType>(type).getElementType(), n);
      output.replaceAllUsesExcept(encoded, encoded.getDefiningOp());
    }
  }

  /// Rows that a collective cuts into pieces, or hands on.
  void inputs(Half half) {
    for (OpOperand &input : op->getOpOperands()) {
      RankedTensorType type = tensorOf(input.get());
      if (!isa<FloatType>(type.getElementType())) // counts of an all_to_all_v
        continue;
      const int64_t last = type.getRank() - 1, pieces = piecesOfRows(op, input.get());
      Value rows = pieces == 1 ? input.get() : splitDim(builder, loc, input.get(), last, pieces);
      // What a rank adds itself loses nothing: of each run of the dimensions before the one that a
      // reduce_scatter divides, one part.
      int64_t parts = 1;
      GroupAttr group;
      if (auto scatter = dyn_cast<ReduceScatterOp>(op.getOperation())) {
        for (int64_t size : type.getShape().take_front(scatter.getDim()))
          parts *= size;
        group = scatter.getGroup();
      }
      Value encoded = through(rows, half, type.getElementType(), 1, parts, group);
      input.set(mergeDim(builder, loc, encoded, last, type));
    }
  }

  Value through(Value value, Half half, Type element, int64_t ranks, int64_t parts = 1,
                GroupAttr group = {}) {
    return nn::FakeQuantizeOp::create(
        builder, loc, RankedTensorType::get(tensorOf(value).getShape(), element), value, codes,
        half == Half::gather ? builder.getUnitAttr() : UnitAttr(), builder.getI64IntegerAttr(ranks),
        builder.getI64IntegerAttr(parts), group);
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
    return kOneRank.str();
  if (op->getNumOperands() == 0)
    return "it has no operand: what is received has the error of what was sent";
  if (isa<ReduceScatterOp>(op) && !tensorOf(op->getOperand(0)).getElementType().isF32())
    return "it adds values of half precision";
  return {};
}

} // namespace braid
