//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// arith and math operations as functions on scalars.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_INTERPRETER_SCALARFUNCTIONS_H
#define BRAID_LIB_INTERPRETER_SCALARFUNCTIONS_H

#include "braid/Interpreter/EvaluatorTable.h"

#include <optional>

namespace braid::interp {

/// An element of any type: `f` when that is a floating-point type, else `i` (sign-extended; i1 is 0
/// or 1).
struct Scalar {
  double f = 0;
  int64_t i = 0;
};
using ScalarFn = std::function<void(const Scalar *operands, Scalar &result)>;

/// The function of an arith or math operation with one result; null when it is not supported.
ScalarFn scalarFunction(mlir::Operation *op);
/// The value of a number; nullopt for another attribute.
std::optional<Scalar> constantScalar(mlir::Attribute value);

Scalar elementAt(const Tensor &tensor, int64_t index);
/// Collects elements into a tensor of a type.
class ElementWriter {
public:
  ElementWriter(DType type, int64_t count);
  /// Starts from a tensor's elements.
  explicit ElementWriter(const Tensor &init);
  Scalar get(int64_t index) const {
    return floating ? Scalar{floats[index], 0} : Scalar{0, ints[index]};
  }
  void set(int64_t index, const Scalar &value) {
    if (floating)
      floats[index] = value.f;
    else
      ints[index] = value.i;
  }
  Tensor finish(Shape shape) &&;

private:
  DType type;
  bool floating;
  std::vector<double> floats;
  std::vector<int64_t> ints;
};

} // namespace braid::interp
#endif // BRAID_LIB_INTERPRETER_SCALARFUNCTIONS_H
