//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by the subcommands that handle IR: a context with all dialects, diagnostics on stderr,
// reading modules, writing text atomically, progress on a terminal.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOLS_BRAID_SESSION_H
#define BRAID_TOOLS_BRAID_SESSION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <string>

namespace mlir {
class Diagnostic;
class ScopedDiagnosticHandler;
class SourceMgrDiagnosticHandler;
} // namespace mlir

namespace braid::tool {

struct PluginArgs;

/// The passes that --passes and MLIR's own options may name.
void registerPasses();

class CompilerSession {
public:
  CompilerSession();
  ~CompilerSession();
  mlir::MLIRContext &context() { return *mlirContext; }
  /// Loads plugins and registers their dialects and passes. Prints errors; false when that fails.
  bool load(const PluginArgs &plugins);
  /// Reads MLIR text or bytecode. Prints errors; null when that fails.
  mlir::OwningOpRef<mlir::ModuleOp> readModule(const std::string &path);

private:
  void print(mlir::Diagnostic &diag);

  std::unique_ptr<mlir::MLIRContext> mlirContext;
  llvm::SourceMgr sources;
  std::unique_ptr<mlir::SourceMgrDiagnosticHandler> sourceHandler; ///< for places in a file
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
};

/// Prints "braid: error: ..." and returns kInvalid.
int fail(const llvm::Twine &message);

/// Writes a text file, or standard output for "-". Through a temporary file: a failure leaves
/// nothing behind.
bool writeText(const std::string &path, llvm::function_ref<void(llvm::raw_ostream &)> write);

/// One line on stderr that is overwritten as work goes on; silent unless stderr is a terminal.
class Progress {
public:
  Progress();
  ~Progress();
  void step(const llvm::Twine &what);

private:
  bool terminal;
};

} // namespace braid::tool
#endif // BRAID_TOOLS_BRAID_SESSION_H
