//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "StrategyOptions.h"

using namespace mlir;

namespace braid {

static constexpr StrategyComponent kComponents[] = {{"tp", kTensorAxis, "layers"},
                                                    {"tp-sp", kTensorAxis, "layers"},
                                                    {"vocab", kTensorAxis, "vocabulary"},
                                                    {"dp", kDataAxis, "batch"},
                                                    {"fsdp", kDataAxis, "weights"}};

ArrayRef<StrategyComponent> strategyComponents() { return kComponents; }

SmallVector<MeshAxis> axesOf(comm::MeshOp mesh) {
  SmallVector<MeshAxis> axes;
  for (auto [name, size] :
       llvm::zip_equal(mesh.getAxisNames().getAsValueRange<StringAttr>(), mesh.getAxisSizes()))
    axes.push_back({name, size});
  return axes;
}

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

FailureOr<SmallVector<const StrategyComponent *>> parseStrategy(ModuleOp module,
                                                                StringRef strategy) {
  SmallVector<const StrategyComponent *> components;
  if (strategy == kNoStrategy)
    return components;
  SmallVector<StringRef> names;
  strategy.split(names, ',');
  for (StringRef name : names) {
    name = name.trim();
    const auto *found =
        llvm::find_if(kComponents, [&](const StrategyComponent &c) { return c.name == name; });
    if (found == std::end(kComponents)) {
      InFlightDiagnostic diag = module.emitError("strategy '");
      diag << strategy << "' expects auto, none or a list of ";
      llvm::interleaveComma(kComponents, diag, [&](const StrategyComponent &c) { diag << c.name; });
      return diag << ", got '" << name << "'";
    }
    for (const StrategyComponent *other : components)
      if (other->kind == found->kind)
        return module.emitError("strategy '")
               << strategy << "' expects one way to split the " << found->kind << ", got '"
               << other->name << "' and '" << found->name << "'";
    components.push_back(found);
  }
  return components;
}

} // namespace braid
