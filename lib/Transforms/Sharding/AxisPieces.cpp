//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "AxisPieces.h"

#include "MeshLayouts.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

void braid::refine(MeshOp mesh, ArrayRef<DimAxes *> values) {
  MeshLayouts layouts(mesh);
  SubAxes all;
  for (const DimAxes *dims : values)
    for (const AxisList &axes : *dims)
      for (AxisAttr axis : axes)
        all.push_back(layouts.subAxis(axis));
  for (DimAxes *dims : values)
    for (AxisList &axes : *dims) {
      AxisList pieces;
      for (AxisAttr axis : axes)
        for (const SubAxis &part : splitWhere(layouts.subAxis(axis), all))
          pieces.push_back(layouts.axis(part));
      axes = std::move(pieces);
    }
}

AxisList braid::joinPieces(MeshOp mesh, ArrayRef<AxisAttr> axes) {
  MeshLayouts layouts(mesh);
  AxisList joined;
  for (AxisAttr axis : axes) {
    SubAxis part = layouts.subAxis(axis);
    if (!joined.empty())
      if (SubAxis last = layouts.subAxis(joined.back());
          last.axis == part.axis && last.end == part.begin) {
        joined.back() = layouts.axis({part.axis, last.begin, part.end});
        continue;
      }
    joined.push_back(axis);
  }
  return joined;
}

DimAxes braid::joinPieces(MeshOp mesh, const DimAxes &dims) {
  DimAxes joined;
  for (const AxisList &axes : dims)
    joined.push_back(joinPieces(mesh, axes));
  return joined;
}
