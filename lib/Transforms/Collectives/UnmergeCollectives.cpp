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
#define GEN_PASS_DEF_UNMERGECOLLECTIVES
#include "braid/Transforms/Passes.h.inc"

namespace {

struct UnmergeCollectives : impl::UnmergeCollectivesBase<UnmergeCollectives> {
  void runOnOperation() override {
    for (CollectiveOpInterface collective : collectivesIn<CollectiveOpInterface>(getOperation())) {
      Operation *op = collective;
      size_t count = op->getNumOperands();
      if (count == 1 || !collective.hasIndependentValues())
        continue;
      // Values that were merged take their own names again.
      SmallVector<std::string> names = valueNames(op);
      if (llvm::all_equal(names) && !names.front().empty())
        for (auto [i, name] : llvm::enumerate(names))
          name += "/" + std::to_string(i);
      OpBuilder builder(op);
      for (size_t i = 0; i < count; ++i) {
        OperationState state(op->getLoc(), op->getName(), op->getOperand(i),
                             op->getResult(i).getType(), op->getAttrs());
        Operation *own = builder.create(state);
        setValueNames(own, names[i]);
        op->getResult(i).replaceAllUsesWith(own->getResult(0));
      }
      remarkDone(op, "UnmergeCollectives", "became " + Twine(count) + " collectives");
      op->erase();
      ++numUnmerged;
    }
  }
};

} // namespace
} // namespace braid
