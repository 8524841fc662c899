//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "Session.h"
#include "braid/Import/HuggingFace.h"

using namespace mlir;

namespace braid::tool {

int runImport(const ImportArgs &args) {
  CompilerSession session;
  ImportOptions options;
  options.path = args.model;
  options.batch = args.batch;
  options.seq = args.seq;
  options.layers = args.layers;
  options.result = args.result;
  options.logits = args.logits;
  options.dtype = args.dtype;
  FailureOr<OwningOpRef<ModuleOp>> module = importHuggingFace(
      &session.context(), options, [](const std::string &message) { fail(message); });
  if (failed(module))
    return kInvalid;
  return writeText(args.output,
                   [&](llvm::raw_ostream &os) {
                     OpPrintingFlags flags;
                     flags.enableDebugInfo();
                     (*module)->print(os, flags);
                     os << "\n";
                   })
             ? kDone
             : kInvalid;
}

} // namespace braid::tool
