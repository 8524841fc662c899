//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Transforms/Identity.h"
#include "braid/Transforms/Passes.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_SPLITALLREDUCE
#include "braid/Transforms/Passes.h.inc"

namespace {

/// Whether every value can be scattered over `dim`.
bool divides(AllReduceOp op, int64_t dim, int64_t n) {
  return llvm::all_of(op.getInputs(), [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return dim < type.getRank() && type.getDimSize(dim) % n == 0;
  });
}

/// The dimension to scatter over: `wanted`, or if that is negative the sequence dimension of an
/// activation, or the outermost that divides.
std::optional<int64_t> chooseDim(AllReduceOp op, int64_t n, int64_t wanted) {
  if (wanted >= 0)
    return divides(op, wanted, n) ? std::optional<int64_t>(wanted) : std::nullopt;
  int64_t rank = cast<RankedTensorType>(op.getInputs()[0].getType()).getRank();
  if (rank == 3 && divides(op, 1, n))
    return 1;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (divides(op, dim, n))
      return dim;
  return std::nullopt;
}

struct SplitAllReduce : impl::SplitAllReduceBase<SplitAllReduce> {
  using SplitAllReduceBase::SplitAllReduceBase;

  void runOnOperation() override {
    for (AllReduceOp op : collectivesIn<AllReduceOp>(getOperation())) {
      int64_t n = groupSize(op, op.getGroup());
      std::optional<int64_t> chosen = chooseDim(op, n, dim);
      if (!chosen) {
        std::string which = dim < 0 ? "no dimension" : "dimension " + std::to_string(dim) + " not";
        remarkMissed(op, "SplitAllReduce",
                     which + " divides over " + Twine(n) + " ranks in every value");
        continue;
      }
      ReduceScatterOp scatter = createReduceScatter(op, *chosen);
      OpBuilder builder(op);
      auto gather = AllGatherOp::create(builder, op.getLoc(), op.getResultTypes(),
                                        scatter.getOutputs(), *chosen, op.getGroup(), StringAttr());
      namePart(scatter, op, "reduce_scatter");
      namePart(gather, op, "all_gather");
      remarkDone(op, "SplitAllReduce", "split over dimension " + Twine(*chosen));
      op.replaceAllUsesWith(gather.getOutputs());
      op.erase();
      ++numSplit;
    }
  }
};

} // namespace
} // namespace braid
