//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "QuantizeBudget.h"

#include "Session.h"
#include "braid/Accuracy/Budget.h"
#include "braid/Base/StatusMacros.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace braid::tool {

runtime::Status chooseUnderBudget(ModuleOp module, const BudgetArgs &args,
                                  runtime::WeightSource *weights, const std::string &entry,
                                  CompileOptions &options) {
  using runtime::Status;
  BudgetOptions budget;
  ASSIGN_OR_RETURN(budget.bound, MetricBound::parse(args.bound).within("--quantize-budget"));
  if (args.calibration.empty())
    return Status::error("--quantize-budget expects --calibration FILE|DIR");
  if (!options.quantize.empty())
    return Status::error("--quantize-budget chooses encodings in place of --quantize");
  if (!args.candidates.empty()) {
    SmallVector<StringRef> names;
    StringRef(args.candidates).split(names, ',');
    for (StringRef name : names) {
      ASSIGN_OR_RETURN(runtime::Encoding encoding,
                       runtime::Encoding::parse(name.str()).within("--quantize-candidates"));
      budget.candidates.push_back(encoding);
    }
  }
  if (FailureOr<Level> level = detectLevel(module); failed(level) || *level > Level::Comm)
    return Status::error("--quantize-budget encodes collectives at level comm, got a module past "
                         "it");
  Progress progress;
  progress.step("compiling with a table of encodings");
  ASSIGN_OR_RETURN(std::unique_ptr<TableModel> model,
                   TableModel::create(module, options, weights, entry));
  ASSIGN_OR_RETURN(const EvaluationData data,
                   EvaluationData::read(args.calibration, model->entry()).within("--calibration"));
  ASSIGN_OR_RETURN(const std::unique_ptr<TableModel> reference,
                   TableModel::createReference(module, options, weights, entry));
  EvaluationOptions compared;
  ASSIGN_OR_RETURN(Evaluation evaluation,
                   Evaluation::create(*model, data, compared, reference.get()));
  // The promise is on the result as it is, which checks compare: hidden states, not their means.
  if (evaluation.form() == ResultForm::sentences) {
    compared.form = ResultForm::rows;
    ASSIGN_OR_RETURN(evaluation, Evaluation::create(*model, data, compared, reference.get()));
  }
  ASSIGN_OR_RETURN(BudgetChoice choice,
                   chooseEncodings(*model, evaluation, budget, [&](const std::string &what) {
                     progress.step(what);
                   }).within("--quantize-budget"));
  options.quantize = choice.record.encodings;
  options.errorBudget = choice.record;
  options.checkTolerance = choice.checkTolerance;
  for (const auto &[identity, what] : choice.remarks)
    remark::passed(NameLoc::get(StringAttr::get(module.getContext(), identity)),
                   remark::RemarkOpts::name("QuantizeBudget").category("communication"))
        << StringRef(what);
  llvm::errs() << llvm::formatv(
      "budget {0}: {1} over {2} batches, {3} in 95% of them; {4} of {5} bytes, {6:F3} of f32\n",
      budget.bound.str(), budget.bound.text(choice.record.measured), choice.record.batches,
      budget.bound.text(choice.record.percentile95), choice.bytes, choice.plainBytes,
      static_cast<double>(choice.bytes) / static_cast<double>(choice.plainBytes));
  if (choice.seconds)
    llvm::errs() << llvm::formatv("predicted for these collectives: {0:F3} of {1:F3} ms\n",
                                  *choice.seconds * 1e3, *choice.plainSeconds * 1e3);
  return {};
}

} // namespace braid::tool
