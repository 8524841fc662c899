//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rewrites that know groups. All ranks run the same code, so a rewrite changes the collectives of
// all ranks alike and they keep agreeing on the order.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/Mesh.h"
#include "dialects/Comm/IR/Comm.h"
#include "dialects/Comm/IR/CommPatterns.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace braid::comm;

namespace {

/// The body of a comm.start is one collective with the operands of the start. It cannot be replaced
/// by its operands, and no operand can be removed.
template <typename OpT> struct RewriteUnstarted : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const final {
    if (isa<StartOp>(op->getParentOp()))
      return rewriter.notifyMatchFailure(op, "a started collective stays");
    return simplify(op, rewriter);
  }
  virtual LogicalResult simplify(OpT op, PatternRewriter &rewriter) const = 0;
};

/// Clones the collective on other values.
template <typename OpT>
Operation *createLike(OpT op, ValueRange inputs, TypeRange types, PatternRewriter &rewriter) {
  OperationState state(op.getLoc(), op->getName(), inputs, types,
                       llvm::to_vector(op->getDiscardableAttrs()));
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return rewriter.create(state);
}

/// Replaces a collective that inverts the producer of its operands by the producer's operands.
template <typename OpT>
LogicalResult replaceByOrigins(OpT op, PatternRewriter &rewriter,
                               llvm::function_ref<Value(Value)> originOf) {
  SmallVector<Value> origins;
  for (Value input : op.getInputs())
    origins.push_back(originOf(input));
  if (!llvm::all_of(origins, [](Value origin) { return static_cast<bool>(origin); }))
    return rewriter.notifyMatchFailure(op, "an operand is not the result of its inverse");
  rewriter.replaceOp(op, origins);
  return success();
}

/// A group of one rank exchanges nothing.
template <typename OpT> struct FoldSingleRank : RewriteUnstarted<OpT> {
  using RewriteUnstarted<OpT>::RewriteUnstarted;
  LogicalResult simplify(OpT op, PatternRewriter &rewriter) const override {
    if (groupSize(op, op.getGroup()) != 1)
      return rewriter.notifyMatchFailure(op, "several ranks");
    rewriter.replaceOp(op, op->getOperands());
    return success();
  }
};

/// No rank reads the results.
template <typename OpT> struct EraseUnused : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    if (!op->use_empty())
      return rewriter.notifyMatchFailure(op, "a result is used");
    rewriter.eraseOp(op);
    return success();
  }
};

/// Removes values that no rank reads from a collective with values that are read.
template <typename OpT> struct DropUnusedValues : RewriteUnstarted<OpT> {
  using RewriteUnstarted<OpT>::RewriteUnstarted;
  LogicalResult simplify(OpT op, PatternRewriter &rewriter) const override {
    SmallVector<Value> inputs;
    SmallVector<Type> types;
    for (auto [input, output] : llvm::zip_equal(op.getInputs(), op.getOutputs()))
      if (!output.use_empty()) {
        inputs.push_back(input);
        types.push_back(output.getType());
      }
    if (inputs.empty() || inputs.size() == op.getInputs().size())
      return rewriter.notifyMatchFailure(op, "all or no results are used");
    Operation *narrow = createLike(op, inputs, types, rewriter);
    SmallVector<Value> replacements;
    unsigned next = 0;
    for (auto [input, output] : llvm::zip_equal(op.getInputs(), op.getOutputs()))
      replacements.push_back(output.use_empty() ? Value() : narrow->getResult(next++));
    rewriter.replaceOp(op, replacements);
    return success();
  }
};

