//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles a module and runs its program on this host.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_DIFFERENTIAL_COMPILED_H
#define BRAID_TEST_UNIT_DIFFERENTIAL_COMPILED_H

#include "braid/Interpreter/Evaluate.h"
#include "braid/Pipelines/Compile.h"

namespace braid::test {

/// The tolerance of `--check` for the compiled program, which computes in f32.
inline constexpr double kCompiledTolerance = 2e-5;

struct CompiledRun {
  std::string mesh;                         ///< as recorded in the bundle
  std::vector<interp::NamedTensor> results; ///< the full results, then states after the run
  /// Those of the program interpreter, which are the same in all of its orders; empty without any.
  std::vector<interp::NamedTensor> resultsInOrders;
};

/// Compiles a copy of the module for this host, writes and reads the bundle's archive as a file
/// would hold it, and runs it with a thread for every rank, and in this many random orders of its
/// queues, which must not race, in the program interpreter.
runtime::Result<CompiledRun> compileAndRun(mlir::ModuleOp module, CompileOptions options,
                                           const std::vector<interp::NamedTensor> &inputs,
                                           runtime::WeightSource &weights, int64_t orders = 0);

/// The largest relative L2 distance between a result and its expected value; infinity when their
/// names differ.
double distance(const std::vector<interp::NamedTensor> &results,
                const std::vector<interp::NamedTensor> &expected);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_DIFFERENTIAL_COMPILED_H
