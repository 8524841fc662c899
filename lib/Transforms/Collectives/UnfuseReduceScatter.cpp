//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Transforms/Passes.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_UNFUSEREDUCESCATTER
#include "braid/Transforms/Passes.h.inc"

namespace {

struct UnfuseReduceScatter : impl::UnfuseReduceScatterBase<UnfuseReduceScatter> {
  void runOnOperation() override {
    for (ReduceScatterOp op : collectivesIn<ReduceScatterOp>(getOperation())) {
      OpBuilder builder(op);
      auto reduce =
          AllReduceOp::create(builder, op.getLoc(), llvm::to_vector(op.getInputs().getTypes()),
                              op.getKind(), op.getInputs(), op.getGroup(), op.getRoleAttr());
      for (auto [part, whole] : llvm::zip_equal(op.getOutputs(), reduce.getOutputs()))
        part.replaceAllUsesWith(LocalSliceOp::create(builder, op.getLoc(), part.getType(), whole,
                                                     op.getDim(), op.getGroup()));
      remarkDone(op, "UnfuseReduceScatter", "became a comm.all_reduce and a slice per value");
      op.erase();
      ++numUnfused;
    }
  }
};

} // namespace
} // namespace braid
