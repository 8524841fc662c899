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

/// Attribute on entry arguments: array<i64: low, high> for random integers with low <= x < high.
/// Without it 0 or 1.
inline constexpr llvm::StringLiteral kRangeAttrName = "test.range";

/// An input for every argument of the module's entry, a function of seed and name only. Floats lie
/// in [-1, 1).
runtime::Result<std::vector<interp::NamedTensor>> randomInputs(mlir::ModuleOp module,
                                                               uint64_t seed);

struct Equivalence {
  double relativeL2 = 0; ///< the largest over all results
  std::string worst;     ///< the result that has it
  interp::Evaluation before, after;
};
/// Runs both. Error when either fails, when results differ in name, type or shape, or when the
/// first form's result is not finite, which could not be compared.
runtime::Result<Equivalence> compareForms(mlir::ModuleOp before, mlir::ModuleOp after,
                                          const std::vector<interp::NamedTensor> &inputs,
                                          runtime::WeightSource &weights);

void registerTestInterpretPass();
void registerTestEquivalencePass();

} // namespace braid::test
#endif // BRAID_TEST_LIB_INTERPRETER_EQUIVALENCE_H
