//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_LAUNCH_NUMBERS_H
#define BRAID_LAUNCH_NUMBERS_H

#include <cstdint>
#include <optional>
#include <string>

namespace braid::runtime {

/// The number that the text's decimal digits write; nothing if it has anything else, is empty, or
/// is above `most`.
inline std::optional<int64_t> wholeNumber(const std::string &text, int64_t most) {
  constexpr size_t kMaxDigits = 18; // fits in 64 bits
  if (text.empty() || text.size() > kMaxDigits ||
      text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  const int64_t number = std::stoll(text);
  return number <= most ? std::optional<int64_t>(number) : std::nullopt;
}

} // namespace braid::runtime
#endif // BRAID_LAUNCH_NUMBERS_H
