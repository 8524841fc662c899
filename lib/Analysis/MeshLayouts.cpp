//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/MeshLayouts.h"

#include "braid/Base/Mesh.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

SubAxis MeshLayouts::subAxis(AxisAttr axis) const {
  auto names = mesh.getAxisNames().getAsValueRange<StringAttr>();
  auto number = std::distance(names.begin(), llvm::find(names, axis.getName()));
  int64_t begin = axis.isFull() ? 1 : axis.getPre();
  return {static_cast<int>(number), begin, begin * *toRuntime(mesh).axisSize(toRuntime(axis))};
}

SubAxes MeshLayouts::subAxes(ArrayRef<AxisAttr> axes) const {
  auto converted = llvm::map_range(axes, [&](AxisAttr axis) { return subAxis(axis); });
  return SubAxes(converted.begin(), converted.end());
}

Layout MeshLayouts::layout(ShardingAttr sharding) const {
  Layout layout;
  for (DimAttr dim : sharding.getDims())
    layout.push_back(mergeSubAxes(subAxes(dim.getAxes())));
  return layout;
}

AxisAttr MeshLayouts::axis(const SubAxis &axis) const {
  StringRef name = cast<StringAttr>(mesh.getAxisNames()[axis.axis]).getValue();
  return axis.size() == mesh.getAxisSizes()[axis.axis]
             ? AxisAttr::get(mesh.getContext(), name)
             : AxisAttr::get(mesh.getContext(), name, axis.begin, axis.size());
}

SmallVector<AxisAttr> MeshLayouts::axes(const SubAxes &axes) const {
  return llvm::map_to_vector(mergeSubAxes(axes), [&](const SubAxis &a) { return axis(a); });
}

GroupAttr MeshLayouts::group(const SubAxes &subAxes) const {
  return GroupAttr::get(mesh.getContext(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                        axes(subAxes));
}

ShardingAttr MeshLayouts::sharding(const Layout &layout, ArrayRef<PartialAttr> partials) const {
  auto dims = llvm::map_to_vector(
      layout, [&](const SubAxes &dim) { return DimAttr::get(mesh.getContext(), axes(dim)); });
  return ShardingAttr::get(mesh.getContext(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()), dims,
                           partials);
}
