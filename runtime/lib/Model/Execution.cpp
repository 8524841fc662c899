//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An entry of a model: its inputs, outputs and runs.
//
//===----------------------------------------------------------------------===//
#include "ReportJson.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace braid::runtime {

const Entry &Execution::entry() const { return *state.entry; }

ValueMemory &Execution::State::value(int64_t rank, size_t argument) const {
  return model->values[rank][arguments[argument]];
}

std::string Execution::State::describeArgument(size_t argument) const {
  auto text = [](const char *kind, const auto &value) {
    return std::string(kind) + " '" + value.name + "'";
  };
  if (argument >= resultIndex(0))
    return text("output", entry->results[argument - resultIndex(0)]);
  if (argument >= operandIndex(0))
    return text("input", entry->operands[argument - operandIndex(0)]);
  if (argument >= stateIndex(0))
    return text("state", entry->states[argument - stateIndex(0)]);
  return text("parameter", entry->parameters[argument]);
}

static std::string listOf(const std::vector<EntryValue> &values) {
  std::string text;
  for (const EntryValue &value : values)
    text += (text.empty() ? "" : ", ") +
            ("'" + value.name + "' " + typeString(value.dtype, value.globalShape));
  return text.empty() ? "none" : text;
}

static Result<size_t> findValue(const char *what, const std::vector<EntryValue> &values,
                                const std::string &name) {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].name == name)
      return i;
  return Status::error(std::string("no ") + what + " '" + name + "', the entry has " +
                       listOf(values));
}

Status Execution::setInput(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                           const void *data) {
  ASSIGN_OR_RETURN(size_t index, findValue("input", state.entry->operands, name));
  const EntryValue &value = state.entry->operands[index];
  RETURN_IF_ERROR(expectValue("input", value, dtype, shape));
  RETURN_IF_ERROR(state.model->write(value, state.arguments[state.operandIndex(index)], data));
  state.inputSet[index] = true;
  return {};
}

Status Execution::setInput(const std::string &name, const HostTensor &value) {
  return setInput(name, value.dtype, value.shape, value.data.data());
}

Status Execution::scatterInput(const std::string &name, DType dtype,
                               const std::vector<int64_t> &shape, const void *data) {
  ASSIGN_OR_RETURN(size_t index, findValue("input", state.entry->operands, name));
  const EntryValue &value = state.entry->operands[index];
  RETURN_IF_ERROR(state.model->scatter(value, state.arguments[state.operandIndex(index)],
                                       expectScattered("input", value, dtype, shape, data), data));
  state.inputSet[index] = true;
  return {};
}

Status Execution::bindInput(int64_t rank, const std::string &name, void *data, size_t bytes) {
  ASSIGN_OR_RETURN(size_t index, findValue("input", state.entry->operands, name));
  const size_t number = state.arguments[state.operandIndex(index)];
  RETURN_IF_ERROR(
      state.model->bind("input", state.entry->operands[index], rank, number, data, bytes));
  const auto &values = state.model->values;
  if (std::all_of(values.begin(), values.end(), [&](const auto &ofRank) {
        return ofRank[number].bound != nullptr || !ofRank[number].isHere;
      }))
    state.inputSet[index] = true;
  return {};
}

Status Execution::bindOutput(int64_t rank, const std::string &name, void *data, size_t bytes) {
  ASSIGN_OR_RETURN(size_t index, findValue("output", state.entry->results, name));
  return state.model->bind("output", state.entry->results[index], rank,
                           state.arguments[state.resultIndex(index)], data, bytes);
}

Status Execution::State::checkBindings() const {
  struct Bound {
    const std::byte *begin, *end;
    bool written;
    int64_t rank;
    size_t argument;
  };
  std::vector<Bound> bound;
  for (int64_t r : model->local())
    for (size_t a = 0; a < arguments.size(); ++a)
      if (const ValueMemory &own = value(r, a); own.bound && own.bytes != 0)
        bound.push_back({own.bound, own.bound + own.bytes, isWritten(a), r, a});
  std::sort(bound.begin(), bound.end(), [](const Bound &a, const Bound &b) {
    return std::tie(a.begin, a.rank, a.argument) < std::tie(b.begin, b.rank, b.argument);
  });
  auto describe = [&](const Bound &b) {
    return describeArgument(b.argument) + " of rank " + std::to_string(b.rank);
  };
  // Of the memory that begins before: what reaches furthest, of all and of what is written.
  const Bound *furthest = nullptr, *furthestWritten = nullptr;
  for (const Bound &b : bound) {
    const Bound *other = b.written ? furthest : furthestWritten;
    if (other && other->end > b.begin)
      return Status::error(describe(b.written ? b : *other) +
                           " expects memory that does not overlap that of " +
                           describe(b.written ? *other : b));
    for (const Bound **far : {&furthest, b.written ? &furthestWritten : &furthest})
      if (!*far || (*far)->end < b.end)
        *far = &b;
  }
  return {};
}

