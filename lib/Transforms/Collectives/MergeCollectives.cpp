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
#define GEN_PASS_DEF_MERGECOLLECTIVES
#include "braid/Transforms/Passes.h.inc"

namespace {

/// Whether all attributes of the two except roles are equal: reduction, dimension and group.
bool sameExchange(Operation *a, Operation *b) {
  auto withoutRole = [](Operation *op) {
    NamedAttrList attributes(op->getAttrDictionary());
    attributes.erase("role");
    return attributes.getDictionary(op->getContext());
  };
  return a->getName() == b->getName() && withoutRole(a) == withoutRole(b);
}

/// The place of an operation that replaces both: the second when nothing before it reads the first,
/// the first when the second's operands exist there. Null when neither holds.
Operation *placeFor(Operation *first, Operation *second) {
  Block *block = first->getBlock();
  bool readBefore = llvm::any_of(first->getUsers(), [&](Operation *user) {
    Operation *here = block->findAncestorOpInBlock(*user);
    return here == second || here->isBeforeInBlock(second);
  });
  if (!readBefore)
    return second;
  bool existAtFirst = llvm::all_of(second->getOperands(), [&](Value operand) {
    Operation *def = operand.getDefiningOp();
    return !def || def->getBlock() != block || def->isBeforeInBlock(first);
  });
  return existAtFirst ? first : nullptr;
}

/// The next collective of the block; null and a reason when an operation in between may not be
/// crossed by a collective.
CollectiveOpInterface nextCollective(Operation *op, StringRef &why) {
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    if (auto collective = dyn_cast<CollectiveOpInterface>(next))
      return collective;
    if (!isMemoryEffectFree(next) && !next->hasTrait<OpTrait::IsTerminator>()) {
      why = "what follows has effects";
      return {};
    }
  }
  why = "no collective follows in its block";
  return {};
}

/// The collective to merge `op` with, and the place of the merged one; null and a reason when there
/// is none.
std::pair<Operation *, Operation *> matchNext(CollectiveOpInterface op, StringRef &why) {
  Operation *next = nextCollective(op, why);
  if (!next)
    return {};
  if (!sameExchange(op, next))
    why = "the next collective is of another kind, group, reduction or dimension";
  else if (!op.hasIndependentValues())
    why = "its values are not independent of each other";
  else if (Operation *place = placeFor(op, next))
    return {next, place};
  else
    why = "the next collective depends on it";
  return {};
}

Operation *merge(Operation *first, Operation *second, Operation *place) {
  OperationState state(first->getLoc(), first->getName());
  state.location = FusedLoc::get(first->getContext(), {first->getLoc(), second->getLoc()});
  llvm::append_range(state.operands, first->getOperands());
  llvm::append_range(state.operands, second->getOperands());
  llvm::append_range(state.types, first->getResultTypes());
  llvm::append_range(state.types, second->getResultTypes());
  state.attributes = first->getAttrDictionary();
  OpBuilder builder(place);
  Operation *merged = builder.create(state);
  SmallVector<std::string> names = valueNames(first);
  llvm::append_range(names, valueNames(second));
  setValueNames(merged, names);
  unsigned count = first->getNumResults();
  first->replaceAllUsesWith(merged->getResults().take_front(count));
  second->replaceAllUsesWith(merged->getResults().drop_front(count));
  first->erase();
  second->erase();
  return merged;
}

struct MergeCollectives : impl::MergeCollectivesBase<MergeCollectives> {
  void runOnOperation() override {
    DenseSet<Operation *> gone;
    for (CollectiveOpInterface op : collectivesIn<CollectiveOpInterface>(getOperation())) {
      if (gone.contains(op))
        continue;
      StringRef why;
      for (auto [next, place] = matchNext(op, why); next;
           std::tie(next, place) = matchNext(op, why)) {
        gone.insert(op);
        gone.insert(next);
        op = cast<CollectiveOpInterface>(merge(op, next, place));
        remarkDone(op, "MergeCollectives",
                   "now exchanges " + Twine(op->getNumOperands()) + " values");
        ++numMerged;
      }
      remarkMissed(op, "MergeCollectives", why);
    }
  }
};

} // namespace
} // namespace braid
