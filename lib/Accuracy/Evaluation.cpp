//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Accuracy/Evaluation.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Transforms/TablePasses.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/JSON.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace braid {

using runtime::EncodingTable;
using runtime::Result;
using runtime::Status;

double HalfError::relativeL2() const {
  return errorSquares == 0 ? 0 : std::sqrt(errorSquares / squares);
}

Result<std::unique_ptr<TableModel>> TableModel::create(ModuleOp module, const CompileOptions &given,
                                                       runtime::WeightSource *weights,
                                                       const std::string &entry, int64_t threads,
                                                       const PhaseObserver &observer) {
  auto made = std::make_unique<TableModel>();
  CompileOptions options = given;
  options.quantize = kEncodingTable.str();
  options.stripModule = true;
  if (options.isas.empty())
    options.isas = {"host"};
  // Remarks on the program that measures say nothing of the one that was asked for.
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark);
  });
  // The collectives are those before they are in a table.
  OwningOpRef<ModuleOp> plain(cast<ModuleOp>(module->clone()));
  PipelineOptions pipeline;
  pipeline.mesh = options.mesh;
  pipeline.strategy = options.strategy;
  pipeline.passes = options.passes;
  if (failed(runPhases(*plain, Level::Comm, pipeline)))
    return Status::error("cannot partition the model");
  OwningOpRef<ModuleOp> tabulated(cast<ModuleOp>(module->clone()));
  FailureOr<runtime::Bundle> bundle = compileToBundle(*tabulated, options, observer);
  if (failed(bundle))
    return Status::error("cannot compile the model with a table of encodings");

  runtime::WorldOptions worldOptions;
  worldOptions.threadsPerRank = threads;
  ASSIGN_OR_RETURN(std::shared_ptr<const runtime::World> world,
                   runtime::World::create(worldOptions));
  auto shared = std::make_shared<const runtime::Bundle>(std::move(*bundle));
  ASSIGN_OR_RETURN(made->model, runtime::Model::load(std::move(world), shared));
  ASSIGN_OR_RETURN(made->execution, made->model->execution(entry));
  made->known = &made->execution->entry();
  if (!made->known->parameters.empty()) {
    if (!weights)
      return Status::error("the model has ", made->known->parameters.size(),
                           " parameters: expects --weights FILE|DIR");
    RETURN_IF_ERROR(made->model->loadWeights(*weights));
  }
  if (!options.machine.empty()) {
    ASSIGN_OR_RETURN(cost::Machine machine, cost::openMachine(options.machine));
    made->machineTimes = std::make_unique<CollectiveTimes>(
        RunPlace{std::make_shared<const cost::Machine>(std::move(machine)), options.transport,
                 options.ranksOfHosts, options.threads});
  }
  ASSIGN_OR_RETURN(made->found, encodableCollectives(*plain, made->known->name, made->times()));
  const std::vector<EncodingTable::Entry> entries = made->table().entries;
  if (!llvm::equal(entries, made->found, [](const auto &entry, const auto &collective) {
        return entry.identity == collective.identity;
      }))
    return Status::error("the table of encodings has other collectives than the program");
  return made;
}

Result<std::unique_ptr<TableModel>> TableModel::createReference(ModuleOp module,
                                                                const CompileOptions &given,
                                                                runtime::WeightSource *weights,
                                                                const std::string &entry,
                                                                int64_t threads) {
  if (given.quantizeMatmuls.empty())
    return std::unique_ptr<TableModel>();
  CompileOptions options = given;
  options.quantizeMatmuls.clear();
  return create(module, options, weights, entry, threads);
}

Status TableModel::use(const EncodingTable &table) {
  for (const EncodingTable::Entry &one : table.entries)
    RETURN_IF_ERROR(execution->setInput(one.operand(), one.codes()));
  return {};
}

Result<runtime::HostTensor> TableModel::run(const EvaluationBatch &batch,
                                            const std::string &result) {
  for (const auto &[name, value] : batch.inputs)
    RETURN_IF_ERROR(execution->setInput(name, value));
  RETURN_IF_ERROR(model->resetStates());
  RETURN_IF_ERROR(execution->run());
  return execution->output(result);
}

