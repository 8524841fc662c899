//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A mesh, and axes of it from text: "{a}, {b:(1)2, c}".
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_TRANSFORMS_AXES_H
#define BRAID_TEST_UNIT_TRANSFORMS_AXES_H

#include "lib/Transforms/Sharding/FactorProjection.h"

#include "dialects/Comm/IR/Comm.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace braid::test {

struct Axes : ::testing::Test {
  Axes() : context(mlir::MLIRContext::Threading::DISABLED) {
    context.loadDialect<comm::CommDialect>();
    setMesh("a = 4, b = 2, c = 2, x = 6");
  }
  void setMesh(const std::string &axes) {
    module = mlir::parseSourceString<mlir::ModuleOp>("comm.mesh @mesh <" + axes + ">", &context);
    mesh = *module->getOps<comm::MeshOp>().begin();
  }
  /// "{a, ?}" is an open dimension.
  comm::ShardingAttr sharding(const std::string &dims, const std::string &rest = "") {
    return mlir::cast<comm::ShardingAttr>(
        mlir::parseAttribute("#comm.sharding<@mesh, [" + dims + "]" + rest + ">", &context));
  }
  DimAxes dims(const std::string &text) { return dimsOf(sharding(text)); }
  AxisList list(const std::string &text) { return dims("{" + text + "}")[0]; }
  static std::string text(const AxisList &axes) {
    std::string result;
    for (comm::AxisAttr axis : axes) {
      result += (result.empty() ? "" : ", ") + axis.getName().str();
      if (!axis.isWhole())
        result += ":(" + std::to_string(axis.getPre()) + ")" + std::to_string(axis.getSize());
    }
    return result;
  }
  static std::string text(llvm::ArrayRef<AxisList> lists) {
    std::string result;
    for (const AxisList &axes : lists)
      result += (result.empty() ? "{" : ", {") + text(axes) + "}";
    return result;
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

/// Of `operands` operands and one result of two dimensions.
inline comm::ShardingRule elementwiseRule(int64_t rows, int64_t columns, size_t operands) {
  comm::ShardingRule rule;
  comm::TensorFactors all{{rule.addFactor("row", rows)}, {rule.addFactor("column", columns)}};
  rule.operands.assign(operands, all);
  rule.results = {all};
  return rule;
}

} // namespace braid::test
#endif // BRAID_TEST_UNIT_TRANSFORMS_AXES_H
