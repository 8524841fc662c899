//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "StrategyOptions.h"

using namespace mlir;

namespace braid {

static constexpr StrategyPart kParts[] = {{"tp", kTensorAxis, "layers"},
                                          {"tp-sp", kTensorAxis, "layers"},
                                          {"vocab", kTensorAxis, "vocabulary"},
                                          {"dp", kDataAxis, "batch"}};

ArrayRef<StrategyPart> strategyParts() { return kParts; }

FailureOr<SmallVector<MeshAxis>> parseMesh(ModuleOp module, StringRef mesh, bool anyAxis) {
  auto error = [&] { return module.emitError("mesh '") << mesh << "' "; };
  SmallVector<MeshAxis> axes;
  SmallVector<StringRef> items;
  mesh.split(items, ',');
  for (StringRef item : items) {
    auto [name, size] = item.split('=');
    MeshAxis axis{name.trim(), 0};
    if (item.count('=') != 1 || axis.name.empty() || size.trim().getAsInteger(10, axis.size))
      return error() << "expects AXIS=SIZE separated by commas, got '" << item << "'";
    if (!anyAxis && axis.name != kDataAxis && axis.name != kTensorAxis)
      return error() << "has unknown axis '" << axis.name << "', expects dp or tp";
    if (axis.size < 1)
      return error() << "expects a size of at least 1 for axis '" << axis.name << "', got "
                     << axis.size;
    if (llvm::any_of(axes, [&](const MeshAxis &other) { return other.name == axis.name; }))
      return error() << "names axis '" << axis.name << "' twice";
    axes.push_back(axis);
  }
  return axes;
}

FailureOr<SmallVector<const StrategyPart *>> parseStrategy(ModuleOp module, StringRef strategy) {
  SmallVector<const StrategyPart *> parts;
  if (strategy == kNoStrategy)
    return parts;
  SmallVector<StringRef> names;
  strategy.split(names, ',');
  for (StringRef name : names) {
    name = name.trim();
    const StrategyPart *part =
        llvm::find_if(kParts, [&](const StrategyPart &p) { return p.name == name; });
    if (part == std::end(kParts)) {
      InFlightDiagnostic diag = module.emitError("strategy '");
      diag << strategy << "' expects auto, none or a list of ";
      llvm::interleaveComma(kParts, diag, [&](const StrategyPart &p) { diag << p.name; });
      return diag << ", got '" << name << "'";
    }
    for (const StrategyPart *other : parts)
      if (other->kind == part->kind)
        return module.emitError("strategy '")
               << strategy << "' expects one way to split the " << part->kind << ", got '"
               << other->name << "' and '" << part->name << "'";
    parts.push_back(part);
  }
  return parts;
}

} // namespace braid
