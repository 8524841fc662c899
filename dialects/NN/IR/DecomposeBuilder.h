//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by the decompositions: linalg.generic with f32 arithmetic around any storage type.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_NN_DECOMPOSEBUILDER_H
#define BRAID_DIALECTS_NN_DECOMPOSEBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace braid::nn {

/// Scalar arithmetic in f32. Sums may be reassociated and contracted; infinities and NaNs keep
/// their meaning.
class Scalars {
public:
  Scalars(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value add(mlir::Value a, mlir::Value b) { return binary<mlir::arith::AddFOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return binary<mlir::arith::SubFOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return binary<mlir::arith::MulFOp>(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return binary<mlir::arith::DivFOp>(a, b); }
  mlir::Value max(mlir::Value a, mlir::Value b) { return binary<mlir::arith::MaximumFOp>(a, b); }
  mlir::Value min(mlir::Value a, mlir::Value b) { return binary<mlir::arith::MinimumFOp>(a, b); }
  template <typename Op> mlir::Value unary(mlir::Value a) {
    return Op::create(builder, loc, a, flags);
  }
  /// An f32 constant.
  mlir::Value constant(double value) {
    return mlir::arith::ConstantOp::create(builder, loc,
                                           builder.getF32FloatAttr(static_cast<float>(value)));
  }
  mlir::Value less(mlir::Value a, mlir::Value b) {
    return mlir::arith::CmpFOp::create(builder, loc, mlir::arith::CmpFPredicate::OLT, a, b);
  }
  mlir::Value equal(mlir::Value a, mlir::Value b) {
    return mlir::arith::CmpFOp::create(builder, loc, mlir::arith::CmpFPredicate::OEQ, a, b);
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return mlir::arith::SelectOp::create(builder, loc, condition, a, b);
  }
  /// To f32, and from f32 to a storage type.
  mlir::Value widen(mlir::Value value) {
    mlir::Type f32 = builder.getF32Type();
    return value.getType() == f32
               ? value
               : mlir::arith::ExtFOp::create(builder, loc, f32, value).getResult();
  }
  mlir::Value narrow(mlir::Value value, mlir::Type type) {
    return value.getType() == type
               ? value
               : mlir::arith::TruncFOp::create(builder, loc, type, value).getResult();
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;

private:
  template <typename Op> mlir::Value binary(mlir::Value a, mlir::Value b) {
    return Op::create(builder, loc, a, b, flags);
  }
  static constexpr auto flags =
      mlir::arith::FastMathFlags::reassoc | mlir::arith::FastMathFlags::contract;
};

/// Builds linalg.generic operations over an iteration domain. A tensor is described by the domain's
/// dimensions that index it, in order.
class GenericBuilder {
public:
  using Dims = llvm::SmallVector<int64_t, 4>;
  struct Input {
    mlir::Value value;
    Dims dims;
  };
  /// From the inputs' elements (floats widened to f32) to the result's in f32.
  using Body = llvm::function_ref<mlir::Value(Scalars &, mlir::ValueRange)>;
  /// From the accumulator and the inputs' elements to the accumulator.
  using Combine = llvm::function_ref<mlir::Value(Scalars &, mlir::Value, mlir::ValueRange)>;

  GenericBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  /// Elementwise over a domain of `rank` dimensions, which are also the result's. The inputs give
  /// the sizes.
  mlir::Value map(llvm::StringRef name, int64_t rank, llvm::ArrayRef<Input> inputs,
                  mlir::Type elementType, Body body);
  /// Combines into an f32 tensor over the dimensions `kept`, starting from `init`.
  mlir::Value reduce(llvm::StringRef name, int64_t rank, llvm::ArrayRef<Input> inputs,
                     llvm::ArrayRef<int64_t> kept, double init, Combine combine);

private:
  mlir::Value empty(mlir::Location loc, llvm::ArrayRef<Input> inputs, llvm::ArrayRef<int64_t> kept,
                    mlir::Type elementType);
  mlir::Value build(mlir::Location loc, int64_t rank, llvm::ArrayRef<Input> inputs,
                    llvm::ArrayRef<int64_t> kept, mlir::Value init,
                    llvm::function_ref<mlir::Value(Scalars &, mlir::ValueRange)> body);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// 0, 1, ..., count - 1.
inline GenericBuilder::Dims firstDims(int64_t count) {
  return llvm::to_vector<4>(llvm::seq<int64_t>(0, count));
}

} // namespace braid::nn
#endif // BRAID_DIALECTS_NN_DECOMPOSEBUILDER_H
