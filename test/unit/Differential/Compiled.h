//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The compiled program of a module, run on this host.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_DIFFERENTIAL_COMPILED_H
#define BRAID_TEST_UNIT_DIFFERENTIAL_COMPILED_H

#include "braid/Interpreter/Evaluate.h"
#include "braid/Pipelines/Compile.h"

namespace braid::test {

/// The tolerance for the compiled program, in f32, as of --check.
inline constexpr double kCompiledTolerance = 2e-5;

struct CompiledRun {
  std::string mesh;                         ///< as its bundle says
  std::vector<interp::NamedTensor> results; ///< whole, in the order of the entry's
};

/// Compiles a copy of the module for this host, through an archive as a file would hold it, and
/// runs it with a thread for every rank.
runtime::Result<CompiledRun> compileAndRun(mlir::ModuleOp module, CompileOptions options,
                                           const std::vector<interp::NamedTensor> &inputs,
                                           runtime::WeightSource &weights);

/// The largest relative L2 distance between results and expected ones; infinity when their names
/// differ.
double distance(const std::vector<interp::NamedTensor> &results,
                const std::vector<interp::NamedTensor> &expected);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_DIFFERENTIAL_COMPILED_H
