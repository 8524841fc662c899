//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Accuracy/Chart.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

namespace braid {

namespace {

constexpr double kWidth = 820, kHeight = 460, kLeft = 80, kRight = 210, kTop = 40, kBottom = 60;
constexpr const char *kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                   "#56b4e9", "#7f3c8d", "#666666", "#000000", "#a5aa99"};

/// One axis: numbers to places, and its ticks.
class Axis {
public:
  Axis(bool logarithmic, double from, double to) : logarithmic(logarithmic), from(from), to(to) {}

  void cover(double value) {
    if (!has(value))
      return;
    low = std::min(low, place(value));
    high = std::max(high, place(value));
  }
  bool has(double value) const { return std::isfinite(value) && (!logarithmic || value > 0); }
  /// Leaves a margin, so that no point is on the frame.
  void close() {
    if (low > high)
      low = 0, high = 1;
    const double margin = high > low ? 0.06 * (high - low) : 0.5;
    low -= margin;
    high += margin;
  }
  double at(double value) const { return from + (place(value) - low) / (high - low) * (to - from); }
  std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (logarithmic) {
      // Powers of ten, and within one or two decades their double and fivefold.
      const bool fine = high - low < 2.5;
      for (int e = static_cast<int>(std::floor(low)); e <= static_cast<int>(std::ceil(high)); ++e)
        for (double factor : {1.0, 2.0, 5.0})
          if (const double value = factor * std::pow(10.0, e);
              (fine || factor == 1) && place(value) >= low && place(value) <= high)
            ticks.push_back(value);
      return ticks;
    }
    const double step = stepFor(high - low);
    for (auto i = static_cast<int64_t>(std::ceil(low / step));
         static_cast<double>(i) * step <= high; ++i)
      ticks.push_back(static_cast<double>(i) * step);
    return ticks;
  }

private:
  double place(double value) const { return logarithmic ? std::log10(value) : value; }
  static double stepFor(double range) {
    const double power = std::pow(10.0, std::floor(std::log10(range / 5)));
    for (double factor : {1.0, 2.0, 5.0})
      if (range / (factor * power) <= 7)
        return factor * power;
    return 10 * power;
  }

  bool logarithmic;
  double from, to; ///< in the picture
  double low = INFINITY, high = -INFINITY;
};

std::string shortest(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

std::string escaped(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream os(result);
  llvm::printHTMLEscaped(text, os);
  return result;
}

} // namespace

std::string Chart::svg() const {
  Axis horizontal(logX, kLeft, kWidth - kRight), vertical(logY, kHeight - kBottom, kTop);
  for (const Series &one : series)
    for (auto [px, py] : one.points)
      if (horizontal.has(px) && vertical.has(py)) {
        horizontal.cover(px);
        vertical.cover(py);
      }
  horizontal.close();
  vertical.close();

  std::string result;
  llvm::raw_string_ostream os(result);
  auto text = [&](double px, double py, const char *anchor, llvm::StringRef what,
                  const char *more = "") {
    os << llvm::formatv("<text x=\"{0:F1}\" y=\"{1:F1}\" text-anchor=\"{2}\"{3}>{4}</text>\n", px,
                        py, anchor, more, escaped(what));
  };
  os << llvm::formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" "
                      "height=\"{1}\" fill=\"#ffffff\"/>\n",
                      kWidth, kHeight);
  text(kLeft, 22, "start", title, " font-size=\"15\"");
  for (double tick : horizontal.ticks()) {
    const double px = horizontal.at(tick);
    os << llvm::formatv("<path d=\"M{0:F1} {1}V{2}\" stroke=\"#dddddd\"/>\n", px, kTop,
                        kHeight - kBottom);
    text(px, kHeight - kBottom + 18, "middle", shortest(tick));
  }
  for (double tick : vertical.ticks()) {
    const double py = vertical.at(tick);
    os << llvm::formatv("<path d=\"M{0} {1:F1}H{2}\" stroke=\"#dddddd\"/>\n", kLeft, py,
                        kWidth - kRight);
    text(kLeft - 8, py + 4, "end", shortest(tick));
  }
  os << llvm::formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" fill=\"none\" "
                      "stroke=\"#333333\"/>\n",
                      kLeft, kTop, kWidth - kRight - kLeft, kHeight - kBottom - kTop);
  text((kLeft + kWidth - kRight) / 2, kHeight - 16, "middle", x);
  text(18, (kTop + kHeight - kBottom) / 2, "middle", y,
       llvm::formatv(" transform=\"rotate(-90 18 {0})\"", (kTop + kHeight - kBottom) / 2)
           .str()
           .c_str());

  for (auto [number, one] : llvm::enumerate(series)) {
    const char *color = kColors[number % std::size(kColors)];
    std::string path;
    for (auto [i, point] : llvm::enumerate(one.points)) {
      if (!horizontal.has(point.first) || !vertical.has(point.second))
        continue;
      const double px = horizontal.at(point.first), py = vertical.at(point.second);
      path += llvm::formatv("{0}{1:F1} {2:F1}", path.empty() ? "M" : "L", px, py).str();
      os << llvm::formatv("<circle cx=\"{0:F1}\" cy=\"{1:F1}\" r=\"3.5\" fill=\"{2}\"/>\n", px, py,
                          color);
      if (i < one.labels.size())
        text(px + 6, py - 5, "start", one.labels[i], " font-size=\"10\"");
    }
    if (lines && !path.empty())
      os << llvm::formatv("<path d=\"{0}\" fill=\"none\" stroke=\"{1}\" stroke-width=\"1.5\"/>\n",
                          path, color);
    const double py = kTop + 12 + 18 * static_cast<double>(number);
    os << llvm::formatv("<circle cx=\"{0}\" cy=\"{1}\" r=\"4\" fill=\"{2}\"/>\n",
                        kWidth - kRight + 16, py - 4, color);
    text(kWidth - kRight + 26, py, "start", one.name);
  }
  os << "</svg>\n";
  return result;
}

} // namespace braid
