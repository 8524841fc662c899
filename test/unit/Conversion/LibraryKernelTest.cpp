//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Operations that are computed by a library function, on operations of upstream dialects to which
// the interface is attached.
//
//===----------------------------------------------------------------------===//
#include "braid/Conversion/Passes.h"
#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gmock/gmock.h>

using namespace mlir;
using namespace braid;
using ::testing::HasSubstr;

namespace {

/// math.exp: two row dimensions. Its operand and its result have rows.
struct ExpModel : nn::LibraryKernelOpInterface::ExternalModel<ExpModel, math::ExpOp> {
  std::string getKernelSymbol(Operation *) const { return "fast_exp"; }
  int64_t getKernelRowDims(Operation *) const { return 2; }
  bool isKernelRowOperand(Operation *, unsigned) const { return true; }
  SmallVector<Attribute> getKernelScalars(Operation *op) const {
    return {Builder(op->getContext()).getI64IntegerAttr(7)};
  }
};
/// math.atan2: the second operand has no rows. Everything else has the defaults.
struct Atan2Model : nn::LibraryKernelOpInterface::ExternalModel<Atan2Model, math::Atan2Op> {
  std::string getKernelSymbol(Operation *) const { return "math_atan2"; }
  bool isKernelRowOperand(Operation *, unsigned index) const { return index != 1; }
};
/// tensor.extract_slice: the rows of operand and result differ.
struct SliceModel
    : nn::LibraryKernelOpInterface::ExternalModel<SliceModel, tensor::ExtractSliceOp> {
  std::string getKernelSymbol(Operation *) const { return "slice"; }
  bool isKernelRowOperand(Operation *, unsigned) const { return true; }
};
/// math.powf: nothing has rows.
struct PowModel : nn::LibraryKernelOpInterface::ExternalModel<PowModel, math::PowFOp> {
  std::string getKernelSymbol(Operation *) const { return "whole_pow"; }
};

class LibraryKernel : public ::testing::Test {
protected:
  LibraryKernel() {
    context.loadDialect<func::FuncDialect, math::MathDialect, nn::NNDialect, rt::RTDialect,
                        tensor::TensorDialect>();
    math::ExpOp::attachInterface<ExpModel>(context);
    math::Atan2Op::attachInterface<Atan2Model>(context);
    math::PowFOp::attachInterface<PowModel>(context);
    tensor::ExtractSliceOp::attachInterface<SliceModel>(context);
  }

  /// Forms kernels from a function's body. Returns the module as text, or the errors.
  std::string form(const std::string &function) {
    std::string text;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diag) {
      if (diag.getSeverity() == DiagnosticSeverity::Error)
        text += diag.str() + "\n";
      return success();
    });
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(function, &context);
    if (!module)
      return text;
    PassManager pm(&context);
    pm.addPass(createFormKernels());
    if (succeeded(pm.run(*module)))
      llvm::raw_string_ostream(text) << *module;
    return text;
  }

  MLIRContext context;
};

TEST_F(LibraryKernel, RowsAreTakenTogether) {
  std::string text = form("func.func @f(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {"
                          "%0 = math.exp %x : tensor<2x5x8xf32> return %0 : tensor<2x5x8xf32> }");
  EXPECT_THAT(text, HasSubstr("rt.kernel @math_exp(tensor<?x8xf32>) -> tensor<?x8xf32> attributes "
                              "{library_symbol = \"fast_exp\", scalars = [7]}"));
  EXPECT_THAT(text, HasSubstr("rt.launch @math_exp rows 10 ins(%arg0 : tensor<2x5x8xf32>) -> "
                              "tensor<2x5x8xf32>"));
}

TEST_F(LibraryKernel, EqualKernelsAreOne) {
  std::string text = form("func.func @f(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>) -> "
                          "(tensor<4x8xf32>, tensor<4x2xf32>) {"
                          "%0 = math.exp %x : tensor<4x8xf32> "
                          "%1 = math.exp %0 : tensor<4x8xf32> "
                          "%2 = math.exp %y : tensor<4x2xf32> "
                          "return %1, %2 : tensor<4x8xf32>, tensor<4x2xf32> }");
  // Both dimensions are rows, so that other shapes give the same kernel.
  EXPECT_THAT(text, HasSubstr("rt.kernel @math_exp(tensor<?xf32>) -> tensor<?xf32>"));
  EXPECT_EQ(text.find("rt.kernel"), text.rfind("rt.kernel")) << text;
  EXPECT_THAT(text, HasSubstr("rt.launch @math_exp rows 32"));
  EXPECT_THAT(text, HasSubstr("rt.launch @math_exp rows 8"));
}

TEST_F(LibraryKernel, OperandsThatAreNotCutAreWhole) {
  std::string text = form("func.func @f(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> "
                          "tensor<4x8xf32> {"
                          "%0 = math.atan2 %x, %y : tensor<4x8xf32> return %0 : tensor<4x8xf32> }");
  // The kernel must not have the library function's name.
  EXPECT_THAT(text, HasSubstr("rt.kernel @math_atan2_kernel(tensor<?x8xf32>, tensor<4x8xf32>) -> "
                              "tensor<?x8xf32> attributes {library_symbol = \"math_atan2\"}"));
  EXPECT_THAT(text, HasSubstr("rt.launch @math_atan2_kernel rows 4"));
}

TEST_F(LibraryKernel, WithoutRows) {
  std::string text = form("func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {"
                          "%0 = math.powf %x, %x : tensor<8xf32> return %0 : tensor<8xf32> }");
  EXPECT_THAT(text, HasSubstr("rt.kernel @math_powf(tensor<8xf32>, tensor<8xf32>) -> "
                              "tensor<8xf32>"));
  EXPECT_THAT(text, HasSubstr("rt.launch @math_powf rows 1"));
}

TEST_F(LibraryKernel, WhatDoesNotFit) {
  EXPECT_EQ(
      form("func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {"
           "%0 = math.exp %x : tensor<8xf32> return %0 : tensor<8xf32> }"),
      "'math.exp' op expects operand 0 to have rows in its first 2 dimensions for a kernel of "
      "a library, got 'tensor<8xf32>'\n");
  EXPECT_EQ(form("func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {"
                 "%0 = math.exp %x : tensor<?x8xf32> return %0 : tensor<?x8xf32> }"),
            "'math.exp' op expects operand 0 to be a tensor of static shape for a kernel of a "
            "library, got 'tensor<?x8xf32>'\n");
  EXPECT_EQ(form("func.func @f(%x: tensor<8x8xf32>) -> tensor<4x8xf32> {"
                 "%0 = tensor.extract_slice %x[0, 0] [4, 8] [1, 1] : tensor<8x8xf32> to "
                 "tensor<4x8xf32> return %0 : tensor<4x8xf32> }"),
            "'tensor.extract_slice' op expects result 0 to have the rows [8] of the row operands "
            "before it for a kernel of a library, got 'tensor<4x8xf32>'\n");
  EXPECT_EQ(form("func.func @f(%x: f32) -> f32 { %0 = math.exp %x : f32 return %0 : f32 }"),
            "'math.exp' op expects operand 0 to be a tensor of static shape for a kernel of a "
            "library, got 'f32'\n");
}

} // namespace
