//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/MatmulForm.h"

#include "braid/Base/RowQuantization.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>

namespace braid::runtime {

namespace {

using Shape = std::vector<int64_t>;

/// Dimensions that one stride leads through, in each of several operands.
struct Level {
  int64_t size;
  std::vector<int64_t> strides;
};

/// The first `count` dimensions, which are the same in all operands, from the innermost level to
/// the outermost.
std::vector<Level> levelsOf(const std::vector<const OperandType *> &operands, size_t count) {
  std::vector<Level> levels;
  for (size_t d = count; d-- > 0;) {
    const int64_t size = operands[0]->shape[d];
    if (size == 1)
      continue;
    auto continues = [&] {
      for (size_t i = 0; i < operands.size(); ++i)
        if (checkedMul(levels.back().strides[i], levels.back().size) != operands[i]->strides[d])
          return false;
      return true;
    };
    if (!levels.empty() && continues()) {
      levels.back().size *= size;
      continue;
    }
    levels.push_back({size, {}});
    for (const OperandType *operand : operands)
      levels.back().strides.push_back(operand->strides[d]);
  }
  return levels;
}

class Builder {
public:
  explicit Builder(const LibraryCall &call)
      : call(call), lhs(call[F::lhsOperand]), rhs(call[F::rhsOperand]), out(call[F::outOperand]) {}

  Result<MatmulForm> build() {
    RETURN_IF_ERROR(readIntegers());
    RETURN_IF_ERROR(checkShapes());
    RETURN_IF_ERROR(checkCounts());
    RETURN_IF_ERROR(checkScales());
    RETURN_IF_ERROR(findLevels());
    return form;
  }

private:
  using F = MatmulForm;

  Status readIntegers() {
    bool *flags[] = {&form.transposeLhs, &form.transposeRhs, &form.accumulate};
    for (size_t i = 0; i < std::size(flags); ++i) {
      const int64_t value = call.integers[i];
      if (value != 0 && value != 1)
        return Status::error("expects ", call.kernel->integers[i], " of 0 or 1, got ", value);
      *flags[i] = value == 1;
    }
    return {};
  }

  Status expect(F::Operand operand, const Shape &shape) const {
    return call.has(operand)
               ? expectShape(call.kernel->operands[operand].name, call[operand], shape)
               : Status();
  }

  Status checkShapes() {
    const size_t rank = lhs.rank(), least = form.transposeLhs ? 2 : 1;
    if (rank < least)
      return Status::error("lhs: expects at least ", least, " dimension", least == 1 ? "" : "s",
                           form.transposeLhs ? ", got shape " : "",
                           form.transposeLhs ? shapeString(lhs.shape) : "");
    oneRhs = rhs.rank() == 2;
    if (!oneRhs && (rhs.rank() != rank || rank < 3))
      return Status::error("rhs: expects 2 dimensions, or the leading ones of lhs, got shape ",
                           shapeString(rhs.shape));
    form.k = lhs.shape[form.transposeLhs ? rank - 2 : rank - 1];
    form.n = rhs.shape[form.transposeRhs ? rhs.rank() - 2 : rhs.rank() - 1];
    Shape expected = oneRhs ? Shape() : Shape(lhs.shape.begin(), lhs.shape.end() - 2);
    columns = expected; // one vector for each matrix
    columns.push_back(form.n);
    expected.push_back(form.transposeRhs ? form.n : form.k);
    expected.push_back(form.transposeRhs ? form.k : form.n);
    RETURN_IF_ERROR(expect(F::rhsOperand, expected));
    expected = lhs.shape;
    if (form.transposeLhs)
      expected[rank - 2] = lhs.shape.back();
    expected.back() = form.n;
    return firstOf({expect(F::outOperand, expected), expect(F::biasOperand, columns)});
  }

  Status checkCounts() const {
    if (!call.has(F::countsOperand))
      return {};
    if (oneRhs || lhs.rank() != 3 || form.transposeLhs)
      return Status::error("counts: expects lhs [groups, capacity, k] and rhs of as many groups, "
                           "got shapes ",
                           shapeString(lhs.shape), " and ", shapeString(rhs.shape),
                           form.transposeLhs ? " with transpose_lhs" : "");
    if (form.accumulate)
      return Status::error("counts: expects accumulate of 0, got 1");
    return expect(F::countsOperand, {lhs.shape[0]});
  }

