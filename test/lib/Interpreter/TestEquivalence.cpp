//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Equivalence.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace braid::test {
namespace {
struct TestEquivalence : PassWrapper<TestEquivalence, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestEquivalence)
  TestEquivalence() = default;
  TestEquivalence(const TestEquivalence &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-equivalence"; }
  StringRef getDescription() const final {
    return "Run a pipeline on the module, and the module before and after it on the same random "
           "inputs and weights: the "
           "answers must be the same";
  }

  Option<std::string> pipeline{*this, "pipeline",
                               llvm::cl::desc("passes to run, as in builtin.module(...)")};
  Option<double> tolerance{*this, "tolerance", llvm::cl::init(1e-12),
                           llvm::cl::desc("relative L2 distance allowed")};
  Option<uint64_t> seed{*this, "seed", llvm::cl::init(0), llvm::cl::desc("of inputs and weights")};

  void getDependentDialects(DialectRegistry &registry) const final {
    // An unparsable pipeline is reported when the pass runs.
    if (FailureOr<OpPassManager> manager = parsePassPipeline(pipeline, llvm::nulls());
        succeeded(manager))
      manager->getDependentDialects(registry);
  }

  void runOnOperation() final {
    OwningOpRef<ModuleOp> before = getOperation().clone();
    FailureOr<OpPassManager> manager = parsePassPipeline(pipeline);
    if (failed(manager) || failed(runPipeline(*manager, getOperation())))
      return signalPassFailure();
    runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(*before, seed);
    std::unique_ptr<runtime::WeightSource> weights = runtime::WeightSource::random(seed);
    runtime::Result<Equivalence> result =
        inputs.ok() ? compareForms(*before, getOperation(), *inputs, *weights)
                    : runtime::Result<Equivalence>(inputs.status());
    if (!result.ok()) {
      getOperation().emitError() << result.status().message();
      return signalPassFailure();
    }
    if (!(result->relativeL2 <= tolerance)) {
      getOperation().emitError() << "result '" << result->worst << "' changed by "
                                 << llvm::formatv("{0:e3}", result->relativeL2).str()
                                 << " (relative L2)";
      return signalPassFailure();
    }
    llvm::outs() << "equivalent on " << result->before.numRanks << " and " << result->after.numRanks
                 << " ranks:";
    for (const auto &[name, count] : result->after.executed)
      llvm::outs() << " " << name << " x" << count;
    llvm::outs() << "\n";
  }
};
} // namespace

void registerTestEquivalencePass() { PassRegistration<TestEquivalence>(); }

} // namespace braid::test
