//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/Core/Kernels.h"

#include <algorithm>

namespace braid::interp {

namespace {

/// A batch of matrices whose elements are read as f64, of whichever type.
class Matrices {
public:
  /// `rows` and `columns` are the stored ones.
  Matrices(const Tensor &tensor, bool transposed)
      : floats(tensor.isFloat() ? tensor.floats() : nullptr),
        ints(tensor.isFloat() ? nullptr : tensor.ints()), columns(tensor.shape().back()),
        rows(tensor.rank() > 1 ? tensor.dim(tensor.rank() - 2) : 1), transposed(transposed) {}

  double at(int64_t batch, int64_t i, int64_t j) const {
    const int64_t index = batch * rows * columns + (transposed ? j * columns + i : i * columns + j);
    return floats ? floats[index] : static_cast<double>(ints[index]);
  }

private:
  const double *floats;
  const int64_t *ints;
  int64_t columns, rows;
  bool transposed;
};

/// The factors of a row or column of operands of i8; 1 without them.
double scaleOf(const Tensor *scales, int64_t i) { return scales ? scales->floats()[i] : 1; }

Status checkOperands(const MatmulOperands &o) {
  const Tensor &lhs = *o.lhs, &rhs = *o.rhs;
  const size_t least = o.transposeLhs ? 2 : 1;
  if (lhs.rank() < least)
    return expects("matmul", "lhs of rank " + std::to_string(least) + " or more", lhs);
  for (const Tensor *operand : {o.lhs, o.rhs})
    if (!operand->isFloat() && !(operand->dtype() == DType::i8 && o.lhsScale && o.rhsScale))
      return expects("matmul", "floating-point operands, or i8 with scales", *operand);
  const int64_t k = lhs.dim(lhs.rank() - (o.transposeLhs ? 2 : 1));
  const bool fits = rhs.rank() == 2 ||
                    (rhs.rank() == lhs.rank() && rhs.rank() > 2 &&
                     std::equal(lhs.shape().begin(), lhs.shape().end() - 2, rhs.shape().begin()));
  if (!fits || rhs.dim(rhs.rank() - (o.transposeRhs ? 1 : 2)) != k)
    return expects("matmul",
                   "rhs of " + std::to_string(k) + " products with the leading dimensions of " +
                       lhs.typeString() + ", or none",
                   rhs);
  return {};
}

} // namespace

Result<Tensor> matmul(const MatmulOperands &o) {
  RETURN_IF_ERROR(checkOperands(o));
  const Tensor &lhs = *o.lhs, &rhs = *o.rhs;
  const size_t rank = lhs.rank();
  const bool oneRhs = rhs.rank() == 2;
  const int64_t k = lhs.dim(rank - (o.transposeLhs ? 2 : 1)),
                n = rhs.dim(rhs.rank() - (o.transposeRhs ? 2 : 1));
  Shape shape = lhs.shape(), columns(oneRhs ? shape.begin() : rhs.shape().begin(),
                                     oneRhs ? shape.begin() : rhs.shape().end() - 2);
  columns.push_back(n);
  if (o.transposeLhs)
    shape[rank - 2] = lhs.shape().back();
  shape.back() = n;
  if (o.bias && (!o.bias->isFloat() || o.bias->shape() != columns))
    return expects("matmul", "a floating-point bias " + runtime::shapeString(columns), *o.bias);
  if (o.addend && (!o.addend->isFloat() || o.addend->shape() != shape))
    return expects("matmul", "a floating-point addend " + runtime::shapeString(shape), *o.addend);

  // Rows of one matrix of rhs; all of them where there is one.
  const bool byRows = oneRhs && !o.transposeLhs;
  const int64_t all = n == 0 ? 0 : numElements(shape) / n,
                m = byRows || rank < 2 ? all : shape[rank - 2], batch = m == 0 ? 0 : all / m;
  const Matrices a(lhs, o.transposeLhs), b(rhs, o.transposeRhs);
  std::vector<double> values(static_cast<size_t>(all * n));

  // A panel of columns is contiguous along them, so that the innermost loop runs over contiguous
  // columns: it vectorizes, and each element is still summed over k in ascending order.
  constexpr int64_t kColumns = 32, kRows = 4;
  std::vector<double> panel(static_cast<size_t>(k * kColumns));
  for (int64_t g = 0; g < batch; ++g) {
    int64_t valid = m;
    if (o.counts) {
      valid = o.counts->ints()[g];
      if (valid < 0 || valid > m)
        return Status::error("matmul expects counts of 0 to " + std::to_string(m) + ", got " +
                             std::to_string(valid) + " of group " + std::to_string(g));
    }
    const int64_t rhsMatrix = oneRhs ? 0 : g, lhsMatrix = byRows ? 0 : g;
    for (int64_t n0 = 0; n0 < n; n0 += kColumns) {
      const int64_t width = std::min(kColumns, n - n0);
      std::fill(panel.begin(), panel.end(), 0.0);
      for (int64_t c = 0; c < width; ++c)
        for (int64_t i = 0; i < k; ++i)
          panel[static_cast<size_t>(i * kColumns + c)] = b.at(rhsMatrix, i, n0 + c);
      for (int64_t m0 = 0; m0 < valid; m0 += kRows) {
        const int64_t rows = std::min(kRows, valid - m0);
        double sums[kRows][kColumns] = {};
        for (int64_t i = 0; i < k; ++i) {
          const double *w = panel.data() + i * kColumns;
          for (int64_t r = 0; r < rows; ++r) {
            const double x = a.at(lhsMatrix, m0 + r, i);
            for (int64_t c = 0; c < kColumns; ++c)
              sums[r][c] += x * w[c];
          }
        }
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < width; ++c) {
            const int64_t row = g * m + m0 + r, column = rhsMatrix * n + n0 + c;
            values[static_cast<size_t>(row * n + n0 + c)] =
                sums[r][c] * scaleOf(o.lhsScale, row) * scaleOf(o.rhsScale, column) +
                (o.bias ? o.bias->floats()[column] : 0.0);
          }
      }
    }
  }
  if (o.addend)
    for (size_t i = 0; i < values.size(); ++i)
      values[i] += o.addend->floats()[i];
  return Tensor::ofFloats(o.type.value_or(lhs.dtype()), std::move(shape), std::move(values));
}

} // namespace braid::interp
