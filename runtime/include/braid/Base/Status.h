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
#include <type_traits>
#include <utility>
#include <variant>

namespace braid::runtime {

enum class Code {
  ok = 0,
  invalid = 1,     ///< wrong input or request
  checkFailed = 2, ///< a difference above the tolerance
  rankFailed = 3   ///< a rank died, stalled or disagreed with the others
};

/// An outcome with one message that names the file, operation or rank and what was expected.
class [[nodiscard]] Status {
public:
  Status() = default;
  /// The message is the text of all parts; a Code among them replaces Code::invalid.
  template <typename... Parts> static Status error(const Parts &...parts) {
    Status status;
    status.statusCode = Code::invalid;
    (status.append(parts), ...);
    return status;
  }
  /// This error with `where` and a colon before its message.
  Status within(const std::string &where) const {
    return ok() ? *this : error(where + ": " + text, statusCode);
  }
  bool ok() const { return statusCode == Code::ok; }
  Code code() const { return statusCode; }
  const std::string &message() const { return text; }

private:
  void append(const std::string &part) { text += part; }
  void append(const char *part) { text += part; }
  void append(Code code) { statusCode = code; }
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> void append(T number) {
    text += std::to_string(number);
  }

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
