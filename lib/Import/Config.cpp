//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Config.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace braid;
using llvm::Expected;
using llvm::StringRef;

std::string braid::shapeText(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(shape, os);
  os << "]";
  return text;
}

/// The deepest nesting of brackets outside of strings. LLVM's parser is recursive, so a file of
/// opening brackets would overflow the stack.
static size_t nesting(StringRef text) {
  size_t depth = 0, deepest = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

Expected<Config> Config::read(const std::string &path) {
  constexpr size_t kMaxBytes = 16 << 20, kMaxNesting = 64;
  auto buffer =
      llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return importError("'", path, "': cannot be read: ", buffer.getError().message());
  StringRef text = (*buffer)->getBuffer();
  if (text.size() > kMaxBytes)
    return importError("'", path, "': expects a configuration of at most ", kMaxBytes,
                       " bytes, got ", text.size());
  if (nesting(text) > kMaxNesting)
    return importError("'", path, "': expects JSON nested at most ", kMaxNesting, " deep");
  Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return importError("'", path, "': bad JSON: ", llvm::toString(value.takeError()));
  llvm::json::Object *object = value->getAsObject();
  if (!object)
    return importError("'", path, "': expects a JSON object");
  Config config;
  config.file = path;
  config.root = std::move(*object);
  return config;
}

const llvm::json::Value *Config::find(StringRef field) const {
  const llvm::json::Value *value = root.get(field);
  return value && value->kind() != llvm::json::Value::Null ? value : nullptr;
}

llvm::Error Config::missing(StringRef field, StringRef expected) const {
  return importError("'", file, "': field '", outer, field, "' is missing, expects ", expected);
}

llvm::Error Config::wrong(StringRef field, StringRef expected, const llvm::json::Value &got) const {
  std::string text;
  llvm::raw_string_ostream(text) << got;
  constexpr size_t kShown = 64;
  if (text.size() > kShown)
    text = text.substr(0, kShown) + "...";
  return importError("'", file, "': expects field '", outer, field, "' to be ", expected, ", got ",
                     text);
}

Expected<int64_t> Config::size(StringRef field, int64_t max) const {
  std::string expected = "an integer in [1, " + std::to_string(max) + "]";
  const llvm::json::Value *value = find(field);
  if (!value)
    return missing(field, expected);
  std::optional<int64_t> size = value->getAsInteger();
  if (!size || *size < 1 || *size > max)
    return wrong(field, expected, *value);
  return *size;
}

Expected<int64_t> Config::index(StringRef field, int64_t end, int64_t defaultValue) const {
  const llvm::json::Value *value = find(field);
  if (!value)
    return defaultValue;
  std::optional<int64_t> index = value->getAsInteger();
  if (!index || *index < 0 || *index >= end)
    return wrong(field, "an integer in [0, " + std::to_string(end - 1) + "]", *value);
  return *index;
}

Expected<double> Config::positive(StringRef field) const {
  const llvm::json::Value *value = find(field);
  if (!value)
    return missing(field, "a positive number");
  std::optional<double> number = value->getAsNumber();
  if (!number || !std::isfinite(*number) || *number <= 0)
    return wrong(field, "a positive number", *value);
  return *number;
}

Expected<int64_t> Config::size(StringRef field, int64_t max, int64_t defaultValue) const {
  return find(field) ? size(field, max) : Expected<int64_t>(defaultValue);
}

Expected<double> Config::positive(StringRef field, double defaultValue) const {
  return find(field) ? positive(field) : Expected<double>(defaultValue);
}

Expected<Config> Config::object(StringRef field) const {
  Config inner;
  inner.file = file;
  inner.outer = outer + field.str() + ".";
  const llvm::json::Value *value = find(field);
  if (!value)
    return inner;
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return wrong(field, "an object", *value);
  inner.root = *object;
  return inner;
}

Expected<std::string> Config::string(StringRef field) const {
  const llvm::json::Value *value = find(field);
  if (!value)
    return missing(field, "a string");
  if (std::optional<StringRef> text = value->getAsString())
    return text->str();
  return wrong(field, "a string", *value);
}

Expected<std::string> Config::string(StringRef field, StringRef defaultValue) const {
  return find(field) ? string(field) : Expected<std::string>(defaultValue.str());
}

Expected<bool> Config::flag(StringRef field, bool defaultValue) const {
  const llvm::json::Value *value = find(field);
  if (!value)
    return defaultValue;
  if (std::optional<bool> flag = value->getAsBoolean())
    return *flag;
  return wrong(field, "true or false", *value);
}

Expected<std::vector<std::string>> Config::strings(StringRef field) const {
  std::vector<std::string> result;
  const llvm::json::Value *value = find(field);
  if (!value)
    return result;
  const llvm::json::Array *array = value->getAsArray();
  if (!array)
    return wrong(field, "a list of strings", *value);
  for (const llvm::json::Value &item : *array) {
    std::optional<StringRef> text = item.getAsString();
    if (!text)
      return wrong(field, "a list of strings", *value);
    result.push_back(text->str());
  }
  return result;
}

llvm::Error Config::readSizes(llvm::ArrayRef<SizeField> fields) const {
  for (const SizeField &field : fields)
    if (llvm::Error error = readInto(field.destination, size(field.field, field.max)))
      return error;
  return llvm::Error::success();
}

llvm::Error Config::readFlags(llvm::ArrayRef<FlagField> fields) const {
  for (const FlagField &field : fields)
    if (llvm::Error error = readInto(field.destination, flag(field.field, false)))
      return error;
  return llvm::Error::success();
}

llvm::Error Config::refuse(llvm::ArrayRef<StringRef> fields) const {
  for (StringRef field : fields)
    if (isSet(field))
      return importError("'", file, "': field '", outer, field,
                         "' is not supported, expects it absent or empty");
  return llvm::Error::success();
}

bool Config::isSet(StringRef field) const {
  const llvm::json::Value *value = find(field);
  if (!value)
    return false;
  switch (value->kind()) {
  case llvm::json::Value::Null:
    return false;
  case llvm::json::Value::Boolean:
    return *value->getAsBoolean();
  case llvm::json::Value::Number:
    return *value->getAsNumber() != 0;
  case llvm::json::Value::String:
    return !value->getAsString()->empty();
  case llvm::json::Value::Array:
    return !value->getAsArray()->empty();
  case llvm::json::Value::Object:
    return !value->getAsObject()->empty();
  }
  llvm_unreachable("unknown kind of JSON value");
}
