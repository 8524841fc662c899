//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/Support.h"

#include <algorithm>

namespace braid::runtime {

std::string inQuotes(const std::string &text) {
  constexpr size_t kLimit = 256;
  std::string result = "'";
  for (size_t i = 0; i < text.size() && i < kLimit; ++i) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != 0x7f) {
      result += text[i];
      continue;
    }
    constexpr char kHex[] = "0123456789abcdef";
    result += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
  }
  return result + (text.size() > kLimit ? "...'" : "'");
}

bool isSafeMember(const std::string &member) {
  for (size_t begin = 0; begin <= member.size();) {
    size_t end = std::min(member.find('/', begin), member.size());
    std::string component = member.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..")
      return false;
    for (unsigned char c : component)
      if (c < 0x20 || c >= 0x7f || c == '\\' || c == ':')
        return false;
    begin = end + 1;
  }
  return true;
}

std::optional<int64_t> checkedNumElements(const std::vector<int64_t> &shape) {
  std::optional<int64_t> product = 1;
  for (int64_t size : shape) {
    if (size < 0 || !product)
      return std::nullopt;
    product = checkedMul(*product, size);
  }
  return product;
}

} // namespace braid::runtime