/// Sends a value once that a collective takes twice.
template <typename OpT> struct MergeDuplicates : RewriteUnstarted<OpT> {
  using RewriteUnstarted<OpT>::RewriteUnstarted;
  LogicalResult simplify(OpT op, PatternRewriter &rewriter) const override {
    SmallVector<Value> unique;
    SmallVector<Type> types;
    SmallVector<size_t> position;
    for (auto [input, output] : llvm::zip_equal(op.getInputs(), op.getOutputs())) {
      auto it = llvm::find(unique, input);
      position.push_back(it - unique.begin());
      if (it != unique.end())
        continue;
      unique.push_back(input);
      types.push_back(output.getType());
    }
    if (unique.size() == op.getInputs().size())
      return rewriter.notifyMatchFailure(op, "no value twice");
    Operation *merged = createLike(op, unique, types, rewriter);
    rewriter.replaceOp(
        op, llvm::map_to_vector(position, [&](size_t p) -> Value { return merged->getResult(p); }));
    return success();
  }
};

/// Gathering the parts of a replicated value gives the value.
struct GatherOfParts : RewriteUnstarted<AllGatherOp> {
  using RewriteUnstarted::RewriteUnstarted;
  LogicalResult simplify(AllGatherOp op, PatternRewriter &rewriter) const override {
    return replaceByOrigins(op, rewriter, [&](Value input) -> Value {
      auto part = input.getDefiningOp<PartOp>();
      if (!part || part.getShift() != 0 || part.getDim() != op.getDim() ||
          part.getGroup() != op.getGroup())
        return {};
      return part.getInput();
    });
  }
};

/// The rank's own part of a gathered value is its shard.
struct PartOfGather : OpRewritePattern<PartOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PartOp op, PatternRewriter &rewriter) const override {
    auto gather = op.getInput().getDefiningOp<AllGatherOp>();
    if (!gather || gather.getDim() != op.getDim() || gather.getGroup() != op.getGroup() ||
        op.getShift() != 0)
      return rewriter.notifyMatchFailure(op, "no gather over the same group");
    unsigned index = cast<OpResult>(op.getInput()).getResultNumber();
    rewriter.replaceOp(op, gather.getInputs()[index]);
    return success();
  }
};

/// The shift from 0 to n - 1 that means the same in a group of n.
int64_t smallestShift(int64_t shift, int64_t n) {
  return braid::runtime::shiftedPosition(0, shift, n);
}

/// Shifts are from 0 to n - 1, so that equal parts look alike.
struct SmallestShift : OpRewritePattern<PartOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PartOp op, PatternRewriter &rewriter) const override {
    const int64_t n = groupSize(op, op.getGroup());
    const int64_t smallest = smallestShift(op.getShift(), n);
    if (smallest == static_cast<int64_t>(op.getShift()))
      return rewriter.notifyMatchFailure(op, "the shift is the smallest");
    rewriter.modifyOpInPlace(op, [&] { op.setShift(smallest); });
    return success();
  }
};

/// A part of an assembled value is one of the operands.
struct PartOfAssembled : OpRewritePattern<PartOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PartOp op, PatternRewriter &rewriter) const override {
    auto assemble = op.getInput().getDefiningOp<AssembleOp>();
    if (!assemble || assemble.getDim() != op.getDim() || assemble.getGroup() != op.getGroup())
      return rewriter.notifyMatchFailure(op, "no value assembled over the same group");
    const auto n = static_cast<int64_t>(assemble.getInputs().size());
    for (auto [input, shift] : llvm::zip_equal(assemble.getInputs(), assemble.getShifts()))
      if (smallestShift(shift, n) == smallestShift(op.getShift(), n)) {
        rewriter.replaceOp(op, input);
        return success();
      }
    return failure();
  }
};

/// All parts of a value, each in its place, are the value.
struct AssembledParts : OpRewritePattern<AssembleOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AssembleOp op, PatternRewriter &rewriter) const override {
    const auto n = static_cast<int64_t>(op.getInputs().size());
    Value whole;
    for (auto [input, shift] : llvm::zip_equal(op.getInputs(), op.getShifts())) {
      auto part = input.getDefiningOp<PartOp>();
      if (!part || part.getDim() != op.getDim() || part.getGroup() != op.getGroup() ||
          smallestShift(shift, n) != smallestShift(part.getShift(), n) ||
          (whole && part.getInput() != whole))
        return rewriter.notifyMatchFailure(op, "an operand is not this part of the same value");
      whole = part.getInput();
    }
    rewriter.replaceOp(op, whole);
    return success();
  }
};

