//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks of option values that the tools share: each returns an error, or empty.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOL_OPTIONCHECKS_H
#define BRAID_TOOL_OPTIONCHECKS_H

#include <string>

namespace braid::tool {

/// A script whose variable is not set would do something else than it says.
inline std::string isGiven(const std::string &text) {
  return text.empty() ? "expects a value, got an empty one" : "";
}

/// For unsigned numbers: a negative one would wrap around.
inline std::string isNotNegative(const std::string &text) {
  return text.rfind('-', 0) == 0 ? "expects a whole number of at least 0, got " + text : "";
}

} // namespace braid::tool
#endif // BRAID_TOOL_OPTIONCHECKS_H
