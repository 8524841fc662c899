//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Errors as values: code that the compiler (built without exceptions) and the C ABI share never
// throws.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_STATUS_H
#define BRAID_BASE_STATUS_H

#include <string>
#include <utility>
#include <variant>

namespace braid::runtime {

enum class Code {
  ok = 0,
  invalid = 1,     ///< the input or the request is wrong
  checkFailed = 2, ///< a comparison came out too large
  rankFailed = 3   ///< a rank died, stalled or disagreed with the others
};

/// An outcome with one message that names the file, operation or rank and what was expected.
class [[nodiscard]] Status {
public:
  Status() = default;
  static Status error(std::string message, Code code = Code::invalid) {
    Status s;
    s.statusCode = code;
    s.text = std::move(message);
    return s;
  }
  /// This error with `where` and a colon before its message.
  Status within(const std::string &where) const {
    return ok() ? *this : error(where + ": " + text, statusCode);
  }
  bool ok() const { return statusCode == Code::ok; }
  Code code() const { return statusCode; }
  const std::string &message() const { return text; }

private:
  Code statusCode = Code::ok;
  std::string text;
};

/// A value or the Status that says why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : state(std::move(value)) {}
  Result(Status status) : state(std::move(status)) {}
  bool ok() const { return std::holds_alternative<T>(state); }
  T &operator*() { return std::get<T>(state); }
  const T &operator*() const { return std::get<T>(state); }
  T *operator->() { return &std::get<T>(state); }
  const T *operator->() const { return &std::get<T>(state); }
  /// This value, or its error as Status::within gives it.
  Result within(const std::string &where) && {
    return ok() ? std::move(*this) : Result(status().within(where));
  }
  Status status() const { return ok() ? Status() : std::get<Status>(state); }

private:
  std::variant<T, Status> state;
};

} // namespace braid::runtime
#endif // BRAID_BASE_STATUS_H
