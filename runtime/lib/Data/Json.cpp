//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Json.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace braid::runtime {

namespace {

constexpr const char *kInitNames[] = {"normal", "ones", "zeros"}; // by Init
constexpr const char *kQuantizedNames[] = {"values", "scales"};   // by QuantizedPart

/// Thrown through the parser to stop it, and caught in parseJson.
struct Refused {
  std::string message;
};

/// nlohmann's messages begin with "[json.exception.parse_error.101] ".
std::string withoutTag(const std::string &message) {
  size_t end = message.find("] ");
  return end == std::string::npos ? message : message.substr(end + 2);
}

} // namespace

Result<Json> parseJson(const char *begin, const char *end) {
  constexpr int kMaxDepth = 32;
  std::vector<std::set<std::string>> names;
  auto check = [&](int depth, Json::parse_event_t event, Json &value) {
    if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start) {
      if (depth >= kMaxDepth)
        throw Refused{"nested more than " + std::to_string(kMaxDepth) + " levels deep"};
      if (event == Json::parse_event_t::object_start)
        names.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      names.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const std::string &key = value.get_ref<const std::string &>();
      if (!names.back().insert(key).second)
        throw Refused{"duplicate name " + inQuotes(key)};
    }
    return true;
  };
  try {
    return Json::parse(begin, end, check);
  } catch (const Refused &refused) {
    return Status::error(refused.message);
  } catch (const Json::exception &error) {
    return Status::error(withoutTag(error.what()));
  }
}

bool asInteger(const Json &value, int64_t &result) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX)))
    return false;
  result = value.get<int64_t>();
  return true;
}

FieldReader::FieldReader(const Json &object, std::string where)
    : object(object), where(std::move(where)) {
  if (!object.is_object())
    fail("expects an object, got " + std::string(object.type_name()));
}

std::string FieldReader::path(const char *field) const {
  return where.empty() ? field : where + "." + field;
}

void FieldReader::fail(const std::string &message) {
  if (status.ok())
    status = Status::error(where.empty() ? "" : inQuotes(where) + ": ", message);
}

const Json *FieldReader::find(const char *field) {
  known.emplace_back(field);
  if (!status.ok())
    return nullptr;
  auto found = object.find(field);
  if (found != object.end())
    return &*found;
  status = Status::error("field ", inQuotes(path(field)), " is missing");
  return nullptr;
}

bool FieldReader::expect(bool ok, const std::string &path, const char *what, const Json &got) {
  if (!ok)
    status = Status::error("field ", inQuotes(path), " expects ", what, ", got ",
                           got.is_number() ? got.dump() : got.type_name());
  return ok;
}

void FieldReader::read(const Json &json, const std::string &path, std::string &value) {
  if (expect(json.is_string(), path, "a string", json))
    value = json.get<std::string>();
}

void FieldReader::read(const Json &json, const std::string &path, int64_t &value) {
  expect(asInteger(json, value), path, "an integer", json);
}

void FieldReader::read(const Json &json, const std::string &path, double &value) {
  if (expect(json.is_number() && std::isfinite(json.get<double>()), path, "a number", json))
    value = json.get<double>();
}

void FieldReader::read(const Json &json, const std::string &path, bool &value) {
  if (expect(json.is_boolean(), path, "true or false", json))
    value = json.get<bool>();
}

void FieldReader::read(const Json &json, const std::string &path, DType &value) {
  std::string text;
  read(json, path, text);
  Result<DType> type = parseDType(text);
  if (type.ok())
    value = *type;
  else
    fail(type.status().message());
}

void FieldReader::read(const Json &json, const std::string &path, Init &value) {
  std::string text;
  read(json, path, text);
  auto found = std::find(std::begin(kInitNames), std::end(kInitNames), text);
  if (found == std::end(kInitNames))
    fail("unknown 'init' " + inQuotes(text) + ", expects normal, ones or zeros");
  else
    value = static_cast<Init>(found - std::begin(kInitNames));
}

void FieldReader::read(const Json &json, const std::string &path, QuantizedPart &value) {
  std::string text;
  read(json, path, text);
  if (text == kQuantizedNames[0])
    value = QuantizedPart::values;
  else if (text == kQuantizedNames[1])
    value = QuantizedPart::scales;
  else
    fail("unknown 'quantized' " + inQuotes(text) + ", expects values or scales");
}

/// The name of an axis, or a sub-axis as an object.
template <typename Io> static void fields(Io &io, AxisRef &axis) {
  io.field("axis", axis.name);
  io.field("pre", axis.pre);
  io.field("size", axis.size);
}

void FieldReader::read(const Json &json, const std::string &path, AxisRef &axis) {
  if (json.is_string())
    axis = {json.get<std::string>(), 1, 0};
  else
    read<AxisRef>(json, path, axis);
}

void FieldReader::read(const Json &json, const std::string &path,
                       std::map<std::string, std::string> &value) {
  if (expect(json.is_object(), path, "an object", json))
    for (const auto &[name, text] : json.items())
      read(text, path + "." + name, value[name]);
}

FieldWriter::OrderedJson FieldWriter::toJson(Init value) {
  return kInitNames[static_cast<size_t>(value)];
}

FieldWriter::OrderedJson FieldWriter::toJson(QuantizedPart value) {
  return kQuantizedNames[static_cast<size_t>(value)];
}

FieldWriter::OrderedJson FieldWriter::toJson(AxisRef &axis) {
  if (axis.pre == 1 && axis.size == 0)
    return axis.name;
  return toJson<AxisRef>(axis);
}

Status FieldReader::finish() {
  if (!status.ok())
    return status;
  for (const auto &[field, value] : object.items())
    if (std::find(known.begin(), known.end(), field) == known.end()) {
      fail("unknown field " + inQuotes(field));
      break;
    }
  return status;
}

} // namespace braid::runtime
