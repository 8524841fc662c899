//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the program of a bundle does, for people who want to see it: the commands of each queue with
// the sizes of what they read and write, who waits for whom, and which ranks exchange what.
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

/// As text. Error when there is no such procedure or rank.
Result<std::string> explain(const Bundle &bundle, const ExplainOptions &options);
/// As JSON: shapes in elements, sizes in bytes.
Result<std::string> explainAsJson(const Bundle &bundle, const ExplainOptions &options);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_EXPLAIN_H
