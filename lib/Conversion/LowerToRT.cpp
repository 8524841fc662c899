//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProcedureLowering.h"

#include "braid/Conversion/Passes.h"

#include "mlir/Analysis/CallGraph.h"
#include "llvm/ADT/SCCIterator.h"

namespace braid {
#define GEN_PASS_DEF_LOWERTORT
#include "braid/Conversion/Passes.h.inc"
} // namespace braid

using namespace mlir;
using namespace braid;

namespace {
struct LowerToRT : braid::impl::LowerToRTBase<LowerToRT> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    LibraryKernels kernels(getOperation());
    // Callees before their callers, whose memory depends on what callees expect.
    llvm::StringMap<Signature> signatures;
    CallGraph graph(getOperation());
    for (auto it = llvm::scc_begin<const CallGraph *>(&graph); !it.isAtEnd(); ++it)
      for (const CallGraphNode *node : *it) {
        if (node->isExternal())
          continue;
        auto function = dyn_cast<func::FuncOp>(node->getCallableRegion()->getParentOp());
        if (!function)
          continue;
        ProcedureLowering lowering(function, kernels, signatures);
        if (failed(lowering.run()))
          return signalPassFailure();
        signatures[function.getSymName()] = lowering.getSignature();
        ++numProcedures;
        numCopies += lowering.numCopies;
      }
    // Calls look functions up until the last one is lowered; then the procedures take their names.
    for (func::FuncOp function : functions)
      function.erase();
  }
};
} // namespace
