//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Faults that a programmer of per-rank programs makes, one at a time.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_DIFFERENTIAL_MUTATION_H
#define BRAID_TEST_UNIT_DIFFERENTIAL_MUTATION_H

#include "dialects/Comm/IR/Comm.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace braid::test {

/// A change of the n-th operation of a module.
struct Mutation {
  std::string kind;
  size_t operation; ///< in the order of a walk
  /// Changes the operation in a module equal to the one that was read.
  void (*apply)(mlir::Operation *op);
};

/// All mutations of a partitioned module that keep the types of all values, but for a changed
/// declaration of a result.
std::vector<Mutation> mutationsOf(mlir::ModuleOp module);
void applyMutation(mlir::ModuleOp module, const Mutation &mutation);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_DIFFERENTIAL_MUTATION_H
