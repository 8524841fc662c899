/*===----------------------------------------------------------------------===*
 * Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===----------------------------------------------------------------------===*/
#include <braid_kernel.h>
#include <math.h>

/* Operands: input [rows, columns], weight [columns], result [rows, columns]. */
void group_rms_norm_f32(void *const *operands, int64_t size, double epsilon) {
  const braid_operand *input = operands[0], *weight = operands[1], *result = operands[2];
  const int64_t rows = braid_size(input, 0), columns = braid_size(input, 1);
  const float *scale = braid_data(const float, weight);
  for (int64_t row = 0; row < rows; ++row) {
    const float *in = braid_data(const float, input) + row * braid_stride(input, 2, 0);
    float *out = braid_data(float, result) + row * braid_stride(result, 2, 0);
    for (int64_t begin = 0; begin < columns; begin += size) {
      float sum = 0;
      for (int64_t i = begin; i < begin + size; ++i)
        sum += in[i] * in[i];
      const float factor = 1 / sqrtf(sum / (float)size + (float)epsilon);
      for (int64_t i = begin; i < begin + size; ++i)
        out[i] = in[i] * factor * scale[i];
    }
  }
}
