//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Session.h"

#include "Commands.h"
#include "braid/InitAll.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"

using namespace mlir;

namespace braid::tool {

CompilerSession::CompilerSession() {
  DialectRegistry registry;
  registerAllDialects(registry);
  mlirContext = std::make_unique<MLIRContext>(registry);
  mlirContext->printOpOnDiagnostic(false);
  handler = std::make_unique<SourceMgrDiagnosticHandler>(sources, mlirContext.get(), llvm::errs());
}
CompilerSession::~CompilerSession() = default;

OwningOpRef<ModuleOp> CompilerSession::readModule(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (std::error_code error = buffer.getError()) {
    fail("cannot read '" + path + "': " + error.message());
    return {};
  }
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, mlirContext.get());
  if (!module)
    fail("'" + path + "' is not a valid module");
  return module;
}

int fail(const llvm::Twine &message) {
  llvm::errs() << "braid: error: " << message << "\n";
  return kInvalid;
}

bool writeText(const std::string &path, llvm::function_ref<void(llvm::raw_ostream &)> write) {
  if (path == "-") {
    write(llvm::outs());
    llvm::outs().flush();
    return true;
  }
  llvm::Error error = llvm::writeToOutput(path, [&](llvm::raw_ostream &os) {
    write(os);
    return llvm::Error::success();
  });
  if (!error)
    return true;
  fail("cannot write '" + path + "': " + llvm::toString(std::move(error)));
  return false;
}

Progress::Progress() : terminal(llvm::sys::Process::StandardErrIsDisplayed()) {}
Progress::~Progress() {
  if (terminal)
    llvm::errs() << "\r\033[K";
}
void Progress::step(const llvm::Twine &what) {
  if (terminal)
    llvm::errs() << "\r\033[K" << what;
}

} // namespace braid::tool
