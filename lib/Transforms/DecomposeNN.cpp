//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Transforms/Passes.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace braid {
#define GEN_PASS_DEF_DECOMPOSENN
#include "braid/Transforms/Passes.h.inc"

namespace {

struct DecomposeNN : impl::DecomposeNNBase<DecomposeNN> {
  using DecomposeNNBase::DecomposeNNBase;

  void runOnOperation() override {
    SmallVector<nn::DecomposeOpInterface> found;
    getOperation()->walk([&](nn::DecomposeOpInterface op) {
      if (!rowsOnly || op.isRowOperation())
        found.push_back(op);
    });
    for (nn::DecomposeOpInterface op : found) {
      OpBuilder builder(op);
      FailureOr<SmallVector<Value>> results = op.decompose(builder, op->getOperands());
      if (failed(results)) {
        op->emitOpError("cannot be decomposed");
        return signalPassFailure();
      }
      op->replaceAllUsesWith(*results);
      op->erase();
      ++numDecomposed;
    }
  }
};

} // namespace
} // namespace braid
