//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels as text that the tests of every target compile.
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

/// A kernel that maps rows x and an operand w with one value for each column, all f32. `body`
/// computes %y from %a and %b.
std::string mapKernel(const std::string &name, int64_t columns, const std::string &body);

/// Doubles the only element of each row: no operand depends on the column.
extern const char *const kColumnFreeKernel;

} // namespace braid::test
#endif // BRAID_TEST_UNIT_TARGET_KERNELTEXT_H
