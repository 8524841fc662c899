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
      remarkDone(op, "UnfuseReduceScatter", "became a comm.all_reduce and a slice per value");
      replaceByAllReduce(op);
      ++numUnfused;
    }
  }
};

} // namespace
} // namespace braid
