//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The results of `braid evaluate` as a table, as JSON, and as charts.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ACCURACY_EVALUATIONREPORT_H
#define BRAID_ACCURACY_EVALUATIONREPORT_H

#include "braid/Accuracy/Evaluation.h"

#include "llvm/Support/JSON.h"

namespace braid {

/// One assignment of encodings, and what came of it.
struct EvaluatedRow {
  std::string name; ///< "int4:128/int8:128", or a list of PATTERN=ENCODING
  runtime::EncodingTable table;
  Evaluated evaluated;
};

/// One collective that is encoded alone, one half of it.
struct SensitivityRow {
  std::string encoding, identity;
  bool gather = false;
  RowErrors errors;
};

struct EvaluationReport {
  std::string model, mesh, data;
  ResultForm form = ResultForm::rows;
  bool hasLabels = false;
  int64_t batches = 0, sequences = 0, rows = 0, leftOver = 0;
  double plainPerplexity = 1;
  int64_t plainBytes = 0; ///< that a rank sends in a run without encodings
  std::vector<double> scores, plainSimilarities;
  std::vector<EncodedCollective> collectives;
  std::vector<EvaluatedRow> encodings;
  std::vector<SensitivityRow> sensitivity;
  int64_t sensitivityBatches = 0;

  std::string text() const;
  llvm::json::Value json() const;
  /// File names and their SVG: what encodings cost and lose; the error of each layer and half; and
  /// that of group sizes, where some encoding comes in several.
  std::vector<std::pair<std::string, std::string>> charts() const;

private:
  int64_t bytes(const EvaluatedRow &row) const { return bytesSent(collectives, row.table); }
  int64_t rowsPerRun() const { return batches == 0 ? 0 : rows / batches; }
};

/// Spearman's rank correlation; ties share the mean of their ranks.
double rankCorrelation(const std::vector<double> &a, const std::vector<double> &b);

} // namespace braid
#endif // BRAID_ACCURACY_EVALUATIONREPORT_H
