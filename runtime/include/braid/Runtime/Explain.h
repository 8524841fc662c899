//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Describes the program of a bundle for people: the commands of each queue with the sizes of their
// operands, which commands wait for which, and what ranks exchange.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_EXPLAIN_H
#define BRAID_RUNTIME_EXPLAIN_H

#include "braid/Runtime/Bundle.h"

#include <optional>
#include <string>

namespace braid::runtime {

struct ExplainOptions {
  std::string procedure;       ///< only this one; empty: all of them
  std::optional<int64_t> rank; ///< name the ranks that this one exchanges values with
};

/// As text. An unknown procedure or rank is an error.
Result<std::string> explain(const Bundle &bundle, const ExplainOptions &options);
/// As JSON: shapes in elements, sizes in bytes.
Result<std::string> explainAsJson(const Bundle &bundle, const ExplainOptions &options);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_EXPLAIN_H
