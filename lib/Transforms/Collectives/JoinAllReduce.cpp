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

/// The reduce_scatter of which `gather` gathers all results, in order and along the same dimension;
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
      remarkDone(gather, "JoinAllReduce", "joined with its comm.reduce_scatter");
      // A second gather of the same shards then gathers slices, which folds.
      replaceByAllReduce(scatter, gather);
      ++numJoined;
    }
  }
};

} // namespace
} // namespace braid
