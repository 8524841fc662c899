//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `braid evaluate`: a model on data under many encodings.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "Session.h"
#include "braid/Accuracy/EvaluationReport.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Files.h"
#include "braid/Runtime/Safetensors.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace braid::tool {

namespace {

using runtime::Encoding;
using runtime::EncodingTable;
using runtime::Result;
using runtime::Status;

class Evaluator {
public:
  explicit Evaluator(const EvaluateArgs &args) : args(args) {}

  Status run() {
    RETURN_IF_ERROR(checkArguments());
    CompilerSession session;
    if (!session.load(args.plugins))
      return Status::error("cannot do without the plugins");
    OwningOpRef<ModuleOp> module = session.readModule(args.model);
    if (!module)
      return Status::error("cannot evaluate '", args.model, "'");
    std::unique_ptr<runtime::WeightSource> weights;
    if (args.randomWeights) {
      weights = runtime::WeightSource::random(*args.randomWeights);
    } else if (!args.weights.empty()) {
      ASSIGN_OR_RETURN(weights, runtime::openSafetensors(args.weights));
    }
    CompileOptions compile;
    compile.mesh = args.mesh;
    compile.strategy = args.strategy;
    compile.passes = args.passes;
    compile.quantizeMatmuls = args.quantizeMatmuls;
    progress.step("compiling");
    ASSIGN_OR_RETURN(model,
                     TableModel::create(*module, compile, weights.get(), args.entry, args.threads));
    ASSIGN_OR_RETURN(data, EvaluationData::read(args.data, model->entry(), args.batches));
    EvaluationOptions options;
    options.result = args.result;
    if (!args.form.empty())
      options.form = args.form == "logits"      ? ResultForm::logits
                     : args.form == "sentences" ? ResultForm::sentences
                                                : ResultForm::rows;
    ASSIGN_OR_RETURN(reference, TableModel::createReference(*module, compile, weights.get(),
                                                            args.entry, args.threads));
    ASSIGN_OR_RETURN(Evaluation evaluation,
                     Evaluation::create(*model, data, options, reference.get()));
    RETURN_IF_ERROR(fillTables());
    RETURN_IF_ERROR(evaluate(evaluation));
    RETURN_IF_ERROR(measureSensitivity(evaluation));
    return write();
  }

private:
  Status checkArguments() const {
    if (args.weights.empty() == !args.randomWeights)
      return Status::error("expects --weights FILE|DIR or --random-weights SEED");
    if (!args.output.empty())
      if (std::error_code error = llvm::sys::fs::create_directories(args.output))
        return Status::error("cannot create directory '", args.output, "': ", error.message());
    return {};
  }

  /// An encoding for all collectives, or a list that says which is for which.
  Status fillTables() {
    std::vector<std::string> names = args.encodings;
    if (names.empty())
      names = {"int8:128",
               "int4:128",
               "int8:128+zero-point",
               "int6:128+zero-point",
               "int5:128+zero-point",
               "int4:128+zero-point",
               "int4:128+zero-point/int8:128+zero-point",
               "int6:128+zero-point+spikes",
               "int5:128+zero-point+spikes",
               "int4:128+zero-point+spikes",
               "int6:128+zero-point+hadamard64"};
    // What matmuls of 8-bit integers lose by themselves.
    if (reference)
      report.encodings.push_back({"none", model->table(), {}});
    for (const std::string &name : names) {
      EvaluatedRow row;
      row.name = name;
      row.table = model->table();
      RETURN_IF_ERROR(row.table.set(name.find('=') == std::string::npos ? "*=" + name : name)
                          .within("--encodings"));
      report.encodings.push_back(std::move(row));
    }
    return {};
  }

