//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MlirOptions.h"

#include "Commands.h"
#include "Session.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/CommandLine.h"

using namespace mlir;

namespace braid::tool {

bool takeMlirOptions(int &argc, char **argv) {
  registerPasses(); // first: --mlir-print-ir-after names one
  registerMLIRContextCLOptions();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  SmallVector<const char *> taken{argv[0]};
  int kept = 0;
  for (char *argument : llvm::make_range(argv, argv + argc)) {
    if (StringRef(argument).starts_with("--mlir-"))
      taken.push_back(argument);
    else
      argv[kept++] = argument;
  }
  argc = kept;
  if (taken.size() == 1)
    return true;
  std::string text;
  llvm::raw_string_ostream errors(text);
  if (llvm::cl::ParseCommandLineOptions(static_cast<int>(taken.size()), taken.data(), "", &errors))
    return true;
  // The parser's message begins with its own idea of the program's name; it prints errors in values
  // itself.
  StringRef message = StringRef(text).split('\n').first.split(": ").second;
  fail(message.empty() ? "cannot read the options that begin with --mlir-" : message);
  return false;
}

PassInstruments::PassInstruments() {
  applyDefaultTimingManagerCLOptions(timing);
  root = timing.getRootScope();
}

LogicalResult PassInstruments::apply(PassManager &manager) {
  manager.enableTiming(root);
  return applyPassManagerCLOptions(manager);
}

} // namespace braid::tool
