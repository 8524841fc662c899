//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Transforms/Passes.h"
#include "dialects/Comm/IR/CommPatterns.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_REMOVEDEADCOLLECTIVES
#include "braid/Transforms/Passes.h.inc"

namespace {

/// Remarks on every collective that a pattern removes or narrows.
struct Report : RewriterBase::Listener {
  void notifyOperationReplaced(Operation *op, ValueRange) override {
    if (isa<CollectiveOpInterface>(op))
      narrowed.insert(op);
  }
  void notifyOperationErased(Operation *op) override {
    if (!isa<CollectiveOpInterface>(op))
      return;
    bool isDead = !narrowed.erase(op);
    remarkDone(op, "RemoveDeadCollectives",
               isDead ? "removed, no rank reads a result" : "a value that no rank reads removed");
    ++(isDead ? removed : values);
  }
  DenseSet<Operation *> narrowed;
  int64_t removed = 0, values = 0;
};

struct RemoveDeadCollectives : impl::RemoveDeadCollectivesBase<RemoveDeadCollectives> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateRemoveDeadCollectivesPatterns(patterns);
    Report report;
    GreedyRewriteConfig config;
    config.setListener(&report);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
    numRemoved += report.removed;
    numNarrowed += report.values;
  }
};

} // namespace
} // namespace braid
