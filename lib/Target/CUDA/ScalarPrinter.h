//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Scalar operations as C++ expressions.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TARGET_CUDA_SCALARPRINTER_H
#define BRAID_LIB_TARGET_CUDA_SCALARPRINTER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace braid::cuda {

/// The precedence of an expression: smaller binds tighter, as in C++.
enum class Binding {
  Primary = 1,
  Unary = 3,
  Product = 5,
  Sum = 6,
  Relation = 9,
  Equality = 10,
  And = 11,
  Xor = 12,
  Or = 13,
  LogicalAnd = 14,
  LogicalOr = 15,
  Conditional = 16
};

struct Expression {
  std::string text;
  Binding binding = Binding::Primary;
  /// The text as an operand in a context of precedence `outer`, in parentheses if necessary.
  std::string in(Binding outer) const;
  /// The same, in parentheses unless it binds tighter than `outer`.
  std::string inTighterThan(Binding outer) const;
  /// A name, an element or a constant: may be written more than once.
  bool isTrivial() const;
};

/// The C++ type of a value in registers or memory, empty when there is none.
llvm::StringRef typeName(mlir::Type type);
/// The constant's value. Null when the type has no C++ form.
mlir::FailureOr<Expression> printConstant(mlir::Attribute value);

/// Identifiers of one kernel.
class Names {
public:
  Names();
  /// A unique identifier derived from `base`: "encoder.layer.0.norm" gives "norm".
  std::string fresh(llvm::StringRef base);
  /// The name in the location, else `otherwise`.
  std::string fresh(mlir::Location loc, llvm::StringRef otherwise);

private:
  llvm::StringSet<> used;
};

/// Prints the computation of a linalg op for one element.
class ScalarPrinter {
public:
  /// Declarations are written to `os`, each after `indent`.
  ScalarPrinter(llvm::raw_ostream &os, Names &names, std::string indent)
      : os(os), names(names), indent(std::move(indent)) {}

  /// Prints the operations of a region but `skipped`; its arguments, and what linalg.index yields
  /// for a dimension, are given. Reports operations without a C++ form.
  mlir::LogicalResult printRegion(mlir::linalg::GenericOp generic,
                                  llvm::ArrayRef<Expression> arguments,
                                  llvm::function_ref<Expression(int64_t)> index,
                                  mlir::Operation *skipped = nullptr);
  /// The expression of a value in the region that was printed last.
  mlir::FailureOr<Expression> get(mlir::Value value);
  /// Assigns `expression` to a new name.
  Expression declare(mlir::Type type, const Expression &expression, const std::string &name);

private:
  mlir::FailureOr<Expression> print(mlir::Operation &op);
  mlir::FailureOr<Expression> printArithmetic(mlir::Operation &op,
                                              llvm::ArrayRef<Expression> operands);
  mlir::FailureOr<Expression> printCast(mlir::Operation &op, const Expression &operand);
  mlir::FailureOr<Expression> printCompare(mlir::Operation &op,
                                           llvm::ArrayRef<Expression> operands);
  mlir::FailureOr<Expression> printCall(mlir::Operation &op, llvm::ArrayRef<Expression> operands);

  llvm::raw_ostream &os;
  Names &names;
  std::string indent;
  llvm::DenseMap<mlir::Value, Expression> values;
};

} // namespace braid::cuda
#endif // BRAID_LIB_TARGET_CUDA_SCALARPRINTER_H
