//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Transforms/Passes.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_FUSEREDUCESCATTER
#include "braid/Transforms/Passes.h.inc"

namespace {

/// The dimension along which every use of every result takes this rank's shard; nothing and a
/// reason when not all do.
FailureOr<int64_t> matchSliceDim(AllReduceOp op) {
  auto miss = [&](const Twine &why) {
    remarkMissed(op, "FuseReduceScatter", why);
    return failure();
  };
  std::optional<int64_t> dim;
  for (Value result : op.getOutputs()) {
    if (result.use_empty())
      return miss("a result has no use");
    for (Operation *user : result.getUsers()) {
      auto slice = dyn_cast<PartOp>(user);
      if (!slice || slice.getGroup() != op.getGroup() || slice.getShift() != 0)
        return miss("'" + user->getName().getStringRef() + "' uses the unsliced value");
      if (dim && *dim != static_cast<int64_t>(slice.getDim()))
        return miss("its users slice different dimensions");
      dim = slice.getDim();
    }
  }
  return *dim;
}

struct FuseReduceScatter : impl::FuseReduceScatterBase<FuseReduceScatter> {
  void runOnOperation() override {
    for (AllReduceOp op : collectivesIn<AllReduceOp>(getOperation())) {
      FailureOr<int64_t> dim = matchSliceDim(op);
      if (failed(dim))
        continue;
      ReduceScatterOp scatter = createReduceScatter(op, *dim);
      remarkDone(op, "FuseReduceScatter", "fused with slices of dimension " + Twine(*dim));
      for (auto [value, shard] : llvm::zip_equal(op.getOutputs(), scatter.getOutputs()))
        for (Operation *slice : llvm::make_early_inc_range(value.getUsers())) {
          slice->getResult(0).replaceAllUsesWith(shard);
          slice->erase();
        }
      op.erase();
      ++numFused;
    }
  }
};

} // namespace
} // namespace braid
