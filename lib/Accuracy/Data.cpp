//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Accuracy/Data.h"

#include "braid/Base/EncodingTable.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"
#include "braid/Runtime/Npy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>

namespace braid {

using runtime::DType;
using runtime::EntryValue;
using runtime::HostTensor;
using runtime::Result;
using runtime::Status;

namespace {

int64_t integerAt(const HostTensor &tensor, int64_t i) {
  if (tensor.dtype == DType::i64)
    return tensor.as<int64_t>()[i];
  if (tensor.dtype == DType::i32)
    return tensor.as<int32_t>()[i];
  return tensor.as<int8_t>()[i];
}

/// An operand's full value of another integer type, or itself.
Result<HostTensor> converted(HostTensor tensor, const EntryValue &operand) {
  if (tensor.dtype == operand.dtype)
    return tensor;
  if (!runtime::isInteger(tensor.dtype) || !runtime::isInteger(operand.dtype))
    return Status::error("expects ", runtime::name(operand.dtype), ", got ",
                         runtime::name(tensor.dtype));
  HostTensor result = HostTensor::zeros(operand.dtype, tensor.shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    if (operand.dtype == DType::i64)
      result.as<int64_t>()[i] = integerAt(tensor, i);
    else
      result.as<int32_t>()[i] = static_cast<int32_t>(integerAt(tensor, i));
  return result;
}

Status checkIds(const HostTensor &tensor, const EntryValue &operand) {
  if (!runtime::isInteger(operand.dtype) || !operand.below)
    return {};
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    if (const int64_t id = integerAt(tensor, i); id < 0 || id >= *operand.below)
      return Status::error("expects ids of 0 to ", *operand.below - 1, ", got ", id);
  return {};
}

bool isTable(const EntryValue &operand) {
  return operand.name.rfind(runtime::EncodingTable::kPrefix, 0) == 0;
}

/// Rows [begin, begin + count) of the first dimension.
HostTensor rowsOf(const HostTensor &tensor, int64_t begin, int64_t count) {
  HostTensor part;
  part.dtype = tensor.dtype;
  part.shape = tensor.shape;
  const auto rowBytes = static_cast<int64_t>(tensor.data.size()) / tensor.shape[0];
  part.shape[0] = count;
  part.data.assign(tensor.data.begin() + begin * rowBytes,
                   tensor.data.begin() + (begin + count) * rowBytes);
  return part;
}

/// The only operand of ids that a run needs.
Result<const EntryValue *> idsOperand(const runtime::Entry &entry) {
  const EntryValue *found = nullptr;
  for (const EntryValue &operand : entry.operands) {
    if (isTable(operand) || operand.defaultValue)
      continue;
    if (found || !runtime::isInteger(operand.dtype) || operand.globalShape.size() != 2)
      return Status::error("a file of ids serves models with one input of [batch, tokens]; this "
                           "one needs a directory with a file NAME.npy for each of its inputs");
    found = &operand;
  }
  if (!found)
    return Status::error("the entry '", entry.name, "' has no input without a default");
  return found;
}

/// By operand, [sequences, ...].
using Values = std::map<std::string, HostTensor>;

Result<Values> readFile(const std::string &path, const runtime::Entry &entry) {
  ASSIGN_OR_RETURN(const EntryValue *operand, idsOperand(entry));
  ASSIGN_OR_RETURN(HostTensor ids, runtime::readNpy(path));
  const int64_t tokens = operand->globalShape[1];
  if (ids.shape.size() == 1) {
    const int64_t sequences = ids.shape[0] / tokens;
    ids.data.resize(static_cast<size_t>(sequences * tokens * byteSize(ids.dtype)));
    ids.shape = {sequences, tokens};
  }
  if (!runtime::isInteger(ids.dtype) || ids.shape.size() != 2 || ids.shape[1] != tokens)
    return Status::error("'", path, "' expects ids, a list or [sequences, ", tokens, "], got ",
                         runtime::name(ids.dtype), " ", runtime::shapeString(ids.shape));
  ASSIGN_OR_RETURN(ids, converted(std::move(ids), *operand));
  RETURN_IF_ERROR(checkIds(ids, *operand).within("'" + path + "'"));
  Values values;
  values.emplace(operand->name, std::move(ids));
  return values;
}

Result<Values> readDirectory(const std::string &path, const runtime::Entry &entry) {
  Values values;
  int64_t sequences = 0;
  std::string first;
  for (const EntryValue &operand : entry.operands) {
    const std::string file = path + "/" + operand.name + ".npy";
    if (isTable(operand) || (operand.defaultValue && !llvm::sys::fs::exists(file)))
      continue;
    ASSIGN_OR_RETURN(HostTensor value, runtime::readNpy(file));
    std::vector<int64_t> expected = operand.globalShape;
    if (!expected.empty() && value.shape.size() == expected.size())
      expected[0] = value.shape[0];
    if (operand.globalShape.empty() || value.shape != expected)
      return Status::error(
          "'", file, "' expects [sequences, ...] with ",
          runtime::shapeString({operand.globalShape.begin() + (operand.globalShape.empty() ? 0 : 1),
                                operand.globalShape.end()}),
          " for each, got ", runtime::shapeString(value.shape));
    if (!first.empty() && value.shape[0] != sequences)
      return Status::error("'", file, "' expects ", sequences, " sequences, as '", first,
                           "' has, got ", value.shape[0]);
    sequences = value.shape[0];
    first = file;
    Result<HostTensor> ready = converted(std::move(value), operand);
    RETURN_IF_ERROR(ready.status().within("'" + file + "'"));
    RETURN_IF_ERROR(checkIds(*ready, operand).within("'" + file + "'"));
    values.emplace(operand.name, std::move(*ready));
  }
  if (values.empty())
    return Status::error("'", path, "' has no file of an input of the entry '", entry.name, "'");
  return values;
}

/// Nothing in the directory is left out because its name is mistyped.
Status checkNames(const std::string &path, const runtime::Entry &entry) {
  std::error_code error;
  std::vector<std::string> unknown;
  for (llvm::sys::fs::directory_iterator it(path, error), end; it != end && !error;
       it.increment(error)) {
    const llvm::StringRef name = llvm::sys::path::filename(it->path());
    if (!name.ends_with(".npy") || name == "labels.npy" || name == "scores.npy" ||
        llvm::any_of(entry.operands, [&](const EntryValue &operand) {
          return !isTable(operand) && name.drop_back(4) == operand.name;
        }))
      continue;
    unknown.push_back(name.str());
  }
  if (error)
    return Status::error("cannot read directory '", path, "': ", error.message());
  if (unknown.empty())
    return {};
  std::string names;
  for (const EntryValue &operand : entry.operands)
    if (!isTable(operand))
      names += operand.name + ".npy, ";
  return Status::error("'", path, "/", *std::min_element(unknown.begin(), unknown.end()),
                       "' expects the name of an input, or labels or scores: ", names,
                       "labels.npy and scores.npy");
}

} // namespace

Result<EvaluationData> EvaluationData::read(const std::string &path, const runtime::Entry &entry,
                                            std::optional<int64_t> most) {
  if (!llvm::sys::fs::exists(path))
    return Status::error("'", path, "' does not exist");
  const bool isDirectory = llvm::sys::fs::is_directory(path);
  if (isDirectory)
    RETURN_IF_ERROR(checkNames(path, entry));
  Result<Values> read = isDirectory ? readDirectory(path, entry) : readFile(path, entry);
  RETURN_IF_ERROR(read.status());
  const Values &values = *read;
  int64_t batch = 0;
  for (const EntryValue &operand : entry.operands)
    if (values.count(operand.name))
      batch = operand.globalShape[0];
  const int64_t sequences = values.begin()->second.shape[0];
  int64_t count = sequences / batch;
  if (count == 0)
    return Status::error("'", path, "' expects at least a batch of ", batch, " sequences, got ",
                         sequences);
  if (most)
    count = std::min(count, *most);
  EvaluationData data;
  data.sequences = count * batch;
  data.leftOver = most && count == *most ? 0 : sequences - data.sequences;
  HostTensor labels;
  if (const std::string file = path + "/labels.npy"; isDirectory && llvm::sys::fs::exists(file)) {
    ASSIGN_OR_RETURN(labels, runtime::readNpy(file));
    if (!runtime::isInteger(labels.dtype) || labels.shape.size() != 2 ||
        labels.shape[0] != sequences)
      return Status::error("'", file, "' expects ids of [", sequences, ", tokens], got ",
                           runtime::name(labels.dtype), " ", runtime::shapeString(labels.shape));
  }
  if (const std::string file = path + "/scores.npy"; isDirectory && llvm::sys::fs::exists(file)) {
    ASSIGN_OR_RETURN(const HostTensor scores, runtime::readNpy(file));
    if (scores.dtype != DType::f32 && scores.dtype != DType::f64)
      return Status::error("'", file, "' expects f32 or f64, got ", runtime::name(scores.dtype));
    if (scores.shape != std::vector<int64_t>{sequences / 2})
      return Status::error("'", file, "' expects a score for each of ", sequences / 2,
                           " pairs of sequences, got ", runtime::shapeString(scores.shape));
    for (int64_t i = 0; i < data.sequences / 2; ++i)
      data.scores.push_back(scores.dtype == DType::f32 ? static_cast<double>(scores.as<float>()[i])
                                                       : scores.as<double>()[i]);
  }
  for (int64_t i = 0; i < count; ++i) {
    EvaluationBatch &one = data.batches.emplace_back();
    for (const auto &[name, value] : values)
      one.inputs.emplace(name, rowsOf(value, i * batch, batch));
    if (labels.shape.empty())
      continue;
    const int64_t perBatch = batch * labels.shape[1];
    for (int64_t t = 0; t < perBatch; ++t)
      one.labels.push_back(std::max<int64_t>(integerAt(labels, i * perBatch + t), -1));
  }
  return data;
}

} // namespace braid
