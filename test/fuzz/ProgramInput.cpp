//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramInput.h"

namespace braid::fuzz {

using runtime::Bytes;

bool ProgramInput::parse(const uint8_t *data, size_t size, ProgramInput &result) {
  constexpr size_t kPrefix = 5;
  if (size < kPrefix)
    return false;
  size_t length = 0;
  for (size_t i = kPrefix; i-- > 1;)
    length = length << 8 | data[i];
  if (length > size - kPrefix)
    return false;
  result.choices = data[0];
  result.manifest.assign(reinterpret_cast<const char *>(data) + kPrefix, length);
  const auto *program = reinterpret_cast<const std::byte *>(data) + kPrefix + length;
  result.program = Bytes(program, program + (size - kPrefix - length));
  return true;
}

std::string ProgramInput::bytes() const {
  std::string result(1, static_cast<char>(choices));
  for (size_t i = 0; i < 4; ++i)
    result += static_cast<char>(manifest.size() >> (8 * i) & 0xff);
  return result + manifest +
         std::string(reinterpret_cast<const char *>(program.data()), program.size());
}

} // namespace braid::fuzz
