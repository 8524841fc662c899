//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Json.h"

#include <algorithm>
#include <set>

namespace braid::runtime {

namespace {

/// Thrown through the parser, which has no other way to be stopped, and caught right outside of it.
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

std::string FieldReader::string(const char *field) {
  const Json *value = find(field);
  if (!value)
    return {};
  if (value->is_string())
    return value->get<std::string>();
  status =
      Status::error("field ", inQuotes(path(field)), " expects a string, got ", value->type_name());
  return {};
}

int64_t FieldReader::integer(const char *field) {
  const Json *value = find(field);
  int64_t result = 0;
  if (value && !asInteger(*value, result))
    status = Status::error("field ", inQuotes(path(field)), " expects an integer, got ",
                           value->is_number() ? value->dump() : value->type_name());
  return result;
}

const Json &FieldReader::array(const char *field) {
  static const Json kEmpty = Json::array();
  const Json *value = find(field);
  if (value && value->is_array())
    return *value;
  if (value)
    status = Status::error("field ", inQuotes(path(field)), " expects an array, got ",
                           value->type_name());
  return kEmpty;
}

const Json &FieldReader::child(const char *field) {
  static const Json kEmpty = Json::object();
  const Json *value = find(field);
  if (value && value->is_object())
    return *value;
  if (value)
    status = Status::error("field ", inQuotes(path(field)), " expects an object, got ",
                           value->type_name());
  return kEmpty;
}

std::vector<int64_t> FieldReader::integers(const char *field) {
  std::vector<int64_t> result;
  for (const Json &value : array(field)) {
    if (!asInteger(value, result.emplace_back()) && status.ok())
      status = Status::error("field ", inQuotes(path(field, result.size() - 1)),
                             " expects an integer, got ",
                             value.is_number() ? value.dump() : value.type_name());
  }
  return result;
}

DType FieldReader::dtype(const char *field) {
  Result<DType> type = parseDType(string(field));
  if (type.ok())
    return *type;
  fail(type.status().message());
  return DType::f32;
}

std::vector<std::string> FieldReader::strings(const char *field) {
  std::vector<std::string> result;
  for (const Json &value : array(field)) {
    if (value.is_string())
      result.push_back(value.get<std::string>());
    else if (status.ok())
      status = Status::error("field ", inQuotes(path(field, result.size())),
                             " expects a string, got ", value.type_name());
  }
  return result;
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