  Status checkScales() const {
    const bool narrow = lhs.dtype == DType::i8;
    if (narrow && form.k > kMaxInt8Products)
      return Status::error("lhs: expects at most ", kMaxInt8Products,
                           " products of i8, whose sum is within 32 bits, got ", form.k);
    for (F::Operand scale : {F::lhsScale, F::rhsScale}) {
      const char *name = call.kernel->operands[scale].name;
      if (narrow && !call.has(scale))
        return Status::error("lhs: expects lhs_scale and rhs_scale for i8, got no ", name);
      if (!narrow && call.has(scale))
        return Status::error(name, ": expects lhs of i8, got ", runtime::name(lhs.dtype));
    }
    return firstOf({expect(F::lhsScale, Shape(out.shape.begin(), out.shape.end() - 1)),
                    expect(F::rhsScale, columns)});
  }

  static F::Matrix matrixOf(const OperandType &operand, int64_t rows) {
    // One row may have any stride.
    return {rows, operand.shape.back(), operand.shape.back(), 0};
  }

  Status findLevels() {
    // Rows of lhs are walked as one with the dimensions around them, where each has its own row of
    // out and the matrix of rhs is the same.
    const bool separate = form.transposeLhs || !oneRhs;
    const size_t rank = lhs.rank(), leading = rank - (separate ? 2 : 1);
    std::vector<const OperandType *> operands{&lhs, &out};
    if (!oneRhs)
      operands.push_back(&rhs);
    std::vector<Level> levels = levelsOf(operands, leading);
    if (separate)
      form.m = form.transposeLhs ? lhs.shape.back() : lhs.shape[rank - 2];
    else if (!levels.empty())
      form.m = levels.front().size;
    form.lhs = matrixOf(lhs, form.transposeLhs ? form.k : form.m);
    form.rhs = matrixOf(rhs, form.transposeRhs ? form.n : form.k);
    form.out = matrixOf(out, form.m);
    if (form.rhs.rows > 1)
      form.rhs.stride = rhs.strides[rhs.rank() - 2];
    if (separate) {
      if (form.lhs.rows > 1)
        form.lhs.stride = lhs.strides[rank - 2];
      if (form.m > 1)
        form.out.stride = out.strides[rank - 2];
    } else if (!levels.empty()) {
      form.lhs.stride = levels.front().strides[0];
      form.out.stride = levels.front().strides[1];
      levels.erase(levels.begin());
    }
    if (levels.size() > 1)
      return strideError(operands);
    if (levels.empty())
      return {};
    form.batch = levels[0].size;
    form.lhs.batch = levels[0].strides[0];
    form.out.batch = levels[0].strides[1];
    if (oneRhs)
      return {};
    form.rhs.batch = levels[0].strides[2];
    return findBiasBatch(leading);
  }

  Status findBiasBatch(size_t leading) {
    if (!call.has(F::biasOperand))
      return {};
    const OperandType &bias = call[F::biasOperand];
    std::vector<Level> levels = levelsOf({&bias}, leading);
    if (levels.size() > 1)
      return Status::error("bias: expects leading dimensions that can be walked as one, got shape ",
                           shapeString(bias.shape), " and strides ", shapeString(bias.strides));
    form.biasBatch = levels.empty() ? 0 : levels[0].strides[0];
    return {};
  }

  Status strideError(const std::vector<const OperandType *> &operands) const {
    std::string strides;
    for (size_t i = 0; i < operands.size(); ++i)
      strides += (i == 0                     ? ""
                  : i + 1 == operands.size() ? " and "
                                             : ", ") +
                 shapeString(operands[i]->strides);
    return Status::error("lhs: expects leading dimensions that can be walked ",
                         form.transposeLhs || !oneRhs ? "as one" : "in two levels",
                         " together with those of ", oneRhs ? "out" : "out and rhs", ", got shape ",
                         shapeString(lhs.shape), " and strides ", strides);
  }

  const LibraryCall &call;
  const OperandType &lhs, &rhs, &out;
  bool oneRhs = true;
  Shape columns; ///< the shape of a bias
  MatmulForm form;
};

} // namespace

Result<MatmulForm> MatmulForm::of(const LibraryCall &call) { return Builder(call).build(); }

} // namespace braid::runtime
