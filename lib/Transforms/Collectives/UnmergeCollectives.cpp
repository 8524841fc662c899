//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

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
      // Merging joins different roles, one per value.
      auto role = op->getAttrOfType<StringAttr>("role");
      SmallVector<StringRef> roles;
      if (role)
        role.getValue().split(roles, '+');
      OpBuilder builder(op);
      for (size_t i = 0; i < count; ++i) {
        OperationState state(op->getLoc(), op->getName(), op->getOperand(i),
                             op->getResult(i).getType(), op->getAttrs());
        if (roles.size() == count)
          state.attributes.set("role", builder.getStringAttr(roles[i]));
        op->getResult(i).replaceAllUsesWith(builder.create(state)->getResult(0));
      }
      remarkDone(op, "UnmergeCollectives", "became " + Twine(count) + " collectives");
      op->erase();
      ++numUnmerged;
    }
  }
};

} // namespace
} // namespace braid
