//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Transforms/Identity.h"
#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;

namespace braid {
#define GEN_PASS_DEF_SPECIALIZE
#include "braid/Transforms/Passes.h.inc"

/// "layer_3" of "layer#3".
static std::string cloneName(func::CallOp call) {
  std::string name = callName(call);
  llvm::replace(name, '#', '_');
  return name;
}

func::FuncOp specialize(func::CallOp call, SymbolTable &symbols) {
  func::FuncOp callee = calleeOf(call);
  auto module = cast<ModuleOp>(symbols.getOp());
  std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(callee, module);
  if (!uses || llvm::hasSingleElement(*uses))
    return {};
  auto clone = cast<func::FuncOp>(callee->clone());
  clone.setSymName(cloneName(call));
  clone.setPrivate();
  symbols.insert(clone, std::next(callee->getIterator()));
  call->setAttr(comm::CommDialect::kCallAttrName,
                StringAttr::get(call.getContext(), callName(call)));
  call.setCallee(clone.getSymName());
  return clone;
}

namespace {

struct Specialize : impl::SpecializeBase<Specialize> {
  using Base::Base;

  void runOnOperation() override {
    identify(getOperation());
    SymbolTable symbols(getOperation());
    for (const std::string &path : calls)
      if (failed(specializePath(path, symbols)))
        return signalPassFailure();
  }

  /// A path is "@main/@layer#3": a function, and the names of calls from there.
  LogicalResult specializePath(const std::string &path, SymbolTable &symbols) {
    auto error = [&] { return getOperation().emitError("expects call paths such as "); };
    SmallVector<StringRef> parts;
    StringRef(path).split(parts, '/');
    SmallVector<llvm::GlobPattern> patterns;
    for (StringRef &part : parts) {
      if (!part.consume_front("@") || part.empty())
        return error() << "'@main/@layer#3', got '" << path << "'";
      llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(part);
      if (!pattern)
        return error() << "'@main/@layer#*', got '" << path
                       << "': " << llvm::toString(pattern.takeError());
      patterns.push_back(std::move(*pattern));
    }
    auto root = symbols.lookup<func::FuncOp>(parts.front());
    if (patterns.size() < 2 || !root)
      return error() << "'@main/@layer#3', from a function of the module, got '" << path << "'";
    if (!descend(root, ArrayRef(patterns).drop_front(), symbols))
      return getOperation().emitError("expects a call that '") << path << "' names, found none";
    return success();
  }

  /// Specializes the calls that match the first pattern, and in their callees those that match the
  /// next one. Whether there was a call for the last one.
  bool descend(func::FuncOp func, ArrayRef<llvm::GlobPattern> patterns, SymbolTable &symbols) {
    SmallVector<func::CallOp> matching;
    func.walk([&](func::CallOp call) {
      if (patterns.front().match(callName(call)))
        matching.push_back(call);
    });
    bool found = false;
    for (func::CallOp call : matching) {
      if (calleeOf(call).isExternal())
        continue;
      // A callee that has nothing to specialize in it stays.
      if (patterns.size() > 1 && !leadsTo(calleeOf(call), patterns.drop_front()))
        continue;
      numCloned += static_cast<bool>(specialize(call, symbols));
      found = true;
      if (patterns.size() > 1)
        descend(calleeOf(call), patterns.drop_front(), symbols);
    }
    return found;
  }

  static bool leadsTo(func::FuncOp func, ArrayRef<llvm::GlobPattern> patterns) {
    return func
        .walk([&](func::CallOp call) {
          bool leads = patterns.front().match(callName(call)) && !calleeOf(call).isExternal() &&
                       (patterns.size() == 1 || leadsTo(calleeOf(call), patterns.drop_front()));
          return leads ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }
};

} // namespace
} // namespace braid
