/*===----------------------------------------------------------------------===*
 * Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===----------------------------------------------------------------------===*
 *
 * For kernels written by hand, in C or C++:
 *
 *   void my_kernel(void *const *operands, int64_t first_scalar, double second_scalar);
 *
 * operands[i] points at a braid_operand: the operation's operands, then its results. Operands are
 * only read, results only written, and no two overlap. A row operand is a range of its rows, whose
 * number is its size in dimension 0; several threads may run the kernel on different ranges at
 * once. The last dimension is contiguous.
 *
 * A kernel may call functions of the C library and of libm, and keeps no state.
 */
#ifndef BRAID_KERNEL_H
#define BRAID_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What follows in memory are the sizes and then the strides, one of each for every dimension. */
typedef struct braid_operand {
  void *allocated;
  void *data;
  int64_t offset; /* in elements, from data */
} braid_operand;

/* Elements in a dimension. */
static inline int64_t braid_size(const braid_operand *operand, int dimension) {
  return (&operand->offset)[1 + dimension];
}
/* Elements from one index of a dimension to the next, of an operand of so many dimensions. */
static inline int64_t braid_stride(const braid_operand *operand, int dimensions, int dimension) {
  return (&operand->offset)[1 + dimensions + dimension];
}
/* The first element: braid_data(const float, operand). */
#define braid_data(type, operand) ((type *)(operand)->data + (operand)->offset)

#ifdef __cplusplus
}
#endif
#endif /* BRAID_KERNEL_H */
