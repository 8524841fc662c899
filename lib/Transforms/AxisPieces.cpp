//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "AxisPieces.h"

#include <map>
#include <set>

using namespace mlir;
using namespace braid;
using namespace braid::comm;

namespace {
/// An axis of size n as ranges of the divisors of n: the whole is [1, n), `tp:(2)2` is [2, 4).
struct Span {
  int64_t begin = 1, end = 1;
};

class Spans {
public:
  explicit Spans(MeshOp mesh) : mesh(mesh) {}
  Span of(AxisAttr axis) {
    int64_t begin = axis.isWhole() ? 1 : axis.getPre();
    return {begin, begin * axisSize(mesh, axis)};
  }
  AxisAttr axis(StringRef name, Span span) {
    auto whole = AxisAttr::get(mesh.getContext(), name);
    return span.begin == 1 && span.end == axisSize(mesh, whole)
               ? whole
               : AxisAttr::get(mesh.getContext(), name, span.begin, span.end / span.begin);
  }

private:
  MeshOp mesh;
};
} // namespace

void braid::refine(MeshOp mesh, ArrayRef<DimAxes *> values) {
  Spans spans(mesh);
  std::map<std::string, std::set<int64_t>> points;
  for (const DimAxes *dims : values)
    for (const AxisList &axes : *dims)
      for (AxisAttr axis : axes) {
        Span span = spans.of(axis);
        points[axis.getName().str()].insert({span.begin, span.end});
      }
  for (DimAxes *dims : values)
    for (AxisList &axes : *dims) {
      AxisList pieces;
      for (AxisAttr axis : axes) {
        Span rest = spans.of(axis);
        for (int64_t point : points[axis.getName().str()]) {
          // Parts of which neither divides the other, 2 and 3 of 6, have no piece in common.
          if (point <= rest.begin || point >= rest.end || point % rest.begin != 0 ||
              rest.end % point != 0)
            continue;
          pieces.push_back(spans.axis(axis.getName(), {rest.begin, point}));
          rest.begin = point;
        }
        pieces.push_back(spans.axis(axis.getName(), rest));
      }
      axes = std::move(pieces);
    }
}

AxisList braid::joinPieces(MeshOp mesh, ArrayRef<AxisAttr> axes) {
  Spans spans(mesh);
  AxisList joined;
  for (AxisAttr axis : axes) {
    Span span = spans.of(axis);
    if (!joined.empty() && joined.back().getName() == axis.getName())
      if (Span last = spans.of(joined.back()); last.end == span.begin) {
        joined.back() = spans.axis(axis.getName(), {last.begin, span.end});
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