void Execution::State::copyBound(bool read) const {
  for (int64_t r : programs.ranks())
    for (size_t a = stateIndex(0); a < arguments.size(); ++a)
      if (const ValueMemory &own = value(r, a);
          own.isCopied() && (read ? a < resultIndex(0) : isWritten(a)))
        std::memcpy(read ? own.owned : own.bound, read ? own.bound : own.owned, own.bytes);
}

Status Execution::State::checkReady() const {
  std::string text;
  if (!model->weightsLoaded && !entry->parameters.empty()) {
    constexpr size_t kShown = 6;
    const auto &parameters = entry->parameters;
    text = "weights are missing: " + std::to_string(parameters.size()) + " parameters (";
    for (size_t i = 0; i < std::min(kShown, parameters.size()); ++i)
      text += (i ? ", '" : "'") + parameters[i].name + "' " +
              typeString(parameters[i].dtype, parameters[i].globalShape);
    text += parameters.size() > kShown ? ", ...)" : ")";
  }
  std::vector<EntryValue> missing;
  for (size_t i = 0; i < inputSet.size(); ++i)
    if (!inputSet[i])
      missing.push_back(entry->operands[i]);
  if (!missing.empty())
    text += (text.empty() ? "" : "; ") + ("inputs are missing: " + listOf(missing));
  return text.empty() ? Status() : Status::error(text);
}

/// Gives inputs without a value their defaults. Memory of the caller stays as it is.
Status Execution::setDefaults() {
  for (size_t i = 0; i < state.inputSet.size(); ++i) {
    const EntryValue &operand = state.entry->operands[i];
    const size_t number = state.arguments[state.operandIndex(i)];
    const auto &values = state.model->values;
    if (state.inputSet[i] || !operand.defaultValue ||
        std::any_of(values.begin(), values.end(),
                    [&](const auto &ofRank) { return ofRank[number].bound != nullptr; }))
      continue;
    RETURN_IF_ERROR(setInput(operand.name, defaultInput(operand)));
  }
  return {};
}

Status Execution::run() {
  RETURN_IF_ERROR(setDefaults());
  RETURN_IF_ERROR(state.checkReady());
  Model::State &model = *state.model;
  if (!state.movedArguments.empty()) {
    RETURN_IF_ERROR(state.checkBindings());
    RETURN_IF_ERROR(state.moveArguments());
  }
  Workers &workers = *model.workers;
  state.hasRun = false;
  state.enter();
  if (model.usesProcesses() && !model.processes->started())
    RETURN_IF_ERROR(model.startProcesses(nullptr, {}));
  state.copyBound(/*read=*/true);
  Status status = model.usesProcesses() ? model.processes->run(state.number)
                  : model.device        ? model.device->run(workers, state.number)
                                        : workers.run();
  if (model.entries.size() > 1)
    status = status.within("entry '" + state.entry->name + "'");
  RETURN_IF_ERROR(status);
  state.copyBound(/*read=*/false);
  state.hasRun = true;
  model.lastRun = &state;
  state.runs.add(workers.runEndNs - workers.runBeginNs, workers.ranks);
  if (state.prediction)
    state.prediction->add(workers);
  return {};
}

Result<HostTensor> Execution::output(const std::string &name) const {
  ASSIGN_OR_RETURN(size_t index, findValue("output", state.entry->results, name));
  const EntryValue &value = state.entry->results[index];
  HostTensor tensor;
  if (state.model->hasGlobalValues())
    tensor = HostTensor::zeros(value.dtype, value.globalShape);
  RETURN_IF_ERROR(readOutput(name, tensor.data.data(), tensor.data.size()));
  return tensor;
}

Status Execution::readOutput(const std::string &name, void *data, size_t bytes) const {
  ASSIGN_OR_RETURN(size_t index, findValue("output", state.entry->results, name));
  const EntryValue &value = state.entry->results[index];
  if (state.model->hasGlobalValues())
    RETURN_IF_ERROR(expectMemory("output", value, data, bytes));
  if (!state.hasRun)
    return Status::error("output '" + name + "' expects a run that has succeeded");
  return state.model->read("output", value, state.arguments[state.resultIndex(index)], data);
}

void Execution::resetStatistics() {
  state.runs.clear();
  for (EncodingErrors *errors : state.encodingErrors())
    errors->squares = errors->errorSquares = 0;
  if (state.prediction)
    state.prediction->clear();
}
std::string Execution::report() const { return textOf(state.report()); }

} // namespace braid::runtime