  Status evaluate(Evaluation &evaluation) {
    std::vector<EncodingTable> tables;
    for (const EvaluatedRow &row : report.encodings)
      tables.push_back(row.table);
    ASSIGN_OR_RETURN(std::vector<Evaluated> evaluated,
                     evaluation.run(tables, evaluation.numBatches(), /*withErrors=*/true,
                                    [&](size_t done, size_t all) {
                                      progress.step(llvm::Twine("run ") + llvm::Twine(done) +
                                                    " of " + llvm::Twine(all));
                                    }));
    for (auto [row, one] : llvm::zip_equal(report.encodings, evaluated))
      row.evaluated = std::move(one);
    const RowErrors &first = report.encodings.front().evaluated.all;
    report.model = llvm::sys::path::stem(args.model).str();
    report.mesh = args.mesh.empty() ? "one rank" : args.mesh;
    report.data = llvm::sys::path::filename(args.data).str();
    report.form = evaluation.form();
    report.hasLabels = evaluation.hasLabels();
    report.batches = static_cast<int64_t>(evaluation.numBatches());
    report.sequences = data.sequences;
    report.leftOver = data.leftOver;
    report.rows = first.rows;
    report.plainPerplexity = first.expectedPerplexity();
    report.scores = data.scores;
    report.plainSimilarities = evaluation.plainSimilarities();
    report.collectives = model->collectives();
    report.plainBytes = bytesSent(model->collectives(), model->table());
    return {};
  }

  /// Each half of each collective by itself.
  Status measureSensitivity(Evaluation &evaluation) {
    if (args.sensitivity.empty())
      return {};
    std::vector<EncodingTable> tables;
    for (const std::string &name : args.sensitivity) {
      Result<Encoding> encoding = Encoding::parse(name);
      RETURN_IF_ERROR(encoding.status().within("--sensitivity"));
      for (size_t i = 0; i < model->collectives().size(); ++i)
        for (bool gather : {false, true}) {
          const EncodedCollective &collective = model->collectives()[i];
          if (gather ? !collective.hasGather() : !collective.hasReduce())
            continue;
          EncodingTable table = model->table();
          (gather ? table.entries[i].gather : table.entries[i].reduce) = *encoding;
          tables.push_back(std::move(table));
          report.sensitivity.push_back({name, collective.identity, gather, {}});
        }
    }
    report.sensitivityBatches =
        std::min<int64_t>(args.sensitivityBatches, static_cast<int64_t>(evaluation.numBatches()));
    ASSIGN_OR_RETURN(const std::vector<Evaluated> evaluated,
                     evaluation.run(tables, static_cast<size_t>(report.sensitivityBatches),
                                    /*withErrors=*/false, [&](size_t done, size_t all) {
                                      progress.step(llvm::Twine("encoded alone: run ") +
                                                    llvm::Twine(done) + " of " + llvm::Twine(all));
                                    }));
    for (auto [row, one] : llvm::zip_equal(report.sensitivity, evaluated))
      row.errors = one.all;
    return {};
  }

  Status write() {
    llvm::outs() << report.text();
    llvm::outs().flush();
    if (args.output.empty())
      return {};
    auto file = [&](llvm::StringRef name, const std::string &text) {
      return runtime::writeFile(args.output + "/" + name.str(), {{text.data(), text.size()}});
    };
    RETURN_IF_ERROR(file("evaluation.txt", report.text()));
    RETURN_IF_ERROR(file("evaluation.json", llvm::formatv("{0:2}\n", report.json()).str()));
    for (const auto &[name, svg] : report.charts())
      RETURN_IF_ERROR(file(name, svg));
    return {};
  }

  const EvaluateArgs &args;
  std::unique_ptr<TableModel> model, reference; ///< null where no matmul is quantized
  EvaluationData data;
  EvaluationReport report;
  Progress progress;
};

} // namespace

int runEvaluate(const EvaluateArgs &args) {
  const Status status = Evaluator(args).run();
  if (status.ok())
    return kDone;
  fail(status.message());
  return status.code() == runtime::Code::rankFailed ? kRankFailed : kInvalid;
}

} // namespace braid::tool
