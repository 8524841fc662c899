//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matmuls of 8-bit integers around what cuBLASLt multiplies: rows are quantized before, and sums
// scaled after it. Part of library.cuh. All arithmetic is rounded as on the CPU, with the same bits.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace braid {
namespace library {

/// Quantizes a row, as braid/Base/RowQuantization.h defines it.
__device__ __forceinline__ void quantize_row(const Call &a) {
  const long long row = thread_index() / 32;
  const int lane = threadIdx.x % 32;
  if (row >= a.rows) // whole warps
    return;
  const Operand &input = a.operands[0], &values = a.operands[1], &scales = a.operands[2];
  const int last = input.rank - 1;
  const long long count = input.sizes[last];
  const float *from = (const float *)input.data + row_offset(input, row);
  signed char *to = (signed char *)values.data + row_offset(values, row);
  float most = 0.0f; // NaN if an element is
  for (long long i = lane; i < count; i += 32)
    most = maximum(most, fabsf(from[i * input.strides[last]]));
  for (int distance = 16; distance; distance /= 2)
    most = maximum(most, __shfl_xor_sync(0xffffffffu, most, distance));
  const bool finite = most < infinity();
  float scale = __fdiv_rn(most, 127.0f);
  if (!finite || scale < 0x1p-126f)
    scale = 0.0f;
  for (long long i = lane; i < count; i += 32)
    to[i * values.strides[last]] =
        scale == 0.0f ? 0
                      : (signed char)__float2int_rn(__fdiv_rn(from[i * input.strides[last]], scale));
  if (lane == 0)
    ((float *)scales.data)[element_offset(scales, row)] = finite ? scale : nan();
}

__device__ __forceinline__ int sum_of_products(const Int8Matmul &a, long long row,
                                               long long column) {
  const signed char *lhs = a.lhs + row * a.lhsStride, *rhs = a.rhs + column * a.rhsStride;
  int sum = 0;
  for (long long i = 0; i < a.inner; ++i)
    sum += int(lhs[i]) * int(rhs[i]);
  return sum;
}

} // namespace library
} // namespace braid

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_quantize_rows(const braid::library::Call a) {
  braid::library::quantize_row(a);
}

extern "C" __global__ void __launch_bounds__(braid::library::kThreads)
    braid_int8_matmul(const braid::library::Int8Matmul a) {
  const long long i = braid::library::thread_index();
  if (i >= a.rows * a.columns)
    return;
  const long long row = i / a.columns, column = i % a.columns;
  const int sum = a.sums ? a.sums[i] : braid::library::sum_of_products(a, row, column);
  float value = __fmul_rn(__fmul_rn(__int2float_rn(sum), a.lhsScale[row]), a.rhsScale[column]);
  if (a.bias)
    value = __fadd_rn(value, a.bias[column]);
  a.out[row * a.outStride + column] = value;
}
