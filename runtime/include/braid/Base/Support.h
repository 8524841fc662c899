//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Helpers for readers of data: arithmetic with overflow checks, and text for messages.
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

/// "'text'", with control characters escaped and long text shortened, since it may come from a
/// hostile file.
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

/// Whether a member's path stays inside its archive: relative, without empty, "." or ".."
/// components, and of plain characters.
bool isSafeMember(const std::string &member);

/// The product of the sizes; nothing if a size is negative or the product overflows.
std::optional<int64_t> checkedNumElements(const std::vector<int64_t> &shape);

} // namespace braid::runtime
#endif // BRAID_BASE_SUPPORT_H
