//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Transforms/Identity.h"

#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace braid {
#define GEN_PASS_DEF_IDENTIFYCOLLECTIVES
#include "braid/Transforms/Passes.h.inc"

static constexpr llvm::StringLiteral kRole = "role";

static std::string roleOf(Operation *collective) {
  auto role = collective->getAttrOfType<StringAttr>(kRole);
  return role ? role.str() : "";
}

static size_t numValues(Operation *collective) {
  return std::max(collective->getNumOperands(), collective->getNumResults());
}

SmallVector<std::string> valueNames(Operation *collective) {
  const std::string role = roleOf(collective);
  SmallVector<StringRef> names;
  StringRef(role).split(names, '+');
  const size_t count = numValues(collective);
  if (names.size() == count)
    return llvm::map_to_vector(names, [](StringRef name) { return name.str(); });
  return SmallVector<std::string>(count, role);
}

void setValueNames(Operation *collective, ArrayRef<std::string> names) {
  SmallVector<StringRef> given;
  for (StringRef name : names)
    if (!name.empty())
      given.push_back(name);
  if (given.empty())
    collective->removeAttr(kRole);
  else
    collective->setAttr(kRole, StringAttr::get(collective->getContext(),
                                               llvm::all_equal(given) ? given.front().str()
                                                                      : llvm::join(given, "+")));
}

void namePart(Operation *part, Operation *whole, StringRef what) {
  SmallVector<std::string> names = valueNames(whole);
  for (std::string &name : names)
    if (!name.empty())
      name += ("/" + what).str();
  setValueNames(part, names);
}

/// "a" of "a/reduce_scatter" and "a/all_gather", else "a&b". Equal names count once.
static std::string wholeName(ArrayRef<std::string> parts) {
  SmallVector<StringRef> unique;
  for (StringRef part : parts)
    if (!part.empty() && !llvm::is_contained(unique, part))
      unique.push_back(part);
  if (unique.size() < 2)
    return unique.empty() ? "" : unique.front().str();
  StringRef common = unique.front().rsplit('/').first;
  if (llvm::all_of(unique, [&](StringRef part) {
        return part.contains('/') && part.rsplit('/').first == common;
      }))
    return common.str();
  return llvm::join(unique, "&");
}

void nameWhole(Operation *whole, ArrayRef<Operation *> parts) {
  SmallVector<std::string> names;
  auto all = llvm::map_to_vector(parts, valueNames);
  for (size_t i = 0; i < numValues(whole); ++i)
    names.push_back(wholeName(llvm::map_to_vector(all, [&](const auto &of) { return of[i]; })));
  setValueNames(whole, names);
}

std::string callName(func::CallOp call) {
  if (auto name = call->getAttrOfType<StringAttr>(comm::CommDialect::kCallAttrName))
    return name.str();
  return call.getCallee().str();
}

/// The collective's name with `change` made to each of the names in it.
template <typename Change> static std::string changeNames(Operation *collective, Change change) {
  std::string result, name;
  for (char c : roleOf(collective) + '\0') {
    if (c != '+' && c != '&' && c != '\0') {
      name += c;
      continue;
    }
    if (!name.empty())
      result += change(std::exchange(name, ""));
    if (c != '\0')
      result += c;
  }
  return result;
}

std::string nameInCaller(Operation *collective, func::CallOp call) {
  return changeNames(collective,
                     [&](const std::string &name) { return "@" + callName(call) + "/" + name; });
}

std::string nameInCallee(Operation *collective) {
  return changeNames(collective, [](StringRef name) {
    return (name.starts_with("@") ? name.split('/').second : name).str();
  });
}

/// The first of "name", "name#1", ... that is not taken, which it then is.
static std::string takeName(StringRef name, llvm::StringSet<> &taken) {
  std::string unique = name.str();
  for (unsigned number = 1; !taken.insert(unique).second; ++number)
    unique = (name + "#" + Twine(number)).str();
  return unique;
}

/// Calls of one callee are numbered from 0, unless there is only one.
static void identifyCalls(func::FuncOp func) {
  llvm::StringMap<unsigned> count;
  llvm::StringSet<> taken;
  func.walk([&](func::CallOp call) {
    ++count[call.getCallee()];
    if (call->hasAttr(comm::CommDialect::kCallAttrName))
      taken.insert(callName(call));
  });
  llvm::StringSet<> seen;
  func.walk([&](func::CallOp call) {
    const bool named = call->hasAttr(comm::CommDialect::kCallAttrName);
    if (count[call.getCallee()] < 2 || (named && seen.insert(callName(call)).second))
      return;
    std::string name;
    for (unsigned number = 0; name.empty() || !taken.insert(name).second; ++number)
      name = (call.getCallee() + "#" + Twine(number)).str();
    seen.insert(name);
    call->setAttr(comm::CommDialect::kCallAttrName, StringAttr::get(func.getContext(), name));
  });
}

static void identifyCollectives(func::FuncOp func) {
  SmallVector<Operation *> collectives;
  func.walk([&](comm::CollectiveOpInterface op) { collectives.push_back(op); });
  // The first collective of a name keeps it, also where another one is given it.
  llvm::StringSet<> taken, seen;
  for (Operation *op : collectives)
    taken.insert(roleOf(op));
  for (Operation *op : collectives) {
    std::string name = roleOf(op);
    if (!name.empty() && seen.insert(name).second)
      continue;
    if (name.empty()) {
      // A name in the location is that of the value in the source.
      auto loc = op->getLoc()->findInstanceOf<NameLoc>();
      name = loc ? loc.getName().str() : op->getName().stripDialect().str();
    }
    name = takeName(name, taken);
    seen.insert(name);
    op->setAttr(kRole, StringAttr::get(func.getContext(), name));
  }
}

void identify(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>()) {
    identifyCalls(func);
    identifyCollectives(func);
  }
}

namespace {
struct IdentifyCollectives : impl::IdentifyCollectivesBase<IdentifyCollectives> {
  void runOnOperation() override { identify(getOperation()); }
};
} // namespace

} // namespace braid
