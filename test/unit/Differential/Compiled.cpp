//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Compiled.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/Core/ProgramInterpreter.h"
#include "braid/Interpreter/Core/ProgramOrder.h"
#include "braid/Interpreter/Core/Tensor.h"
#include "braid/Runtime/KernelLibrary.h"
#include "test/unit/Runtime/Session.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace braid::test {

using interp::NamedTensor;
using runtime::Result;
using runtime::Status;

static bool isState(const runtime::Entry &entry, const std::string &name) {
  return llvm::any_of(entry.states, [&](const auto &state) { return state.name == name; });
}

/// Runs a bundle's program in the program interpreter.
static Result<std::vector<NamedTensor>> runInOrders(const runtime::Bundle &bundle,
                                                    const std::vector<NamedTensor> &inputs,
                                                    runtime::WeightSource &weights,
                                                    int64_t orders) {
  ASSIGN_OR_RETURN(auto kernels, runtime::KernelLibraryHandle::load(bundle));
  const runtime::Entry &entry = bundle.manifest().entries.front();
  ASSIGN_OR_RETURN(auto interpreter,
                   interp::ProgramInterpreter::create(
                       bundle.program(), bundle.manifest(), entry,
                       [&](const std::string &symbol) { return kernels->find(symbol); }));
  if (auto faults = interp::checkOrder(interpreter->program()); !faults.empty())
    return Status::error("the proof finds: ", faults.front());
  RETURN_IF_ERROR(interpreter->loadWeights(weights));
  for (const NamedTensor &input : inputs)
    RETURN_IF_ERROR(isState(entry, input.name)
                        ? interpreter->setState(input.name, input.value.toHost())
                        : interpreter->setInput(input.name, input.value.toHost()));
  ASSIGN_OR_RETURN(interp::ProgramResults found, interpreter->runSchedules(1, orders));
  std::vector<NamedTensor> results;
  for (const auto *values : {&entry.results, &entry.states})
    for (const runtime::EntryValue &value : *values)
      results.push_back({value.name, interp::Tensor::fromHost(found.at(value.name))});
  return results;
}

Result<CompiledRun> compileAndRun(ModuleOp module, CompileOptions options,
                                  const std::vector<NamedTensor> &inputs,
                                  runtime::WeightSource &weights, int64_t orders) {
  OwningOpRef<ModuleOp> copy = module.clone();
  options.isas = {"host"};
  FailureOr<runtime::Bundle> bundle = compileToBundle(*copy, options);
  if (failed(bundle))
    return Status::error("the module does not compile");
  Result<runtime::Bytes> archive = bundle->serialize();
  if (!archive.ok())
    return archive.status();
  Result<runtime::Bundle> read = runtime::Bundle::parse(archive->data(), archive->size(), "case");
  if (!read.ok())
    return read.status();
  CompiledRun run{runtime::meshString(read->manifest().mesh), {}, {}};
  if (orders > 0) {
    ASSIGN_OR_RETURN(run.resultsInOrders, runInOrders(*read, inputs, weights, orders));
  }
  const runtime::Entry entry = read->manifest().entries.front();
  Result<std::unique_ptr<runtime::testing::Session>> session = runtime::testing::Session::create(
      std::make_shared<const runtime::Bundle>(std::move(*read)), {});
  if (!session.ok())
    return session.status();
  Status status = (*session)->loadWeights(weights);
  for (const NamedTensor &input : inputs)
    if (status.ok())
      status = isState(entry, input.name)
                   ? (*session)->model().setState(input.name, input.value.toHost())
                   : (*session)->setInput(input.name, input.value.toHost());
  if (status.ok())
    status = (*session)->run();
  if (!status.ok())
    return status;
  for (const runtime::EntryValue &result : entry.results) {
    ASSIGN_OR_RETURN(runtime::HostTensor output, (*session)->output(result.name));
    run.results.push_back({result.name, interp::Tensor::fromHost(output)});
  }
  for (const runtime::EntryValue &state : entry.states) {
    ASSIGN_OR_RETURN(runtime::HostTensor after, (*session)->model().state(state.name));
    run.results.push_back({state.name, interp::Tensor::fromHost(after)});
  }
  return run;
}

double distance(const std::vector<NamedTensor> &results, const std::vector<NamedTensor> &expected) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (results.size() != expected.size())
    return kInfinity;
  double largest = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    double one = results[i].name == expected[i].name
                     ? interp::relativeL2(results[i].value, expected[i].value)
                     : kInfinity;
    // NaN must not pass as a small distance.
    largest = one <= largest ? largest : std::isnan(one) ? kInfinity : one;
  }
  return largest;
}

} // namespace braid::test
