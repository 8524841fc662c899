//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses and prints layouts, "{a}, {b:(1)2, c}", and builds meshes, shardings and rules for tests.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_TRANSFORMS_AXES_H
#define BRAID_TEST_UNIT_TRANSFORMS_AXES_H

#include "braid/Analysis/MeshLayouts.h"
#include "braid/Transforms/ShardingUtils.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>

namespace braid::test {

/// The axes of a mesh "x = 4, y = 2".
struct AxisNames {
  explicit AxisNames(llvm::StringRef mesh) {
    for (llvm::StringRef axis : llvm::split(mesh, ',')) {
      auto [name, size] = axis.split('=');
      names.push_back(name.trim().str());
      sizes.push_back(number(size.trim()));
    }
  }
  static int64_t number(llvm::StringRef text) {
    int64_t number = 0;
    EXPECT_FALSE(text.getAsInteger(10, number)) << text.str();
    return number;
  }
  SubAxes list(llvm::StringRef text) const {
    SubAxes axes;
    for (llvm::StringRef axis : llvm::split(text, ',')) {
      auto [name, subAxis] = axis.trim().split(":(");
      if (name.empty())
        continue;
      auto it = std::find(names.begin(), names.end(), name.str());
      int64_t begin = 1, end = sizes[static_cast<size_t>(it - names.begin())];
      if (!subAxis.empty()) {
        begin = number(subAxis.split(')').first);
        end = begin * number(subAxis.split(')').second);
      }
      axes.push_back({static_cast<int>(it - names.begin()), begin, end});
    }
    return mergeSubAxes(axes);
  }
  Layout layout(llvm::StringRef text) const {
    Layout layout;
    for (auto [dim, rest] = text.split('}'); !dim.empty(); std::tie(dim, rest) = rest.split('}'))
      layout.push_back(list(dim.split('{').second));
    return layout;
  }
  std::string text(const SubAxes &axes) const {
    std::string result;
    for (const SubAxis &axis : axes) {
      auto number = static_cast<size_t>(axis.axis);
      result += (result.empty() ? "" : ", ") + names[number];
      if (axis.size() != sizes[number])
        result += ":(" + std::to_string(axis.begin) + ")" + std::to_string(axis.size());
    }
    return result;
  }
  std::string text(const Layout &layout) const {
    std::string result;
    for (const SubAxes &axes : layout)
      result += (result.empty() ? "{" : ", {") + text(axes) + "}";
    return result;
  }

  std::vector<std::string> names;
  std::vector<int64_t> sizes;
};

/// The same with MLIR: a mesh, and sharding attributes on it.
struct Axes : ::testing::Test, AxisNames {
  Axes()
      : AxisNames("a = 4, b = 2, c = 2, x = 6"), context(mlir::MLIRContext::Threading::DISABLED) {
    context.loadDialect<comm::CommDialect>();
    setMesh("a = 4, b = 2, c = 2, x = 6");
  }
  void setMesh(const std::string &axes) {
    static_cast<AxisNames &>(*this) = AxisNames(axes);
    module = mlir::parseSourceString<mlir::ModuleOp>("comm.mesh @mesh <" + axes + ">", &context);
    mesh = *module->getOps<comm::MeshOp>().begin();
  }
  /// "{a, ?}" is an open dimension.
  comm::ShardingAttr sharding(const std::string &dims) {
    return mlir::cast<comm::ShardingAttr>(
        mlir::parseAttribute("#comm.sharding<@mesh, [" + dims + "]>", &context));
  }
  mlir::RankedTensorType tensor(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, mlir::Float32Type::get(&context));
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  comm::MeshOp mesh;
};

/// [row, in] x [out, in] -> [row, out]
inline comm::ShardingRule linearRule(int64_t rows, int64_t out, int64_t in) {
  comm::ShardingRule rule;
  int64_t r = rule.addFactor("row", rows), o = rule.addFactor("out", out),
          i = rule.addFactor("in", in, comm::FactorKind::Reduction);
  rule.operands = {{{r}, {i}}, {{o}, {i}}};
  rule.results = {{{r}, {o}}};
  return rule;
}

/// The rule of an operation with `operands` operands and one result of two dimensions.
inline comm::ShardingRule elementwiseRule(int64_t rows, int64_t columns, size_t operands) {
  comm::ShardingRule rule;
  comm::TensorFactors all{{rule.addFactor("row", rows)}, {rule.addFactor("column", columns)}};
  rule.operands.assign(operands, all);
  rule.results = {all};
  return rule;
}

} // namespace braid::test
#endif // BRAID_TEST_UNIT_TRANSFORMS_AXES_H
