//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Small helpers of everything that reads data: arithmetic that notices overflow, and text
// for messages.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_SUPPORT_H
#define BRAID_BASE_SUPPORT_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::runtime {

using Bytes = std::vector<std::byte>;

/// "'text'", with control characters and overlong text made harmless: it may come out of a hostile
/// file.
std::string inQuotes(const std::string &text);

template <typename T> std::optional<T> checkedMul(T a, T b) {
  T result;
  if (__builtin_mul_overflow(a, b, &result))
    return std::nullopt;
  return result;
}
template <typename T> std::optional<T> checkedAdd(T a, T b) {
  T result;
  if (__builtin_add_overflow(a, b, &result))
    return std::nullopt;
  return result;
}

/// A path of a member that stays inside of its archive: relative, no empty, "." or ".." component,
/// plain characters.
bool isSafeMember(const std::string &member);

/// Product of the sizes; nothing when one is negative or the product overflows.
std::optional<int64_t> checkedNumElements(const std::vector<int64_t> &shape);

} // namespace braid::runtime
#endif // BRAID_BASE_SUPPORT_H
