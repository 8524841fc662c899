//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MeshLayouts.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

SubAxis MeshLayouts::subAxis(AxisAttr axis) {
  auto names = mesh.getAxisNames().getAsValueRange<StringAttr>();
  auto number = std::distance(names.begin(), llvm::find(names, axis.getName()));
  int64_t begin = axis.isWhole() ? 1 : axis.getPre();
  return {static_cast<int>(number), begin, begin * axisSize(mesh, axis)};
}

SubAxes MeshLayouts::subAxes(ArrayRef<AxisAttr> axes) {
  SubAxes parts;
  for (AxisAttr axis : axes)
    parts.push_back(subAxis(axis));
  return joinSubAxes(parts);
}

Layout MeshLayouts::layout(ShardingAttr sharding) {
  Layout layout;
  for (DimAttr dim : sharding.getDims())
    layout.push_back(subAxes(dim.getAxes()));
  return layout;
}

AxisAttr MeshLayouts::axis(const SubAxis &part) {
  StringRef name = cast<StringAttr>(mesh.getAxisNames()[part.axis]).getValue();
  return part.size() == mesh.getAxisSizes()[part.axis]
             ? AxisAttr::get(mesh.getContext(), name)
             : AxisAttr::get(mesh.getContext(), name, part.begin, part.size());
}

AxisList MeshLayouts::axes(const SubAxes &parts) {
  return AxisList(
      llvm::map_range(joinSubAxes(parts), [&](const SubAxis &part) { return axis(part); }));
}

ShardingAttr MeshLayouts::sharding(const Layout &layout) {
  DimAxes dims;
  for (const SubAxes &dim : layout)
    dims.push_back(axes(dim));
  return makeSharding(mesh, dims);
}

Resharder MeshLayouts::resharder(RankedTensorType whole) {
  return Resharder(mesh.getAxisSizes().vec(), whole.getShape().vec(), elementBytes(whole));
}
