//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/PlacementCheck.h"
#include "braid/Analysis/PresenceCheck.h"
#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"

using namespace mlir;

namespace braid {
#define GEN_PASS_DEF_CHECKPLACEMENTS
#include "braid/Transforms/Passes.h.inc"

namespace {

struct CheckPlacements : impl::CheckPlacementsBase<CheckPlacements> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<comm::MeshOp> mesh = getModuleMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    SmallVector<func::FuncOp> entries;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && isEntry(func))
        entries.push_back(func);
    if (failed(checkPresence(*mesh, entries)) ||
        failed(checkPlacements(getOperation(), *mesh, entries)))
      signalPassFailure();
  }
};

} // namespace
} // namespace braid
