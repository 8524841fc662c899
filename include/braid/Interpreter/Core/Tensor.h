//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Values of the reference interpreter. Floating-point elements are held as f64 and integers as i64,
// whatever their element type in the program, so that a difference between two programs is one in
// meaning, not in rounding. The interpreter's core includes neither MLIR nor LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_CORE_TENSOR_H
#define BRAID_INTERPRETER_CORE_TENSOR_H

#include "braid/Base/HostTensor.h"

#include <memory>
#include <string>
#include <vector>

namespace braid::interp {

using runtime::DType;
using runtime::Result;
using runtime::Status;
using Shape = std::vector<int64_t>;

bool isFloat(DType type);
/// The nearest value of a floating-point type, ties to even, overflow to infinity. Other types: the
/// value itself.
double roundTo(DType type, double value);
int64_t numElements(const Shape &shape);

/// An immutable dense row-major tensor. Copies share the elements, also between threads.
class Tensor {
public:
  Tensor() = default;
  static Tensor ofFloats(DType type, Shape shape, std::vector<double> values);
  static Tensor ofInts(DType type, Shape shape, std::vector<int64_t> values);
  /// Zeros of a floating-point or integer type.
  static Tensor zeros(DType type, Shape shape);
  static Tensor fromHost(const runtime::HostTensor &host);

  DType dtype() const { return type; }
  bool isFloat() const { return interp::isFloat(type); }
  const Shape &shape() const { return dims; }
  size_t rank() const { return dims.size(); }
  int64_t dim(size_t i) const { return dims[i]; }
  int64_t numElements() const { return interp::numElements(dims); }
  /// The elements: floats() of a floating-point tensor, ints() of any other.
  const double *floats() const { return floatData->data(); }
  const int64_t *ints() const { return intData->data(); }

  /// The same elements in another shape of as many elements.
  Tensor reshaped(Shape shape) const;
  /// The elements rounded to the element type, as if they had been stored in memory.
  Tensor roundedToStorage() const;
  /// Rounds to the element type.
  runtime::HostTensor toHost() const;
  /// "f32[2, 3]"
  std::string typeString() const;

private:
  DType type = DType::f32;
  Shape dims;
  std::shared_ptr<const std::vector<double>> floatData;
  std::shared_ptr<const std::vector<int64_t>> intData;
};

/// A box of a tensor; and the inverse, a tensor assembled from boxes. See runtime::localBox.
Tensor extractBox(const Tensor &tensor, const runtime::Box &box);
struct PlacedTensor {
  runtime::Box box;
  Tensor part;
};
/// Later parts overwrite earlier ones where boxes overlap; elements that no box covers are zero.
Tensor assemble(DType type, Shape shape, const std::vector<PlacedTensor> &parts);

/// The first element at which two tensors of equal shape and type differ (NaN equals NaN), or -1.
int64_t firstDifference(const Tensor &a, const Tensor &b);
/// |a - b| / |b| in f64; |a - b| when b is zero. Infinite when either holds a NaN or an infinity
/// the other lacks.
double relativeL2(const Tensor &a, const Tensor &b);

/// Coordinates of a row-major number.
Shape unflatten(int64_t linear, const Shape &shape);

} // namespace braid::interp
#endif // BRAID_INTERPRETER_CORE_TENSOR_H