Result<std::vector<HalfError>> TableModel::takeErrors() {
  llvm::Expected<llvm::json::Value> report = llvm::json::parse(execution->report());
  if (!report)
    return Status::error(llvm::toString(report.takeError()));
  execution->resetStatistics();
  std::vector<HalfError> errors;
  const llvm::json::Object *object = report->getAsObject();
  const llvm::json::Array *list = object ? object->getArray("encoding_errors") : nullptr;
  if (!list)
    return Status::error("the report has no encoding_errors");
  // Numbers that JSON has not are infinities.
  auto number = [](std::optional<double> value) {
    return value.value_or(std::numeric_limits<double>::infinity());
  };
  for (const llvm::json::Value &value : *list)
    if (const llvm::json::Object *one = value.getAsObject())
      errors.push_back({one->getString("identity").value_or("").str(),
                        one->getString("half") == "gather", number(one->getNumber("squares")),
                        number(one->getNumber("error_squares"))});
  return errors;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

namespace {

int64_t integerAt(const runtime::HostTensor &tensor, int64_t i) {
  return tensor.dtype == runtime::DType::i64 ? tensor.as<int64_t>()[i] : tensor.as<int32_t>()[i];
}

/// The mask of a batch's tokens, or null.
const runtime::HostTensor *maskOf(const EvaluationBatch &batch, int64_t sequences, int64_t tokens) {
  auto mask = batch.inputs.find("attention_mask");
  if (mask == batch.inputs.end() || mask->second.shape != std::vector<int64_t>{sequences, tokens})
    return nullptr;
  return &mask->second;
}

/// Cosines of rows 2i and 2i + 1.
void addSimilarities(const std::vector<float> &rows, int64_t columns, std::vector<double> &out) {
  const auto count = static_cast<int64_t>(rows.size()) / columns;
  for (int64_t r = 0; r + 1 < count; r += 2) {
    const float *x = rows.data() + r * columns, *y = x + columns;
    double xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < columns; ++i) {
      xx += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      yy += static_cast<double>(y[i]) * static_cast<double>(y[i]);
      xy += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    }
    out.push_back(xy / std::sqrt(xx * yy));
  }
}

} // namespace

Result<Evaluation> Evaluation::create(TableModel &model, const EvaluationData &data,
                                      const EvaluationOptions &options, TableModel *reference) {
  Evaluation evaluation(model, data, reference);
  const runtime::EntryValue *found = nullptr;
  for (const runtime::EntryValue &result : model.entry().results)
    if (!found && (options.result.empty() || result.name == options.result))
      found = &result;
  if (!found)
    return Status::error("the entry has no result '", options.result, "'");
  if (found->dtype != runtime::DType::f32 || found->globalShape.empty())
    return Status::error("an evaluation expects a result of f32, got ", runtime::name(found->dtype),
                         " ", runtime::shapeString(found->globalShape));
  evaluation.result = found->name;
  const bool isSequence = found->globalShape.size() == 3;
  evaluation.resultForm = options.form.value_or(found->name == "logits" ? ResultForm::logits
                                                : found->name == "last_hidden_state" && isSequence
                                                    ? ResultForm::sentences
                                                    : ResultForm::rows);
  if (evaluation.resultForm == ResultForm::sentences && !isSequence)
    return Status::error("sentences expect a result of [batch, tokens, hidden], got ",
                         runtime::shapeString(found->globalShape));
  const int64_t columns = found->globalShape.back();
  for (const EvaluationBatch &batch : data.batches)
    for (int64_t label : batch.labels)
      if (evaluation.resultForm == ResultForm::logits && label >= columns)
        return Status::error("labels.npy: expects ids below ", columns, ", got ", label);
  if (const auto &shape = found->globalShape;
      !data.batches.front().labels.empty() && isSequence &&
      static_cast<int64_t>(data.batches.front().labels.size()) != shape[0] * shape[1])
    return Status::error("labels.npy: expects a label for each of ", shape[0] * shape[1],
                         " tokens of a batch, got ", data.batches.front().labels.size());
  return evaluation;
}

bool Evaluation::hasLabels() const {
  if (resultForm != ResultForm::logits)
    return false;
  for (const runtime::EntryValue &value : model->entry().results)
    if (value.name == result)
      return !data->batches.front().labels.empty() ||
             (value.globalShape.size() == 3 && value.globalShape[1] > 1 &&
              data->batches.front().inputs.count("input_ids"));
  return false;
}

Status Evaluation::supports(Metric metric) const {
  if (metric == Metric::kl && resultForm != ResultForm::logits)
    return Status::error("kl expects a result of logits, got '", result, "'");
  if (metric == Metric::perplexity && !hasLabels())
    return Status::error("perplexity expects a result of logits for all tokens, and ids or "
                         "labels; '",
                         result, "' has none");
  return {};
}

/// The label of a token is the next one of its sequence.
std::vector<int64_t> Evaluation::nextTokens(const EvaluationBatch &batch, int64_t sequences,
                                            int64_t tokens) const {
  if (!batch.labels.empty())
    return batch.labels;
  auto ids = batch.inputs.find("input_ids");
  if (ids == batch.inputs.end() || ids->second.shape != std::vector<int64_t>{sequences, tokens} ||
      tokens < 2)
    return {};
  const runtime::HostTensor *mask = maskOf(batch, sequences, tokens);
  std::vector<int64_t> labels;
  for (int64_t t = 0; t < sequences * tokens; ++t) {
    const bool isLast = t % tokens == tokens - 1;
    const bool isValid = !isLast && (!mask || integerAt(*mask, t + 1) != 0);
    labels.push_back(isValid ? integerAt(ids->second, t + 1) : -1);
  }
  return labels;
}

