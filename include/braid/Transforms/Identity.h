//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Names of collectives. A collective is named by the calls that lead to it and by its role, which
// is unique in its function: "@main/@layer#3/mlp.down". The name is given once, and every rewrite
// keeps it or says what came of it:
//
//   mlp.down#1               the second collective of this role in its function
//   mlp.down/reduce_scatter  a part of what it was split into
//   mlp.down+mlp.up          one value of each, merged into one collective
//   a&b                      one value that takes the place of both
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TRANSFORMS_IDENTITY_H
#define BRAID_TRANSFORMS_IDENTITY_H

#include "dialects/Comm/IR/Comm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace braid {

/// The names of a collective's values: its own for each, or those that were merged. Empty strings
/// for a collective without a name.
llvm::SmallVector<std::string> valueNames(mlir::Operation *collective);
/// Sets the names of the values, of which empty ones are left out: one name if all are equal.
void setValueNames(mlir::Operation *collective, llvm::ArrayRef<std::string> names);

/// Names `part`, which does a part of what `whole` did, by the part it does: "all_gather".
void namePart(mlir::Operation *part, mlir::Operation *whole, llvm::StringRef what);
/// Names `whole`, which replaces collectives with as many values as it has: by the one that they
/// are parts of, else by all of them.
void nameWhole(mlir::Operation *whole, llvm::ArrayRef<mlir::Operation *> parts);

/// The name of a collective that moves to the caller, and back: "@layer#3/mlp.down" is at the end
/// of the same path there as "mlp.down" was. Empty for a collective without a name.
std::string nameInCaller(mlir::Operation *collective, mlir::func::CallOp call);
std::string nameInCallee(mlir::Operation *collective);

/// The name of a call in call paths: its 'comm.call', else its callee's.
std::string callName(mlir::func::CallOp call);

/// Names the calls and the collectives of a module that have no name, and numbers those that share
/// one in a function. Names that are unique do not change.
void identify(mlir::ModuleOp module);

/// Gives a call a callee of its own, unless it is the only one. Collectives keep their names, as
/// the call keeps its own. Returns the clone, or null without one. Calls must have been identified.
mlir::func::FuncOp specialize(mlir::func::CallOp call, mlir::SymbolTable &symbols);

} // namespace braid
#endif // BRAID_TRANSFORMS_IDENTITY_H
