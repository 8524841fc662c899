//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// --quantize-budget of `braid compile` and `braid run`.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOLS_BRAID_QUANTIZEBUDGET_H
#define BRAID_TOOLS_BRAID_QUANTIZEBUDGET_H

#include "Commands.h"
#include "braid/Base/Weights.h"
#include "braid/Pipelines/Compile.h"

namespace braid::tool {

/// Chooses encodings for the collectives of `module` under args.bound, which is not empty, and puts
/// them into `options`, with the bound and what was measured. Prints a line on it on stderr, and a
/// remark of category communication for each collective.
runtime::Status chooseUnderBudget(mlir::ModuleOp module, const BudgetArgs &args,
                                  runtime::WeightSource *weights, const std::string &entry,
                                  CompileOptions &options);

} // namespace braid::tool
#endif // BRAID_TOOLS_BRAID_QUANTIZEBUDGET_H
