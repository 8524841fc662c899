//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The kernels of int8.cuh as plain loops, and their memory accesses.
//
//===----------------------------------------------------------------------===//
#include "LibraryKernels.h"
#include "braid/Base/RowQuantization.h"

namespace braid::null {

namespace {

int64_t offsetOf(const library::Operand &operand, int dims, int64_t position) {
  int64_t offset = 0;
  for (int d = dims - 1; d >= 0; --d) {
    offset += position % operand.sizes[d] * operand.strides[d];
    position /= operand.sizes[d];
  }
  return offset;
}

void runQuantize(const library::Call &a) {
  const library::Operand &input = a.operands[0], &values = a.operands[1], &scales = a.operands[2];
  const int last = input.rank - 1;
  std::vector<float> x(static_cast<size_t>(input.sizes[last]));
  std::vector<int8_t> quantized(x.size());
  for (int64_t row = 0; row < a.rows; ++row) {
    const float *from = static_cast<const float *>(input.data) + offsetOf(input, last, row);
    auto *to = static_cast<int8_t *>(values.data) + offsetOf(values, last, row);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = from[static_cast<int64_t>(i) * input.strides[last]];
    static_cast<float *>(scales.data)[offsetOf(scales, scales.rank, row)] =
        runtime::quantizeRow(x.data(), input.sizes[last], quantized.data());
    for (size_t i = 0; i < x.size(); ++i)
      to[static_cast<int64_t>(i) * values.strides[last]] = quantized[i];
  }
}

std::string matmulAccesses(const library::Int8Matmul &a, std::vector<Access> &accesses) {
  auto rows = [&](bool writes, const void *data, int64_t count, int64_t columns, int64_t stride,
                  int64_t size) {
    addRows(accesses, writes, data, {count, columns}, {stride * size, size}, size);
  };
  if (a.sums) {
    rows(false, a.sums, a.rows, a.columns, a.columns, 4);
  } else {
    rows(false, a.lhs, a.rows, a.inner, a.lhsStride, 1);
    rows(false, a.rhs, a.columns, a.inner, a.rhsStride, 1);
  }
  rows(false, a.lhsScale, 1, a.rows, a.rows, 4);
  rows(false, a.rhsScale, 1, a.columns, a.columns, 4);
  if (a.bias)
    rows(false, a.bias, 1, a.columns, a.columns, 4);
  rows(true, a.out, a.rows, a.columns, a.outStride, 4);
  return {};
}
void runMatmul(const library::Int8Matmul &a) {
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) {
      int64_t sum = a.sums ? a.sums[i * a.columns + j] : 0;
      for (int64_t k = 0; !a.sums && k < a.inner; ++k)
        sum += a.lhs[i * a.lhsStride + k] * a.rhs[j * a.rhsStride + k];
      volatile float value = static_cast<float>(sum) * a.lhsScale[i]; // no contraction
      value = value * a.rhsScale[j];
      a.out[i * a.outStride + j] = a.bias ? value + a.bias[j] : value;
    }
}

} // namespace

const LibraryKernel *findInt8Kernel(const std::string &name) {
  static const std::map<std::string, LibraryKernel> kernels = {
      {"braid_quantize_rows",
       make("braid_quantize_rows", callAccesses<3, 2>, runQuantize, callThreads)},
      {"braid_int8_matmul",
       make(
           "braid_int8_matmul", matmulAccesses, runMatmul,
           +[](const library::Int8Matmul &a) -> int64_t { return a.rows * a.columns; })},
  };
  auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : &found->second;
}

} // namespace braid::null
