//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Records the maxima of channels, and says as remarks what of them could be smoothed.
//
//===----------------------------------------------------------------------===//
#include "TestChannelMaxima.h"

#include "braid/Transforms/ChannelMaxima.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace braid::test {
namespace {

struct TestChannelMaxima : PassWrapper<TestChannelMaxima, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestChannelMaxima)

  StringRef getArgument() const override { return "test-channel-maxima"; }
  StringRef getDescription() const override {
    return "give the entry the largest magnitude of each channel before linear operations";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<nn::NNDialect, arith::ArithDialect, math::MathDialect>();
  }

  void runOnOperation() override {
    FailureOr<std::vector<ChannelGroup>> groups = recordChannelMaxima(getOperation());
    if (failed(groups))
      return signalPassFailure();
    for (const ChannelGroup &group : *groups)
      getOperation().emitRemark(group.result)
          << ": " << group.name << ": "
          << (group.obstacle.empty() ? "can be smoothed" : group.obstacle);
  }
};

} // namespace

void registerTestChannelMaximaPass() { PassRegistration<TestChannelMaxima>(); }

} // namespace braid::test
