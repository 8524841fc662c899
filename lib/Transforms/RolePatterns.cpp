//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RolePatterns.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace braid {

InFlightDiagnostic patternError(ModuleOp module, StringRef expected, StringRef item) {
  return module.emitError() << expected << ", got '" << item << "'";
}

LogicalResult forEachPattern(ModuleOp module, StringRef list, StringRef expected,
                             llvm::function_ref<LogicalResult(const PatternItem &)> take) {
  SmallVector<StringRef> items;
  list.split(items, ',');
  for (StringRef item : items) {
    auto [pattern, value] = item.split('=');
    if (pattern.empty() || value.empty())
      return patternError(module, expected, item);
    if (failed(take({pattern, value, item})))
      return failure();
  }
  return success();
}

FailureOr<llvm::GlobPattern> parseGlob(ModuleOp module, StringRef expected, const PatternItem &item,
                                       StringRef glob) {
  llvm::Expected<llvm::GlobPattern> made = llvm::GlobPattern::create(glob);
  if (!made)
    return patternError(module, expected, item.text) << ": " << llvm::toString(made.takeError());
  return std::move(*made);
}

std::string knownRoles(ArrayRef<StringRef> roles, StringRef none) {
  constexpr size_t kMost = 8;
  const llvm::SmallSetVector<StringRef, 16> all(roles.begin(), roles.end());
  if (all.empty())
    return none.str();
  std::string text;
  for (StringRef role : all.getArrayRef().take_front(kMost))
    text += (text.empty() ? " among '" : ", '") + role.str() + "'";
  return text + (all.size() > kMost ? ", ..." : "");
}

} // namespace braid
