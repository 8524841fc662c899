//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks that two forms of a model are equivalent: the interpreter runs both on the same random
// inputs and weights.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_LIB_INTERPRETER_EQUIVALENCE_H
#define BRAID_TEST_LIB_INTERPRETER_EQUIVALENCE_H

#include "braid/Interpreter/Evaluate.h"

namespace braid::test {

/// Attribute on entry arguments: array<i64: low, high> asks for random integers with low <= x <
/// high. Without it they are 0 or 1.
inline constexpr llvm::StringLiteral kRangeAttrName = "test.range";

/// Makes an input for every argument of the module's entry, which depends on seed and name only.
/// Floats lie in [-1, 1).
runtime::Result<std::vector<interp::NamedTensor>> randomInputs(mlir::ModuleOp module,
                                                               uint64_t seed);

struct Equivalence {
  double relativeL2 = 0; ///< the maximum over all results
  std::string worst;     ///< the name of the result with this maximum
  interp::Evaluation before, after;
};
/// Runs both modules. Fails when either run fails, when results differ in name, type or shape, or
/// when a result of `before` is not finite and so cannot be compared.
runtime::Result<Equivalence> compareForms(mlir::ModuleOp before, mlir::ModuleOp after,
                                          const std::vector<interp::NamedTensor> &inputs,
                                          runtime::WeightSource &weights);

void registerTestInterpretPass();
void registerTestEquivalencePass();

} // namespace braid::test
#endif // BRAID_TEST_LIB_INTERPRETER_EQUIVALENCE_H
