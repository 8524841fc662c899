//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A pass of one's own: says which collectives a rank takes part in, and how many bytes it sends.
//
//===----------------------------------------------------------------------===//
#include "dialects/Comm/IR/Comm.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {

struct CountCollectives : PassWrapper<CountCollectives, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountCollectives)

  StringRef getArgument() const override { return "count-collectives"; }
  StringRef getDescription() const override { return "report every collective of a module"; }

  void runOnOperation() override {
    // Collectives are known by their interface, so this counts those of other dialects as well.
    getOperation()->walk([](braid::comm::CollectiveOpInterface op) {
      int64_t ranks = braid::comm::groupSize(op, op.getGroup());
      op->emitRemark("among ") << ranks << " ranks, each sends " << op.getBytesSent(ranks)
                               << " bytes";
    });
    markAllAnalysesPreserved();
  }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "count-collectives", "0.1",
          [] { PassRegistration<CountCollectives>(); }};
}