/// In a group of one rank there is one part.
struct AssembledAlone : OpRewritePattern<AssembleOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AssembleOp op, PatternRewriter &rewriter) const override {
    if (op.getInputs().size() != 1)
      return rewriter.notifyMatchFailure(op, "several ranks");
    rewriter.replaceOp(op, op.getInputs().front());
    return success();
  }
};

/// Two inverse all_to_alls give the value back.
struct ExchangeBack : RewriteUnstarted<AllToAllOp> {
  using RewriteUnstarted::RewriteUnstarted;
  LogicalResult simplify(AllToAllOp op, PatternRewriter &rewriter) const override {
    return replaceByOrigins(op, rewriter, [&](Value input) -> Value {
      auto there = input.getDefiningOp<AllToAllOp>();
      if (!there || there.getGroup() != op.getGroup() || there.getSplitDim() != op.getConcatDim() ||
          there.getConcatDim() != op.getSplitDim())
        return {};
      return there.getInputs()[cast<OpResult>(input).getResultNumber()];
    });
  }
};

/// Every position keeps its own value.
struct IdentityPermute : RewriteUnstarted<PermuteOp> {
  using RewriteUnstarted::RewriteUnstarted;
  LogicalResult simplify(PermuteOp op, PatternRewriter &rewriter) const override {
    ArrayRef<int64_t> pairs = op.getPairs();
    if (static_cast<int64_t>(pairs.size()) != 2 * groupSize(op, op.getGroup()))
      return rewriter.notifyMatchFailure(op, "a position gets zeros");
    for (size_t i = 0; i < pairs.size(); i += 2)
      if (pairs[i] != pairs[i + 1])
        return rewriter.notifyMatchFailure(op, "a position gets another's value");
    rewriter.replaceOp(op, op.getInputs());
    return success();
  }
};

template <typename OpT> void addDead(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<EraseUnused<OpT>, DropUnusedValues<OpT>>(context);
}

template <typename OpT> void addCommon(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldSingleRank<OpT>, MergeDuplicates<OpT>>(context);
  addDead<OpT>(patterns, context);
}

} // namespace

void braid::comm::populateRemoveDeadCollectivesPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  addDead<AllReduceOp>(patterns, context);
  addDead<ReduceScatterOp>(patterns, context);
  addDead<AllGatherOp>(patterns, context);
  addDead<AllToAllOp>(patterns, context);
  addDead<ReduceOp>(patterns, context);
  addDead<BroadcastOp>(patterns, context);
  addDead<PermuteOp>(patterns, context);
  patterns.add<EraseUnused<AllToAllVOp>>(context);
}

void AllReduceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  addCommon<AllReduceOp>(patterns, context);
}
void ReduceScatterOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                  MLIRContext *context) {
  addCommon<ReduceScatterOp>(patterns, context);
}
void AllGatherOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  addCommon<AllGatherOp>(patterns, context);
  patterns.add<GatherOfParts>(context);
}
void AllToAllOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  addCommon<AllToAllOp>(patterns, context);
  patterns.add<ExchangeBack>(context);
}
void AllToAllVOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  // A group of one rank still sets the rows beyond the counts to zero.
  patterns.add<EraseUnused<AllToAllVOp>, MergeDuplicates<AllToAllVOp>>(context);
}
void ReduceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  addCommon<ReduceOp>(patterns, context);
}
void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  addCommon<BroadcastOp>(patterns, context);
}
void PermuteOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  // A group of one rank without pairs gives zeros, not the operand.
  addDead<PermuteOp>(patterns, context);
  patterns.add<MergeDuplicates<PermuteOp>, IdentityPermute>(context);
}
void PartOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldSingleRank<PartOp>, SmallestShift, PartOfGather, PartOfAssembled>(context);
}
void AssembleOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<AssembledAlone, AssembledParts>(context);
}
