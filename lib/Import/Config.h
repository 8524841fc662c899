//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A config.json with typed access; every error names the file and the field.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_IMPORT_CONFIG_H
#define BRAID_LIB_IMPORT_CONFIG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid {

/// An error with a message for the user.
template <typename... Values> llvm::Error importError(Values &&...values) {
  std::string message;
  llvm::raw_string_ostream os(message);
  (os << ... << std::forward<Values>(values));
  return llvm::createStringError(llvm::inconvertibleErrorCode(), llvm::Twine(message));
}

/// Stores the value, or returns the error.
template <typename T, typename Read>
llvm::Error readInto(T &destination, llvm::Expected<Read> read) {
  if (!read)
    return read.takeError();
  destination = std::move(*read);
  return llvm::Error::success();
}

/// "[2, 3]"
std::string shapeText(llvm::ArrayRef<int64_t> shape);

class Config {
public:
  /// Largest value that a size may have.
  static constexpr int64_t kMaxSize = INT32_MAX;

  static llvm::Expected<Config> read(const std::string &path);

  /// An integer in [1, max]. A missing field is an error.
  llvm::Expected<int64_t> size(llvm::StringRef field, int64_t max = kMaxSize) const;
  /// `defaultValue` when it is missing or null.
  llvm::Expected<int64_t> size(llvm::StringRef field, int64_t max, int64_t defaultValue) const;
  /// An integer in [0, end); `defaultValue` when it is missing or null.
  llvm::Expected<int64_t> index(llvm::StringRef field, int64_t end, int64_t defaultValue) const;
  /// A positive finite number. A missing field is an error.
  llvm::Expected<double> positive(llvm::StringRef field) const;
  /// `defaultValue` when it is missing or null.
  llvm::Expected<double> positive(llvm::StringRef field, double defaultValue) const;
  /// It is an error when it is missing.
  llvm::Expected<std::string> string(llvm::StringRef field) const;
  /// `defaultValue` when it is missing or null.
  llvm::Expected<std::string> string(llvm::StringRef field, llvm::StringRef defaultValue) const;
  llvm::Expected<bool> flag(llvm::StringRef field, bool defaultValue) const;
  /// Empty when it is missing or null.
  llvm::Expected<std::vector<std::string>> strings(llvm::StringRef field) const;
  /// The object in the field, as a configuration whose errors name the field too; without fields
  /// when it is missing or null.
  llvm::Expected<Config> object(llvm::StringRef field) const;
  /// A required size and its destination.
  struct SizeField {
    llvm::StringRef field;
    int64_t &destination;
    int64_t max = kMaxSize;
  };
  llvm::Error readSizes(llvm::ArrayRef<SizeField> fields) const;
  /// A flag, `false` when missing or null, and its destination.
  struct FlagField {
    llvm::StringRef field;
    bool &destination;
  };
  llvm::Error readFlags(llvm::ArrayRef<FlagField> fields) const;
  /// An error when one of the fields is set, since the importer does not support it.
  llvm::Error refuse(llvm::ArrayRef<llvm::StringRef> fields) const;
  /// Whether the field exists and is not null.
  bool has(llvm::StringRef field) const { return find(field) != nullptr; }
  /// Whether the field has a value other than null, false, 0, or an empty list, object or string.
  bool isSet(llvm::StringRef field) const;

  const std::string &path() const { return file; }

private:
  /// Null when it is missing or null.
  const llvm::json::Value *find(llvm::StringRef field) const;
  llvm::Error missing(llvm::StringRef field, llvm::StringRef expected) const;
  llvm::Error wrong(llvm::StringRef field, llvm::StringRef expected,
                    const llvm::json::Value &got) const;

  std::string file;
  std::string outer; ///< "rope_scaling." in the object of that field
  llvm::json::Object root;
};

} // namespace braid
#endif // BRAID_LIB_IMPORT_CONFIG_H
