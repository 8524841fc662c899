//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Equivalence.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace braid::test {
namespace {
constexpr llvm::StringLiteral kInputAttrName = "test.input", kExpectedAttrName = "test.expected";

void print(raw_ostream &os, const interp::NamedTensor &result) {
  os << result.name << " = " << result.value.typeString() << " [";
  for (int64_t i = 0; i < result.value.numElements(); ++i) {
    os << (i ? ", " : "");
    if (result.value.isFloat())
      os << llvm::format("%.10g", result.value.floats()[i]);
    else
      os << result.value.ints()[i];
  }
  os << "]\n";
}

struct TestInterpret : PassWrapper<TestInterpret, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestInterpret)
  TestInterpret() = default;
  TestInterpret(const TestInterpret &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-interpret"; }
  StringRef getDescription() const final {
    return "Run the entry with the arguments' test.input (whole tensors), print its results, and "
           "compare them with the "
           "results' test.expected";
  }

  Option<std::string> entry{*this, "entry", llvm::cl::desc("function to run")};
  Option<double> tolerance{*this, "tolerance", llvm::cl::init(0.0),
                           llvm::cl::desc("relative L2 distance allowed from test.expected")};
  Option<uint64_t> weightSeed{*this, "weight-seed", llvm::cl::init(0),
                              llvm::cl::desc("of random weights")};
  Option<unsigned> timeLimit{*this, "time-limit-ms", llvm::cl::init(60000),
                             llvm::cl::desc("for waits without progress")};
  Option<bool> roundToStorage{*this, "round", llvm::cl::init(false),
                              llvm::cl::desc("round results to their element types")};

  void runOnOperation() final {
    if (runtime::Status status = run(); !status.ok()) {
      getOperation().emitError() << status.message();
      signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

  runtime::Status run() {
    runtime::Result<func::FuncOp> func = interp::findEntry(getOperation(), entry);
    if (!func.ok())
      return func.status();
    interp::EvaluateOptions options;
    for (unsigned i = 0; i < func->getNumArguments(); ++i)
      if (auto input = func->getArgAttrOfType<ElementsAttr>(i, kInputAttrName)) {
        runtime::Result<interp::Tensor> tensor = interp::fromAttribute(input);
        if (!tensor.ok())
          return tensor.status();
        options.inputs.push_back({interp::argumentName(*func, i), *tensor});
      }
    std::unique_ptr<runtime::WeightSource> weights = runtime::WeightSource::random(weightSeed);
    options.entry = entry;
    options.weights = weights.get();
    options.roundToStorage = roundToStorage;
    options.grid.timeLimit = std::chrono::milliseconds(timeLimit);
    runtime::Result<interp::Evaluation> evaluation = interp::evaluate(getOperation(), options);
    if (!evaluation.ok())
      return evaluation.status();
    for (auto [i, result] : llvm::enumerate(evaluation->results)) {
      print(llvm::outs(), result);
      auto attr = func->getResultAttrOfType<ElementsAttr>(i, kExpectedAttrName);
      if (!attr)
        continue;
      runtime::Result<interp::Tensor> expected = interp::fromAttribute(attr);
      if (!expected.ok())
        return expected.status();
      if (expected->typeString() != result.value.typeString())
        return runtime::Status::error(result.name + " expects " + expected->typeString() +
                                      ", got " + result.value.typeString());
      if (double distance = interp::relativeL2(result.value, *expected); !(distance <= tolerance))
        return runtime::Status::error(result.name + " differs from test.expected by " +
                                      std::to_string(distance) + " (relative L2)");
    }
    return {};
  }
};
} // namespace

void registerTestInterpretPass() { PassRegistration<TestInterpret>(); }

} // namespace braid::test
