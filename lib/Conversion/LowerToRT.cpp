//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProcedureLowering.h"

#include "braid/Conversion/Passes.h"

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
    for (func::FuncOp function : functions) {
      ProcedureLowering lowering(function, kernels);
      if (failed(lowering.run()))
        return signalPassFailure();
      ++numProcedures;
      numCopies += lowering.numCopies;
    }
    // Calls look functions up until the last one is lowered; then the procedures take their names.
    for (func::FuncOp function : functions)
      function.erase();
  }
};
} // namespace
