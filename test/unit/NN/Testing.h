//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_NN_TESTING_H
#define BRAID_TEST_UNIT_NN_TESTING_H

#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::nn::testing {

/// A context with the dialects of nn operations and their decompositions.
struct Context : mlir::MLIRContext {
  Context() : mlir::MLIRContext(Threading::DISABLED) {
    loadDialect<NNDialect, comm::CommDialect, mlir::func::FuncDialect, mlir::arith::ArithDialect,
                mlir::linalg::LinalgDialect, mlir::math::MathDialect,
                mlir::tensor::TensorDialect>();
  }
};

/// A module with one function @main with these arguments ("%x: tensor<4xf32>, ...") and this body.
inline mlir::OwningOpRef<mlir::ModuleOp>
parse(mlir::MLIRContext &context, const std::string &arguments, const std::string &body) {
  return mlir::parseSourceString<mlir::ModuleOp>(
      "func.func @main(" + arguments + ") {\n" + body + "\nreturn }", &context);
}

/// The first operation of a kind.
template <typename Op> Op first(mlir::ModuleOp module) {
  Op found;
  module.walk([&](Op op) {
    found = op;
    return mlir::WalkResult::interrupt();
  });
  return found;
}

} // namespace braid::nn::testing
#endif // BRAID_TEST_UNIT_NN_TESTING_H
