//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Serializes the rt level to the form that the runtime loads: the program as data
// (runtime/program.fbs) and the manifest.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TARGET_BUNDLE_BUNDLE_H
#define BRAID_TARGET_BUNDLE_BUNDLE_H

#include "braid/Runtime/Bundle.h"
#include "braid/Target/CPU/CPUTarget.h"

#include "mlir/IR/BuiltinOps.h"

namespace braid {

/// Serializes a module at the rt level: every procedure with its two command streams. Views are
/// resolved to buffer, offset and strides; `rt.launch` names its kernel by position. Reports
/// operations without a serialized form.
mlir::FailureOr<runtime::Bytes> buildProgram(mlir::ModuleOp module);

/// Entries with their parameters, operands and results, and the mesh. Kernel libraries are added by
/// buildBundle.
mlir::FailureOr<runtime::Manifest> buildManifest(mlir::ModuleOp module);

/// Program, manifest, kernel libraries and, unless empty, the module's bytecode. Nothing is
/// verified yet: runtime::Bundle::create does that.
mlir::FailureOr<runtime::BundleContents> buildBundle(mlir::ModuleOp module,
                                                     llvm::ArrayRef<CPUKernelLibrary> libraries,
                                                     runtime::Bytes moduleBytecode);

} // namespace braid
#endif // BRAID_TARGET_BUNDLE_BUNDLE_H
