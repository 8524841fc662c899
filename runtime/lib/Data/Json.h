//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Strict reading of JSON that may be hostile, and writing. Nothing here throws; messages name the
// place in the document.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_LIB_DATA_JSON_H
#define BRAID_RUNTIME_LIB_DATA_JSON_H

#include "braid/Base/Support.h"
#include "braid/Program/Manifest.h"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace braid::runtime {

using Json = nlohmann::json; // a map: nlohmann::ordered_json looks names up by walking a list

/// Parses a document. A name that occurs twice in one object and nesting beyond 32 levels are
/// errors.
Result<Json> parseJson(const char *begin, const char *end);

// A struct T has one function for both directions, which names its fields in the order in which
// they are written:
//   template <typename Io> static void fields(Io &io, T &value) { io.field("name", value.name); }

/// Reads the fields of an object strictly: each field is of the expected type, and there are no
/// others. Keeps the first error, so that callers need to check once, at the end. `where` is the
/// path of the object, such as "entries[0].parameters[3]".
class FieldReader {
public:
  FieldReader(const Json &object, std::string where);

  template <typename T> void field(const char *name, T &value) {
    if (const Json *json = find(name))
      read(*json, path(name), value);
  }
  /// Leaves `value` as it is if there is no such field.
  template <typename T> void optional(const char *name, T &value) {
    if (object.is_object() && object.contains(name))
      field(name, value);
  }
  template <typename T> void optional(const char *name, std::optional<T> &value) {
    if (object.is_object() && object.contains(name))
      field(name, value.emplace());
  }
  void fail(const std::string &message);
  /// The first error. An unread field is an error, too.
  Status finish();

private:
  std::string path(const char *field) const;
  const Json *find(const char *field);
  /// Fails unless `ok`.
  bool expect(bool ok, const std::string &path, const char *what, const Json &got);

  void read(const Json &json, const std::string &path, std::string &value);
  void read(const Json &json, const std::string &path, int64_t &value);
  void read(const Json &json, const std::string &path, double &value); ///< finite
  void read(const Json &json, const std::string &path, bool &value);
  void read(const Json &json, const std::string &path, DType &value);
  void read(const Json &json, const std::string &path, Init &value);
  void read(const Json &json, const std::string &path, QuantizedPart &value);
  void read(const Json &json, const std::string &path, AxisRef &value);
  void read(const Json &json, const std::string &path, std::map<std::string, std::string> &value);
  template <typename T>
  void read(const Json &json, const std::string &path, std::vector<T> &values) {
    if (expect(json.is_array(), path, "an array", json))
      for (size_t i = 0; i < json.size() && status.ok(); ++i)
        read(json[i], path + "[" + std::to_string(i) + "]", values.emplace_back());
  }
  template <typename T> void read(const Json &json, const std::string &path, T &value) {
    if (!expect(json.is_object(), path, "an object", json))
      return;
    FieldReader reader(json, path);
    fields(reader, value);
    status = reader.finish();
  }

  const Json &object;
  std::string where;
  std::vector<std::string> known;
  Status status;
};

class FieldWriter {
public:
  using OrderedJson = nlohmann::ordered_json;

  template <typename T> void field(const char *name, T &value) { json[name] = toJson(value); }
  /// Writes nothing for an empty value.
  template <typename T> void optional(const char *name, T &value) {
    if (!value.empty())
      field(name, value);
  }
  template <typename T> void optional(const char *name, std::optional<T> &value) {
    if (value)
      field(name, *value);
  }

  OrderedJson json = OrderedJson::object();

private:
  static OrderedJson toJson(std::string &value) { return value; }
  static OrderedJson toJson(int64_t value) { return value; }
  static OrderedJson toJson(double value) { return value; }
  static OrderedJson toJson(bool value) { return value; }
  static OrderedJson toJson(DType value) { return name(value); }
  static OrderedJson toJson(Init value);
  static OrderedJson toJson(QuantizedPart value);
  static OrderedJson toJson(AxisRef &value);
  static OrderedJson toJson(std::map<std::string, std::string> &value) { return value; }
  template <typename T> static OrderedJson toJson(std::vector<T> &values) {
    OrderedJson list = OrderedJson::array();
    for (T &value : values)
      list.push_back(toJson(value));
    return list;
  }
  template <typename T> static OrderedJson toJson(T &value) {
    FieldWriter writer;
    fields(writer, value);
    return std::move(writer.json);
  }
};

/// Reads an integer within 64 bits; false if `value` is anything else.
bool asInteger(const Json &value, int64_t &result);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_LIB_DATA_JSON_H
