//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Session.h"

#include "Commands.h"
#include "braid/InitAll.h"
#include "braid/Runtime/Files.h"
#include "braid/Transforms/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"

using namespace mlir;

namespace braid::tool {

void registerPasses() {
  static const bool registered = (registerBraidPasses(), registerTransformsPasses(), true);
  (void)registered;
}

CompilerSession::CompilerSession() {
  registerPasses();
  DialectRegistry registry;
  registerAllDialects(registry);
  mlirContext = std::make_unique<MLIRContext>(registry);
  mlirContext->printOpOnDiagnostic(false);
  sourceHandler =
      std::make_unique<SourceMgrDiagnosticHandler>(sources, mlirContext.get(), llvm::errs());
  handler = std::make_unique<ScopedDiagnosticHandler>(mlirContext.get(), [this](Diagnostic &diag) {
    print(diag);
    for (Diagnostic &note : diag.getNotes())
      print(note);
    return success();
  });
}
CompilerSession::~CompilerSession() = default;

/// "encoder.layer.0.attention.query", from the outermost name in; empty for places in files only.
static std::string nameOf(Location loc) {
  std::string name;
  loc->walk([&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part))
      if (name.empty())
        name = named.getName().str();
    return name.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return name;
}

void CompilerSession::print(Diagnostic &diag) {
  // A model's operations are known by their names in the model; only parsed text has line numbers.
  std::string name = nameOf(diag.getLocation());
  bool inFile = diag.getLocation()->findInstanceOf<FileLineColLoc>() != nullptr;
  if (inFile && name.empty())
    return sourceHandler->emitDiagnostic(diag.getLocation(), diag.str(), diag.getSeverity());
  llvm::StringRef severity = "error";
  switch (diag.getSeverity()) {
  case DiagnosticSeverity::Error:
    break;
  case DiagnosticSeverity::Warning:
    severity = "warning";
    break;
  case DiagnosticSeverity::Remark:
    severity = "remark";
    break;
  case DiagnosticSeverity::Note:
    severity = "note";
    break;
  }
  llvm::errs() << "braid: " << severity << ": " << (name.empty() ? "" : name + ": ") << diag.str()
               << "\n";
}

bool CompilerSession::load(const PluginArgs &plugins) {
  auto failed = [](const std::string &path, llvm::Error error) {
    // The loader's message may have several lines and repeats the path.
    fail("cannot load plugin '" + path + "': " + llvm::toString(std::move(error)));
    return false;
  };
  for (const std::string &path : plugins.dialects) {
    llvm::Expected<DialectPlugin> plugin = DialectPlugin::load(path);
    if (!plugin)
      return failed(path, plugin.takeError());
    DialectRegistry registry;
    plugin->registerDialectRegistryCallbacks(registry);
    mlirContext->appendDialectRegistry(registry);
  }
  for (const std::string &path : plugins.passes) {
    llvm::Expected<PassPlugin> plugin = PassPlugin::load(path);
    if (!plugin)
      return failed(path, plugin.takeError());
    plugin->registerPassRegistryCallbacks();
  }
  return true;
}

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
  std::string text;
  llvm::raw_string_ostream os(text);
  write(os);
  if (path == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    return true;
  }
  runtime::Status status = runtime::writeFile(path, {{text.data(), text.size()}});
  if (!status.ok())
    fail(status.message());
  return status.ok();
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
