//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Transforms/Passes.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_JOINALLREDUCE
#include "braid/Transforms/Passes.h.inc"

namespace {

/// The reduce_scatter whose results `gather` takes, all and in order, along the same dimension;
/// null and a reason when there is none.
ReduceScatterOp scatterOf(AllGatherOp gather, StringRef &why) {
  auto scatter = gather.getInputs()[0].getDefiningOp<ReduceScatterOp>();
  if (!scatter || !llvm::equal(scatter.getOutputs(), gather.getInputs()))
    why = "its operands are not the results of one comm.reduce_scatter";
  else if (scatter.getDim() != gather.getDim())
    why = "the comm.reduce_scatter is over another dimension";
  else if (scatter.getGroup() != gather.getGroup())
    why = "the comm.reduce_scatter is over another group";
  else
    return scatter;
  return {};
}

struct JoinAllReduce : impl::JoinAllReduceBase<JoinAllReduce> {
  void runOnOperation() override {
    for (AllGatherOp gather : collectivesIn<AllGatherOp>(getOperation())) {
      StringRef why;
      ReduceScatterOp scatter = scatterOf(gather, why);
      if (!scatter) {
        remarkMissed(gather, "JoinAllReduce", why);
        continue;
      }
      // At the scatter's place, so that it serves the scatter's other users too. A second gather of
      // the same shards then gathers slices, which folds.
      OpBuilder builder(scatter);
      auto reduce =
          AllReduceOp::create(builder, scatter.getLoc(), gather.getResultTypes(), scatter.getKind(),
                              scatter.getInputs(), scatter.getGroup(), scatter.getRoleAttr());
      remarkDone(gather, "JoinAllReduce", "joined with its comm.reduce_scatter");
      gather.replaceAllUsesWith(reduce.getOutputs());
      gather.erase();
      for (auto [part, whole] : llvm::zip_equal(scatter.getOutputs(), reduce.getOutputs())) {
        if (part.use_empty())
          continue;
        part.replaceAllUsesWith(LocalSliceOp::create(builder, scatter.getLoc(), part.getType(),
                                                     whole, scatter.getDim(), scatter.getGroup()));
      }
      scatter.erase();
      ++numJoined;
    }
  }
};

} // namespace
} // namespace braid
