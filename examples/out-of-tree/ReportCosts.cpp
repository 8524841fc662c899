//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A pass in a plugin: reports the cost of every operation of a rank's program, and the bytes that
// its collectives send.
//
//===----------------------------------------------------------------------===//
#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {

struct ReportCosts : PassWrapper<ReportCosts, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReportCosts)

  StringRef getArgument() const override { return "report-costs"; }
  StringRef getDescription() const override {
    return "report what operations cost and collectives send";
  }

  void runOnOperation() override {
    // The pass uses interfaces only, so it includes the operations of other dialects.
    getOperation()->walk([](Operation *op) {
      if (auto collective = dyn_cast<braid::comm::CollectiveOpInterface>(op)) {
        int64_t ranks = braid::comm::groupSize(op, collective.getGroup());
        op->emitRemark("sends ") << collective.getBytesSent(ranks) << " bytes among " << ranks
                                 << " ranks";
      }
      if (auto computation = dyn_cast<braid::nn::CostOpInterface>(op)) {
        braid::nn::OpCost cost = computation.getCost();
        op->emitRemark("takes ") << cost.matrixFlops << " FLOPs of matmuls and " << cost.vectorFlops
                                 << " others, reads " << cost.bytesRead << " bytes and writes "
                                 << cost.bytesWritten;
      }
    });
    markAllAnalysesPreserved();
  }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "report-costs", "0.1", [] { PassRegistration<ReportCosts>(); }};
}
