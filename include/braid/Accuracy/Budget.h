//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Encodings under an error budget: the cheapest assignment that keeps a promise on calibration
// data.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ACCURACY_BUDGET_H
#define BRAID_ACCURACY_BUDGET_H

#include "braid/Accuracy/Evaluation.h"

namespace braid {

struct BudgetOptions {
  MetricBound bound;
  /// From which the halves of collectives choose; empty: defaultCandidates().
  std::vector<runtime::Encoding> candidates;
  size_t probeBatches = 1;  ///< on which single halves are measured
  size_t measurements = 10; ///< of whole assignments, at most
};

struct BudgetChoice {
  runtime::EncodingTable table;
  runtime::ErrorBudget record;
  /// Relative L2 that a check may allow; none where the program is as it was.
  std::optional<double> checkTolerance;
  int64_t bytes = 0, plainBytes = 0;
  std::optional<double> seconds, plainSeconds; ///< predicted of these collectives, with a machine
  /// By collective: its identity, and what was chosen and why.
  std::vector<std::pair<std::string, std::string>> remarks;
};

/// Integers of 8 to 3 bits with a zero point in groups of 128, as they are, with spikes, and
/// rotated. A zero point keeps 0 exactly: where a few elements of a group are much larger than the
/// others, an offset moves all of these by up to half a step, in the same direction.
std::vector<runtime::Encoding> defaultCandidates();

/// Measures what each half of each collective costs the result by itself, for each family of
/// candidates (plain, rotated, with spikes, and by the form of integers) with one of them; its
/// others cost in proportion to the square of the error that they have there. The cheapest
/// assignment whose costs add up to the budget is measured as a whole on all data. What an encoding
/// costs is the time that is predicted for it on the model's machine, where a collective stays as
/// it is if that is faster or about as fast; without a machine, the bytes that a rank sends. It is
/// kept if the mean over batches, and its standard error beside it, are within the bound; one that
/// misses it by three standard errors is given up after some batches; the sum that is aimed at is
/// tightened or widened. One candidate for all halves is taken where that holds and costs less. An
/// error if even the most precise assignment is not: it says how close that came. With a reference
/// (Evaluation::create) the bound is for matmuls of 8-bit integers and encodings together.
runtime::Result<BudgetChoice>
chooseEncodings(TableModel &model, Evaluation &evaluation, const BudgetOptions &options,
                llvm::function_ref<void(const std::string &)> progress = nullptr);

} // namespace braid
#endif // BRAID_ACCURACY_BUDGET_H
