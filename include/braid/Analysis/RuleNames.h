//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The option `skip` of passes that check: rules that they leave out, by name, which tests use to
// show that each rule is needed.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ANALYSIS_RULENAMES_H
#define BRAID_ANALYSIS_RULENAMES_H

#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace braid {

/// The rules of these names. A name without a rule is an error at `op` that names the check: "of
/// the check of buffers".
template <typename Rule>
mlir::FailureOr<llvm::SmallVector<Rule>>
findRules(mlir::Operation *op, llvm::ArrayRef<std::string> names, llvm::StringRef check,
          std::optional<Rule> (*find)(llvm::StringRef)) {
  llvm::SmallVector<Rule> rules;
  for (const std::string &name : names) {
    std::optional<Rule> rule = find(name);
    if (!rule)
      return op->emitError("expects a rule of the check of ")
             << check << " in 'skip', got '" << name << "'";
    rules.push_back(*rule);
  }
  return rules;
}

} // namespace braid
#endif // BRAID_ANALYSIS_RULENAMES_H
