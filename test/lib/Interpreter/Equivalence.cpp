//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Equivalence.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace braid::test {

using interp::Evaluation;
using interp::NamedTensor;
using interp::Tensor;
using runtime::Result;
using runtime::Status;

Result<std::vector<NamedTensor>> randomInputs(ModuleOp module, uint64_t seed) {
  Result<func::FuncOp> entry = interp::findEntry(module, "");
  if (!entry.ok())
    return entry.status();
  std::vector<NamedTensor> inputs;
  for (unsigned i = 0; i < entry->getNumArguments(); ++i) {
    std::string name = interp::argumentName(*entry, i);
    auto type = dyn_cast<RankedTensorType>(interp::globalArgumentType(*entry, i));
    if (!type || !type.hasStaticShape())
      return Status::error("argument '" + name + "' expects a statically shaped tensor");
    Result<runtime::DType> dtype = interp::dtypeOf(type);
    if (!dtype.ok())
      return dtype.status();
    std::vector<uint32_t> words(name.begin(), name.end());
    words.push_back(static_cast<uint32_t>(seed));
    words.push_back(static_cast<uint32_t>(seed >> 32));
    std::seed_seq sequence(words.begin(), words.end());
    std::mt19937_64 random(sequence);
    interp::Shape shape(type.getShape().begin(), type.getShape().end());
    auto count = static_cast<size_t>(interp::numElements(shape));
    if (interp::isFloat(*dtype)) {
      std::vector<double> values(count);
      for (double &value : values)
        value = interp::roundTo(*dtype, std::ldexp(static_cast<double>(random() >> 11), -52) - 1);
      inputs.push_back({name, Tensor::ofFloats(*dtype, std::move(shape), std::move(values))});
      continue;
    }
    int64_t low = 0, high = 2;
    if (auto range = entry->getArgAttrOfType<DenseI64ArrayAttr>(i, kRangeAttrName)) {
      if (range.size() != 2 || range[0] >= range[1])
        return Status::error("argument '" + name + "' expects " + kRangeAttrName.str() +
                             " of two ascending numbers");
      low = range[0];
      high = range[1];
    }
    std::vector<int64_t> values(count);
    for (int64_t &value : values)
      value = low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low));
    inputs.push_back({name, Tensor::ofInts(*dtype, std::move(shape), std::move(values))});
  }
  return inputs;
}

Result<Equivalence> compareForms(ModuleOp before, ModuleOp after,
                                 const std::vector<NamedTensor> &inputs,
                                 runtime::WeightSource &weights) {
  interp::EvaluateOptions options;
  options.inputs = inputs;
  options.weights = &weights;
  Result<Evaluation> one = interp::evaluate(before, options);
  if (!one.ok())
    return Status::error("the first form: " + one.status().message(), one.status().code());
  Result<Evaluation> other = interp::evaluate(after, options);
  if (!other.ok())
    return Status::error("the second form: " + other.status().message(), other.status().code());

  if (one->results.empty() || one->results.size() != other->results.size())
    return Status::error(
        "expects the forms to have the same number of results, and one at least, got " +
        std::to_string(one->results.size()) + " and " + std::to_string(other->results.size()));
  Equivalence equivalence;
  for (size_t i = 0; i < one->results.size(); ++i) {
    const NamedTensor &a = one->results[i], &b = other->results[i];
    if (a.name != b.name || a.value.typeString() != b.value.typeString())
      return Status::error("expects result '" + a.name + "' of type " + a.value.typeString() +
                           ", got '" + b.name + "' of type " + b.value.typeString());
    if (!std::isfinite(interp::relativeL2(a.value, a.value)))
      return Status::error("expects finite values in result '" + a.name + "' of the first form");
    double distance = interp::relativeL2(b.value, a.value);
    if (equivalence.worst.empty() || !(distance <= equivalence.relativeL2)) {
      equivalence.relativeL2 = distance;
      equivalence.worst = a.name;
    }
  }
  equivalence.before = std::move(*one);
  equivalence.after = std::move(*other);
  return equivalence;
}

} // namespace braid::test
