//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A model whose encodings are chosen between runs, and its evaluation under many of them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ACCURACY_EVALUATION_H
#define BRAID_ACCURACY_EVALUATION_H

#include "braid/Accuracy/Data.h"
#include "braid/Accuracy/EncodedCollectives.h"
#include "braid/Accuracy/Metrics.h"
#include "braid/Base/Weights.h"
#include "braid/Pipelines/Compile.h"
#include "braid/Runtime/Model.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <memory>

namespace braid {

/// What one half of a collective loses: relative L2 error of what its encoding gives back.
struct HalfError {
  std::string identity;
  bool gather = false;
  double squares = 0, errorSquares = 0;
  double relativeL2() const;
};

/// A compiled program with a table of encodings, its ranks as threads of this process.
class TableModel {
public:
  /// Compiles a copy of `module` as `options` say, with a table in place of `quantize`, and loads
  /// it with these weights.
  static runtime::Result<std::unique_ptr<TableModel>>
  create(mlir::ModuleOp module, const CompileOptions &options, runtime::WeightSource *weights,
         const std::string &entry = {}, int64_t threads = 1, const PhaseObserver &observer = {});

  /// The same with matmuls of floats, which results are compared with; null if `options` quantize
  /// none.
  static runtime::Result<std::unique_ptr<TableModel>>
  createReference(mlir::ModuleOp module, const CompileOptions &options,
                  runtime::WeightSource *weights, const std::string &entry = {},
                  int64_t threads = 1);

  const runtime::Entry &entry() const { return *known; }
  const std::vector<EncodedCollective> &collectives() const { return found; }
  /// Of the options' machine, on which the collectives are placed; null without one.
  CollectiveTimes *times() const { return machineTimes.get(); }
  /// Without encodings.
  runtime::EncodingTable table() const { return runtime::EncodingTable::of(known->operands); }

  runtime::Status use(const runtime::EncodingTable &table);
  runtime::Result<runtime::HostTensor> run(const EvaluationBatch &batch, const std::string &result);
  /// Of the runs since the last call.
  runtime::Result<std::vector<HalfError>> takeErrors();

private:
  std::unique_ptr<runtime::Model> model;
  runtime::Execution *execution = nullptr;
  const runtime::Entry *known = nullptr;
  std::vector<EncodedCollective> found;
  std::unique_ptr<CollectiveTimes> machineTimes;
};

/// What is compared of a result.
enum class ResultForm {
  logits,    ///< a row is a token's logits
  sentences, ///< a row is the mean of a sequence's hidden states over its tokens
  rows       ///< a row is the last dimension
};

struct EvaluationOptions {
  std::string result;             ///< empty: the first
  std::optional<ResultForm> form; ///< none: as the result's name and shape say
};

/// A model under one table of encodings.
struct Evaluated {
  RowErrors all;
  std::vector<RowErrors> batches;
  std::vector<HalfError> errors;    ///< if asked for
  std::vector<double> similarities; ///< of pairs of sentences: cosines of their rows
};

class Evaluation {
public:
  /// Results without encodings, which others are compared with, are those of `reference`, or, where
  /// that is null, of `model`.
  static runtime::Result<Evaluation> create(TableModel &model, const EvaluationData &data,
                                            const EvaluationOptions &options,
                                            TableModel *reference = nullptr);
  bool hasReference() const { return reference != nullptr; }

  ResultForm form() const { return resultForm; }
  bool hasLabels() const;
  /// Whether the metric is one of the result.
  runtime::Status supports(Metric metric) const;
  /// An error if a result without encodings is not finite: then the data or the weights are not.
  /// Runs the first batches of the data with each of the tables, and without encodings those of
  /// which no earlier call has kept that result, in up to 4 GiB. `first` is their number;
  /// `progress` gets the runs done and their number. `isEnough` is asked after each batch, and gets
  /// what there is of each table; the rest is left out once it says so.
  runtime::Result<std::vector<Evaluated>>
  run(llvm::ArrayRef<runtime::EncodingTable> tables, size_t first, bool withErrors,
      llvm::function_ref<void(size_t, size_t)> progress = nullptr,
      llvm::function_ref<bool(llvm::ArrayRef<Evaluated>)> isEnough = nullptr);
  /// Cosines of pairs in the last run without encodings.
  const std::vector<double> &plainSimilarities() const { return similarities; }
  size_t numBatches() const { return data->batches.size(); }

private:
  Evaluation(TableModel &model, const EvaluationData &data, TableModel *reference)
      : model(&model), reference(reference), data(&data) {}
  /// The rows of a result that count, their width, and the labels of those of logits.
  struct Rows {
    std::vector<float> values;
    int64_t columns = 0;
    std::vector<int64_t> labels;
  };
  /// What a batch gives without encodings.
  struct Plain {
    ExpectedRows rows;
    std::vector<double> similarities;
  };
  runtime::Result<Rows> run(TableModel &of, const EvaluationBatch &batch,
                            const runtime::EncodingTable &table);
  runtime::Result<Plain> runPlain(size_t batch);
  Rows rowsOf(const runtime::HostTensor &result, const EvaluationBatch &batch) const;
  std::vector<int64_t> nextTokens(const EvaluationBatch &batch, int64_t sequences,
                                  int64_t tokens) const;

  TableModel *model, *reference;
  const EvaluationData *data;
  std::string result;
  ResultForm resultForm = ResultForm::rows;
  std::vector<double> similarities;
  std::vector<Plain> plain; ///< kept, of the first batches
};

} // namespace braid
#endif // BRAID_ACCURACY_EVALUATION_H
