//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Line and scatter charts as SVG.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ACCURACY_CHART_H
#define BRAID_ACCURACY_CHART_H

#include <string>
#include <utility>
#include <vector>

namespace braid {

struct Chart {
  struct Series {
    std::string name;
    std::vector<std::pair<double, double>> points;
    std::vector<std::string> labels; ///< beside the points; empty: none
  };
  std::string title, x, y;
  std::vector<Series> series;
  bool lines = true; ///< between the points of a series
  bool logX = false, logY = true;

  /// Points that are not finite, or not above 0 on a logarithmic axis, are left out.
  std::string svg() const;
};

} // namespace braid
#endif // BRAID_ACCURACY_CHART_H
