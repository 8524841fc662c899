//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels that the tests of every target compile, as text.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_TARGET_KERNELTEXT_H
#define BRAID_TEST_UNIT_TARGET_KERNELTEXT_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace braid::test {

/// `source` with every $name replaced by its value.
std::string substitute(std::string source,
                       const std::vector<std::pair<std::string, std::string>> &values);

/// A map of rows x and an operand w for each column, of f32; `body` goes from %a and %b to %y.
std::string mapKernel(const std::string &name, int64_t columns, const std::string &body);

/// Doubles each of its rows' only elements: nothing varies along a column.
extern const char *const kColumnFreeKernel;

} // namespace braid::test
#endif // BRAID_TEST_UNIT_TARGET_KERNELTEXT_H
