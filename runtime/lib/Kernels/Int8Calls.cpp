//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// quantize_rows and matmuls of i8 on the CPU.
//
//===----------------------------------------------------------------------===//
#include "Int8.h"
#include "Operations.h"
#include "braid/Base/MatmulForm.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>

namespace braid::runtime {

namespace {

/// Offset of a row in elements; all dimensions but the last `inner` count rows.
int64_t rowOffset(const Tensor &tensor, int64_t row, size_t inner) {
  int64_t offset = 0;
  for (size_t d = tensor.shape.size() - inner; d-- > 0; row /= tensor.shape[d])
    offset += row % tensor.shape[d] * tensor.strides[d];
  return offset;
}

class QuantizeRows : public LibraryRun {
public:
  QuantizeRows(const LibraryArguments &a, int64_t threads)
      : input(a.tensor("input")), values(a.tensor("values")), scales(a.tensor("scales")),
        rows(a.rows()), members(std::min(rows, shareOut(a.kernel->flops(a), 1 << 16, threads))) {}

  void run(const NamedCommand &, ExecutionContext &context) const override {
    const Int8Kernels &kernels = int8Kernels();
    context.share(members, [&](int64_t member) {
      const Range part = partOf(rows, member, members);
      for (int64_t row = part.begin; row < part.end; ++row)
        scales.as<float>()[rowOffset(scales, row, 0)] =
            kernels.quantizeRow(input.as<float>() + rowOffset(input, row, 1), input.shape.back(),
                                values.as<int8_t>() + rowOffset(values, row, 1));
    });
  }

private:
  Tensor input, values, scales;
  int64_t rows, members;
};

/// The members of a team take parts of the rows or of the columns.
class Int8MatmulRun : public LibraryRun {
public:
  Int8MatmulRun(const Int8Matrices &matrices, double flops, int64_t threads)
      : matrices(matrices), members(shareOut(flops, 1 << 19, threads)),
        byRows(matrices.first.m >= members * 16) {}

  void run(const NamedCommand &, ExecutionContext &context) const override {
    const Int8Kernels &kernels = int8Kernels();
    context.share(members, [&](int64_t member) {
      std::vector<std::byte> &scratch = context.scratch[static_cast<size_t>(member)];
      const auto bytes = static_cast<size_t>(kernels.scratchBytes(matrices.first.k)) + 64;
      if (scratch.size() < bytes)
        scratch.resize(bytes);
      auto *aligned = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) &
                                               ~uintptr_t(63));
      for (int64_t i = 0; i < matrices.count; ++i)
        if (const Int8Matmul part = partFor(member, i); part.m > 0 && part.n > 0)
          kernels.matmul(part, aligned);
    });
  }

private:
  Int8Matmul partFor(int64_t member, int64_t matrix) const {
    const Int8Matmul &whole = matrices.first;
    Int8Matmul part = whole;
    part.lhs += matrix * matrices.lhsBatch;
    part.out += matrix * matrices.outBatch;
    part.lhsScale += matrix * whole.m;
    const Range range = partOf(byRows ? whole.m : whole.n, member, members);
    if (byRows) {
      part.m = range.end - range.begin;
      part.lhs += range.begin * whole.lhsStride;
      part.out += range.begin * whole.outStride;
      part.lhsScale += range.begin;
    } else {
      part.n = range.end - range.begin;
      part.rhs += range.begin * whole.rhsStride;
      part.out += range.begin;
      part.rhsScale += range.begin;
      part.bias = part.bias ? part.bias + range.begin : nullptr;
    }
    return part;
  }

  Int8Matrices matrices;
  int64_t members;
  bool byRows;
};

Status expectContiguous(const LibraryArguments &a, const char *operand) {
  if (!a.has(operand) || a[a.place(operand)].isContiguous())
    return {};
  const OperandType &type = a[a.place(operand)];
  return Status::error(operand, ": expects a contiguous tensor, got shape ",
                       shapeString(type.shape), " and strides ", shapeString(type.strides));
}

Status expectRows(const LibraryArguments &a, const char *operand) {
  const OperandType &type = a[a.place(operand)];
  if (type.shape.back() == 1 || type.strides.back() == 1)
    return {};
  return Status::error("expects a contiguous last dimension of ", operand, " ",
                       shapeString(type.shape), ", got strides ", shapeString(type.strides));
}

} // namespace

Result<LibraryCommand> resolveQuantizeRows(const LibraryArguments &a, int64_t threads) {
  for (const char *operand : {"input", "values"})
    RETURN_IF_ERROR(expectRows(a, operand));
  if (const DType type = a[0].dtype; type != DType::f32)
    return Status::error("quantize_rows of ", name(type), " is not implemented on target 'cpu'");
  return LibraryCommand(std::make_shared<QuantizeRows>(a, threads));
}

Result<Int8Matrices> int8Matrices(const LibraryArguments &a, const char *target) {
  ASSIGN_OR_RETURN(const MatmulForm form, MatmulForm::of(a));
  if (const DType type = a[MatmulForm::outOperand].dtype;
      type != DType::f32 || (a.has("bias") && a.tensor("bias").dtype != DType::f32))
    return Status::error("matmul of i8 to ", name(type), " is not implemented on target '", target,
                         "'");
  if (form.transposeLhs || !form.transposeRhs || form.accumulate || a.has("counts") ||
      a[MatmulForm::rhsOperand].rank() != 2)
    return Status::error("matmul of i8 is implemented on target '", target,
                         "' for lhs [rows, k] and one rhs [columns, k], without accumulate and "
                         "counts");
  for (const char *operand : {"lhs", "rhs", "out"})
    RETURN_IF_ERROR(expectRows(a, operand));
  for (const char *operand : {"bias", "lhs_scale", "rhs_scale"})
    RETURN_IF_ERROR(expectContiguous(a, operand));
  Int8Matrices matrices;
  matrices.first = {a.tensor("lhs").as<int8_t>(),
                    a.tensor("rhs").as<int8_t>(),
                    a.tensor("lhs_scale").as<float>(),
                    a.tensor("rhs_scale").as<float>(),
                    a.has("bias") ? a.tensor("bias").as<float>() : nullptr,
                    a.tensor("out").as<float>(),
                    form.m,
                    form.n,
                    form.k,
                    form.lhs.stride,
                    form.rhs.stride,
                    form.out.stride};
  matrices.count = form.batch;
  matrices.lhsBatch = form.lhs.batch;
  matrices.outBatch = form.out.batch;
  return matrices;
}

Result<LibraryCommand> resolveInt8Matmul(const LibraryArguments &a, int64_t threads) {
  ASSIGN_OR_RETURN(const Int8Matrices matrices, int8Matrices(a, "cpu"));
  return LibraryCommand(std::make_shared<Int8MatmulRun>(matrices, a.kernel->flops(a), threads));
}

} // namespace braid::runtime
