//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Strict reading of JSON that may be hostile: nothing here throws, and every message says where in
// the document.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_LIB_DATA_JSON_H
#define BRAID_RUNTIME_LIB_DATA_JSON_H

#include "braid/Base/Support.h"
#include "braid/Program/Manifest.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace braid::runtime {

using Json = nlohmann::json; // a map: nlohmann::ordered_json looks names up by walking a list

/// Parses a whole document. A name that stands twice in one object and nesting beyond 32 levels are
/// errors too.
Result<Json> parseJson(const char *begin, const char *end);

/// Reads the fields of one object. The first error is kept and later calls do nothing, so that a
/// reader is written straight down and asks once at the end. `where` is the path of the object, as
/// in "entries[0].parameters[3]".
class FieldReader {
public:
  FieldReader(const Json &object, std::string where);

  bool has(const char *field) const { return object.is_object() && object.contains(field); }
  std::string string(const char *field);
  int64_t integer(const char *field);
  std::vector<int64_t> integers(const char *field);
  std::vector<std::string> strings(const char *field);
  /// The name of a type, as name(DType) writes it.
  DType dtype(const char *field);
  /// The field as an array or object; an empty one after an error.
  const Json &array(const char *field);
  const Json &child(const char *field);
  /// The field as an array of objects, each read by `read` with a reader of its own.
  template <typename T, typename Read> std::vector<T> objects(const char *field, Read read) {
    std::vector<T> result;
    for (const Json &json : array(field)) {
      FieldReader reader(json, path(field, result.size()));
      result.push_back(read(reader));
      if (Status part = reader.finish(); !part.ok()) {
        adopt(part);
        break;
      }
    }
    return result;
  }

  std::string path(const char *field) const;
  std::string path(const char *field, size_t index) const {
    return path(field) + "[" + std::to_string(index) + "]";
  }
  void fail(const std::string &message);
  /// Takes over the outcome of reading a part, whose message names its own place.
  void adopt(const Status &part) {
    if (status.ok())
      status = part;
  }
  /// The first error; otherwise a field that nothing asked for is one.
  Status finish();

private:
  const Json *find(const char *field);

  const Json &object;
  std::string where;
  std::vector<std::string> known;
  Status status;
};

/// An element of an array as an integer of 64 bits or text, or nothing when it is something else.
bool asInteger(const Json &value, int64_t &result);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_LIB_DATA_JSON_H
