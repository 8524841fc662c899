//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What kernels compute, by classes of operations.
//
//===----------------------------------------------------------------------===//
#include "braid/Cost/KernelWork.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace braid;
using namespace mlir;

/// "exp 8, simple 16"
static std::string workOf(const char *kernel, int64_t rows) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<rt::RTDialect, arith::ArithDialect, linalg::LinalgDialect, math::MathDialect,
                      tensor::TensorDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kernel, &context);
  EXPECT_TRUE(module);
  std::string text;
  if (module)
    for (const auto &[operation, count] : kernelWork(*module->getOps<rt::KernelOp>().begin(), rows))
      text += (text.empty() ? "" : ", ") + operation.str() + " " + std::to_string(count.getValue());
  return text;
}

// A softmax without its maximum: exp and a sum for each element, then a quotient.
TEST(KernelWork, CountsByClassOnGivenRows) {
  const char *kernel = R"(
rt.kernel @exp_over_sum(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %r = tensor.empty(%n) : tensor<?xf32>
  %exp = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %half = arith.constant 0.5 : f32
    %0 = arith.mulf %a, %half : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>],
      iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<?x8xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %square = arith.mulf %a, %a : f32
    %0 = arith.addf %o, %square : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %out = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>,
      affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<?x8xf32>, tensor<?xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %0 = arith.divf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<?x8xf32>
  rt.yield %out : tensor<?x8xf32>
})";
  EXPECT_EQ(workOf(kernel, 1), "simple 16, exp 8, reduce 8, divide 8");
  EXPECT_EQ(workOf(kernel, 10), "simple 160, exp 80, reduce 80, divide 80");
}

TEST(KernelWork, OfAKernelWrittenByHandIsWhatItStates) {
  EXPECT_EQ(workOf("rt.kernel @own(tensor<?x4xf32>) -> tensor<?x4xf32> attributes {library_symbol "
                   "= \"own\", row_flops = 100 : i64}",
                   3),
            "simple 300");
  EXPECT_EQ(workOf("rt.kernel @own(tensor<?x4xf32>) -> tensor<?x4xf32> attributes {library_symbol "
                   "= \"own\"}",
                   3),
            "");
}
