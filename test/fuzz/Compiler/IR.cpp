//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs Braid passes on a module given as text. The first line of an input names the passes, the
// rest is the module:
//   // pipeline: braid-propagate-shardings,braid-partition
// A pipeline that fails must emit a diagnostic. If it succeeds, the module must verify, and
// printing and parsing it must give the same module.
//
//===----------------------------------------------------------------------===//
#include "../Fuzz.h"
#include "IRMutator.h"
#include "braid/InitAll.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace braid::fuzz;

namespace {

const DialectRegistry &registry() {
  static const DialectRegistry *all = [] {
    braid::registerAllPasses();
    auto *made = new DialectRegistry;
    braid::registerAllDialects(*made);
    return made;
  }();
  return *all;
}

/// Whether a pipeline has only Braid's passes and the upstream passes that are used with them.
bool isOurs(llvm::StringRef pipeline) {
  static const llvm::StringSet<> others{"canonicalize", "cse", "symbol-dce"};
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '-'; };
  while (!pipeline.empty()) {
    llvm::StringRef word = pipeline.take_while(isWord);
    pipeline = pipeline.drop_front(std::max<size_t>(word.size(), 1));
    const bool isPass = PassInfo::lookup(word) || PassPipelineInfo::lookup(word);
    if (isPass && !word.starts_with("braid-") && !others.contains(word))
      return false;
  }
  return true;
}

/// Whether the module has an operation of a Braid dialect, whose textual form the target checks.
bool hasOurText(ModuleOp module) {
  static const llvm::StringSet<> dialects{"builtin", "func", "nn", "comm", "rt"};
  return !module
              .walk([](Operation *op) {
                return dialects.contains(op->getName().getDialectNamespace())
                           ? WalkResult::advance()
                           : WalkResult::interrupt();
              })
              .wasInterrupted();
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().enableDebugInfo(false));
  return text;
}

void requireRoundTrip(ModuleOp module, const char *when) {
  if (!hasOurText(module))
    return;
  std::string text = textOf(module);
  OwningOpRef<ModuleOp> back = parseSourceString<ModuleOp>(text, module.getContext());
  require(!!back, std::string("the text of a module ") + when + " can be read:\n" + text);
  std::string again = textOf(*back);
  require(again == text, std::string("the text of a module ") + when + " says all of it:\n" + text +
                             "\nand read back:\n" + again);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const DialectRegistry &dialects = registry();
  llvm::StringRef input(reinterpret_cast<const char *>(data), size);
  auto [line, text] = input.split('\n');
  if (!line.consume_front(kPipelinePrefix) || !isOurs(line))
    return 0;
  MLIRContext context(dialects, MLIRContext::Threading::DISABLED);
  bool said = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  require(module || said, "a module that is refused is refused by a message");
  if (!module)
    return 0;
  requireRoundTrip(*module, "that was read");
  PassManager pm(&context);
  if (failed(parsePassPipeline(line, pm, llvm::nulls())))
    return 0;
  said = false;
  LogicalResult result = pm.run(*module);
  require(succeeded(result) || said, "a pass that fails says why");
  if (succeeded(result))
    requireRoundTrip(*module, "after its passes");
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  Random random(seed);
  std::string text = mutateIR(std::string(reinterpret_cast<const char *>(data), size), random);
  return put(text.data(), text.size(), data, size, maxSize);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t firstSize,
                                            const uint8_t *second, size_t secondSize, uint8_t *out,
                                            size_t maxSize, unsigned seed) {
  Random random(seed);
  std::string text =
      crossIR(std::string(reinterpret_cast<const char *>(first), firstSize),
              std::string(reinterpret_cast<const char *>(second), secondSize), random);
  return put(text.data(), text.size(), out, 0, maxSize);
}
