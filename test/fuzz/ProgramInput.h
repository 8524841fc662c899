//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The form of the inputs that hold a program.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_FUZZ_PROGRAMINPUT_H
#define BRAID_TEST_FUZZ_PROGRAMINPUT_H

#include "braid/Runtime/Files.h"

#include <cstdint>
#include <string>

namespace braid::fuzz {

/// A program and the manifest that goes with it, as one input.
struct ProgramInput {
  uint8_t choices = 0; ///< how it is run
  std::string manifest;
  runtime::Bytes program;

  static bool parse(const uint8_t *data, size_t size, ProgramInput &result);
  std::string bytes() const;
};

} // namespace braid::fuzz
#endif // BRAID_TEST_FUZZ_PROGRAMINPUT_H
