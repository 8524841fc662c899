//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The format of inputs that hold a program.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_FUZZ_PROGRAMINPUT_H
#define BRAID_TEST_FUZZ_PROGRAMINPUT_H

#include "braid/Runtime/Files.h"

#include <cstdint>
#include <string>

namespace braid::fuzz {

/// A program and its manifest, as one input.
struct ProgramInput {
  uint8_t choices = 0; ///< selects how the program runs
  std::string manifest;
  runtime::Bytes program;

  static bool parse(const uint8_t *data, size_t size, ProgramInput &result);
  std::string bytes() const;
};

} // namespace braid::fuzz
#endif // BRAID_TEST_FUZZ_PROGRAMINPUT_H
