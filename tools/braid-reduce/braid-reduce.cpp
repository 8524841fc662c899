//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// MLIR's reducer with Braid's dialects and passes: minimizes a module that shows a fault.
//
//===----------------------------------------------------------------------===//
#include "braid/InitAll.h"
#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Reducer/Passes.h"
#include "mlir/Reducer/ReductionPatternInterface.h"
#include "mlir/Reducer/Tester.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace {

/// Removes an operation from a chain if the module stays interesting: an operand of the same type
/// replaces its result.
struct TakeOut : RewritePattern {
  TakeOut(MLIRContext *context, const Dialect *dialect, const Tester &tester)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context), dialect(dialect),
        tester(tester) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (op->getDialect() != dialect || op->getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "is no operation with one result of the dialect");
    for (Value operand : op->getOperands())
      if (operand.getType() == op->getResult(0).getType() && staysInteresting(op, operand)) {
        rewriter.replaceOp(op, operand);
        return success();
      }
    return rewriter.notifyMatchFailure(op, "has no operand that could take the result's place");
  }

private:
  bool staysInteresting(Operation *op, Value operand) const {
    IRMapping mapping;
    OwningOpRef<ModuleOp> copy = cast<ModuleOp>(op->getParentOfType<ModuleOp>()->clone(mapping));
    Operation *copied = mapping.lookup(op);
    copied->getResult(0).replaceAllUsesWith(mapping.lookup(operand));
    copied->erase();
    return tester.isInteresting(*copy).first == Tester::Interestingness::True;
  }

  const Dialect *dialect;
  const Tester &tester;
};

/// Reduction patterns of a dialect whose operations or calls form a model.
struct Reduction : DialectReductionPatternInterface {
  explicit Reduction(Dialect *dialect) : DialectReductionPatternInterface(dialect) {}
  void populateReductionPatterns(RewritePatternSet &) const override {}
  void populateReductionPatternsWithTester(RewritePatternSet &patterns,
                                           Tester &tester) const override {
    patterns.add<TakeOut>(patterns.getContext(), getDialect(), tester);
  }
};

template <typename... Dialects> void addReductions(DialectRegistry &registry) {
  (registry.addExtension(
       +[](MLIRContext *, Dialects *dialect) { dialect->template addInterfaces<Reduction>(); }),
   ...);
}

} // namespace

namespace cl = llvm::cl;

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  braid::registerAllPasses();
  registerReducerPasses();
  cl::opt<std::string> input(cl::Positional, cl::Required, cl::desc("<module>"));
  cl::opt<std::string> output("o", cl::desc("Where to write the small module (default: stdout)"),
                              cl::value_desc("file"), cl::init("-"));
  PassPipelineCLParser passes("", "What to reduce with, in the order given:");
  cl::ParseCommandLineOptions(argc, argv, "Minimizes a module that shows a fault\n");
  auto fail = [](const Twine &message) {
    llvm::errs() << "braid-reduce: error: " << message << "\n";
    return 1;
  };

  DialectRegistry registry;
  braid::registerAllDialects(registry);
  addReductions<braid::comm::CommDialect, braid::nn::NNDialect, func::FuncDialect>(registry);
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &message);
  if (!file)
    return fail(message);
  // Opened before hours of work whose result could not be written.
  std::unique_ptr<llvm::ToolOutputFile> small = openOutputFile(output, &message);
  if (!small)
    return fail(message);
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return 1;

  bool explained = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    explained |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return failure(); // it is printed later
  });
  PassManager manager(&context);
  auto onError = [&](const Twine &what) { return emitError(module->getLoc()) << what; };
  if (!passes.hasAnyOccurrences())
    return fail("expects passes to reduce with, such as -reduction-tree");
  if (failed(passes.addToPipeline(manager, onError)))
    return 1;
  if (failed(manager.run(*module)))
    // The reducer only warns of an uninteresting module.
    return explained ? 1
                     : fail("nothing is reduced: expects a module for which the script ends with "
                            "status 1");
  module->print(small->os());
  small->keep();
  return 0;
}
