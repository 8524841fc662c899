//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rewrites that know what a group is. They change what is exchanged alike on all ranks, which run
// the same code, so the ranks go on agreeing on the order of their collectives.
//
//===----------------------------------------------------------------------===//
#include "dialects/Comm/IR/Comm.h"
#include "dialects/Comm/IR/CommPatterns.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace braid::comm;

namespace {

/// In a group of one rank everything is there already.
template <typename OpT> struct FoldSingleRank : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    if (isa<StartOp>(op->getParentOp()))
      return rewriter.notifyMatchFailure(op, "a started collective stays");
    if (groupSize(op, op.getGroup()) != 1)
      return rewriter.notifyMatchFailure(op, "several ranks");
    rewriter.replaceOp(op, op->getOperands());
    return success();
  }
};

/// Nobody reads the results, on any rank.
template <typename OpT> struct EraseUnused : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    if (!op->use_empty())
      return rewriter.notifyMatchFailure(op, "a result is used");
    rewriter.eraseOp(op);
    return success();
  }
};

/// Values that no rank reads are not sent with those that some rank does.
template <typename OpT> struct DropUnusedValues : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    if (isa<StartOp>(op->getParentOp()))
      return rewriter.notifyMatchFailure(op, "a started collective takes what its start does");
    SmallVector<Value> inputs;
    SmallVector<Type> types;
    for (auto [input, output] : llvm::zip_equal(op.getInputs(), op.getOutputs()))
      if (!output.use_empty()) {
        inputs.push_back(input);
        types.push_back(output.getType());
      }
    if (inputs.empty() || inputs.size() == op.getInputs().size())
      return rewriter.notifyMatchFailure(op, "all or no results are used");
    OperationState state(op.getLoc(), op->getName(), inputs, types,
                         llvm::to_vector(op->getDiscardableAttrs()));
    state.propertiesAttr = op->getPropertiesAsAttribute();
    Operation *narrow = rewriter.create(state);
    SmallVector<Value> replacements;
    unsigned next = 0;
    for (auto [input, output] : llvm::zip_equal(op.getInputs(), op.getOutputs()))
      replacements.push_back(output.use_empty() ? Value() : narrow->getResult(next++));
    rewriter.replaceOp(op, replacements);
    return success();
  }
};

/// A value that one collective takes twice is sent once.
template <typename OpT> struct MergeDuplicates : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    if (isa<StartOp>(op->getParentOp()))
      return rewriter.notifyMatchFailure(op, "a started collective takes what its start does");
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
    OperationState state(op.getLoc(), op->getName(), unique, types,
                         llvm::to_vector(op->getDiscardableAttrs()));
    state.propertiesAttr = op->getPropertiesAsAttribute();
    Operation *merged = rewriter.create(state);
    rewriter.replaceOp(
        op, llvm::map_to_vector(position, [&](size_t p) -> Value { return merged->getResult(p); }));
    return success();
  }
};

/// The parts of a replicated value, joined as they were cut, are the value.
struct GatherOfSlice : OpRewritePattern<AllGatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AllGatherOp op, PatternRewriter &rewriter) const override {
    if (isa<StartOp>(op->getParentOp()))
      return rewriter.notifyMatchFailure(op, "a started collective stays");
    SmallVector<Value> wholes;
    for (Value input : op.getInputs()) {
      auto slice = input.getDefiningOp<LocalSliceOp>();
      if (!slice || slice.getDim() != op.getDim() || slice.getGroup() != op.getGroup())
        return rewriter.notifyMatchFailure(op, "an operand is no slice over the same group");
      wholes.push_back(slice.getInput());
    }
    rewriter.replaceOp(op, wholes);
    return success();
  }
};

/// What a rank cuts out of the joined parts is its own part.
struct SliceOfGather : OpRewritePattern<LocalSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LocalSliceOp op, PatternRewriter &rewriter) const override {
    auto gather = op.getInput().getDefiningOp<AllGatherOp>();
    if (!gather || gather.getDim() != op.getDim() || gather.getGroup() != op.getGroup())
      return rewriter.notifyMatchFailure(op, "no gather over the same group");
    unsigned index = cast<OpResult>(op.getInput()).getResultNumber();
    rewriter.replaceOp(op, gather.getInputs()[index]);
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
  patterns.add<GatherOfSlice>(context);
}
void LocalSliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldSingleRank<LocalSliceOp>, SliceOfGather>(context);
}
