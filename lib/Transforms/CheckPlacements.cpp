//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/PlacementCheck.h"
#include "braid/Analysis/PresenceCheck.h"
#include "braid/Analysis/RuleNames.h"
#include "braid/Transforms/Passes.h"

#include "braid/Transforms/ShardingUtils.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace braid {
#define GEN_PASS_DEF_CHECKPLACEMENTS
#include "braid/Transforms/Passes.h.inc"

namespace {

struct CheckPlacements : impl::CheckPlacementsBase<CheckPlacements> {
  using CheckPlacementsBase::CheckPlacementsBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<SmallVector<PlacementRule>> rules =
        findRules(getOperation(), skip, "placements", symbolizePlacementRule);
    if (failed(rules))
      return signalPassFailure();
    FailureOr<comm::MeshOp> mesh = getModuleMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    SmallVector<func::FuncOp> entries;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && isEntry(func))
        entries.push_back(func);
    if (failed(checkPresence(*mesh, entries, *rules)) ||
        failed(checkPlacements(getOperation(), *mesh, entries, *rules)))
      signalPassFailure();
  }
};

} // namespace

std::optional<PlacementRule> symbolizePlacementRule(StringRef name) {
  return llvm::StringSwitch<std::optional<PlacementRule>>(name)
      .Case("called", PlacementRule::Called)
      .Case("present", PlacementRule::Present)
      .Case("returned", PlacementRule::Returned)
      .Case("complete", PlacementRule::Complete)
      .Case("stays", PlacementRule::Stays)
      .Case("sum-once", PlacementRule::SumOnce)
      .Case("sum-parts", PlacementRule::SumParts)
      .Case("reduce-kind", PlacementRule::ReduceKind)
      .Case("gather-once", PlacementRule::GatherOnce)
      .Case("gather-dim", PlacementRule::GatherDim)
      .Case("gather-sums", PlacementRule::GatherSums)
      .Case("gather-axes", PlacementRule::GatherAxes)
      .Case("take-part", PlacementRule::TakePart)
      .Case("one-rank", PlacementRule::OneRank)
      .Case("alike", PlacementRule::Alike)
      .Case("table-rows", PlacementRule::TableRows)
      .Case("one-factor", PlacementRule::OneFactor)
      .Case("whole", PlacementRule::Whole)
      .Case("sum-or-parts", PlacementRule::SumOrParts)
      .Case("relative", PlacementRule::Relative)
      .Case("one-kind", PlacementRule::OneKind)
      .Case("extrema", PlacementRule::Extrema)
      .Case("added-once", PlacementRule::AddedOnce)
      .Case("product", PlacementRule::Product)
      .Case("linear", PlacementRule::Linear)
      .Case("shift", PlacementRule::Shift)
      .Case("ring", PlacementRule::Ring)
      .Case("declared", PlacementRule::Declared)
      .Case("declared-axes", PlacementRule::DeclaredAxes)
      .Default(std::nullopt);
}

} // namespace braid