Evaluation::Rows Evaluation::rowsOf(const runtime::HostTensor &value,
                                    const EvaluationBatch &batch) const {
  Rows rows;
  rows.columns = value.shape.back();
  const float *from = value.as<float>();
  const int64_t count = value.numElements() / rows.columns;
  if (value.shape.size() != 3) {
    rows.values.assign(from, from + count * rows.columns);
    return rows;
  }
  const int64_t sequences = value.shape[0], tokens = value.shape[1];
  const runtime::HostTensor *mask = maskOf(batch, sequences, tokens);
  auto isValid = [&](int64_t t) { return !mask || integerAt(*mask, t) != 0; };
  if (resultForm == ResultForm::sentences) {
    for (int64_t s = 0; s < sequences; ++s) {
      std::vector<double> sum(static_cast<size_t>(rows.columns));
      int64_t numTokens = 0;
      for (int64_t t = s * tokens; t < (s + 1) * tokens; ++t) {
        if (!isValid(t))
          continue;
        ++numTokens;
        for (int64_t i = 0; i < rows.columns; ++i)
          sum[static_cast<size_t>(i)] += static_cast<double>(from[t * rows.columns + i]);
      }
      for (double element : sum)
        rows.values.push_back(
            static_cast<float>(element / std::max<double>(1, static_cast<double>(numTokens))));
    }
    return rows;
  }
  const std::vector<int64_t> labels = resultForm == ResultForm::logits
                                          ? nextTokens(batch, sequences, tokens)
                                          : std::vector<int64_t>();
  for (int64_t t = 0; t < count; ++t) {
    if (!isValid(t))
      continue;
    rows.values.insert(rows.values.end(), from + t * rows.columns, from + (t + 1) * rows.columns);
    if (!labels.empty())
      rows.labels.push_back(labels[static_cast<size_t>(t)]);
  }
  return rows;
}

Result<Evaluation::Rows> Evaluation::run(TableModel &of, const EvaluationBatch &batch,
                                         const EncodingTable &table) {
  RETURN_IF_ERROR(of.use(table));
  ASSIGN_OR_RETURN(const runtime::HostTensor value, of.run(batch, result));
  return rowsOf(value, batch);
}

Result<Evaluation::Plain> Evaluation::runPlain(size_t batch) {
  TableModel &of = reference ? *reference : *model;
  ASSIGN_OR_RETURN(Rows rows, run(of, data->batches[batch], of.table()));
  // Nothing can be compared with such numbers.
  auto damaged = llvm::find_if(rows.values, [](float value) { return !std::isfinite(value); });
  if (damaged != rows.values.end())
    return Status::error("batch ", batch, " of the data: result '", result,
                         "' without encodings expects finite numbers, got ", *damaged, " in row ",
                         (damaged - rows.values.begin()) / rows.columns,
                         "; weights, or inputs of this batch, are not finite or too large");
  std::vector<double> similarities;
  if (resultForm == ResultForm::sentences)
    addSimilarities(rows.values, rows.columns, similarities);
  return Plain{ExpectedRows(std::move(rows.values), rows.columns, resultForm == ResultForm::logits,
                            std::move(rows.labels)),
               std::move(similarities)};
}

Result<std::vector<Evaluated>>
Evaluation::run(ArrayRef<EncodingTable> tables, size_t first, bool withErrors,
                llvm::function_ref<void(size_t, size_t)> progress,
                llvm::function_ref<bool(ArrayRef<Evaluated>)> isEnough) {
  constexpr size_t kMostBytes = size_t(4) << 30;
  size_t keptBytes = 0;
  for (const Plain &kept : plain)
    keptBytes += kept.rows.bytes();
  const size_t count = std::min(first, data->batches.size());
  const size_t runs = count * tables.size() + count - std::min(count, plain.size());
  std::vector<Evaluated> all(tables.size());
  similarities.clear();
  size_t done = 0;
  auto step = [&] {
    if (progress)
      progress(++done, runs);
  };
  for (size_t b = 0; b < count; ++b) {
    const EvaluationBatch &batch = data->batches[b];
    std::optional<Plain> own;
    if (b >= plain.size()) {
      ASSIGN_OR_RETURN(own, runPlain(b));
      if (const size_t bytes = own->rows.bytes();
          b == plain.size() && keptBytes + bytes <= kMostBytes) {
        keptBytes += bytes;
        plain.push_back(std::move(*own));
        own.reset();
      }
      step();
    }
    const Plain &expected = own ? *own : plain[b];
    llvm::append_range(similarities, expected.similarities);
    if (withErrors) // only those of the tables
      RETURN_IF_ERROR(model->takeErrors().status());
    for (auto [table, evaluated] : llvm::zip_equal(tables, all)) {
      ASSIGN_OR_RETURN(const Rows got, run(*model, batch, table));
      evaluated.batches.push_back(expected.rows.compare(got.values));
      evaluated.all.add(evaluated.batches.back());
      if (resultForm == ResultForm::sentences)
        addSimilarities(got.values, got.columns, evaluated.similarities);
      if (withErrors) {
        ASSIGN_OR_RETURN(const std::vector<HalfError> errors, model->takeErrors());
        if (evaluated.errors.empty())
          evaluated.errors = errors;
        else
          for (auto [sum, error] : llvm::zip_equal(evaluated.errors, errors)) {
            sum.squares += error.squares;
            sum.errorSquares += error.errorSquares;
          }
      }
      step();
    }
    if (isEnough && isEnough(all))
      break;
  }
  return all;
}

} // namespace braid
