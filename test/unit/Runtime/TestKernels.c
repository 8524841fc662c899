/*
 * Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A kernel library for tests of the loader; it is compiled twice.
 */
#include <stdint.h>

struct Memref {
  float *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
};

void shift_by_one(void *const *descriptors);

void shift_by_one(void *const *descriptors) {
  const struct Memref *in = descriptors[0], *out = descriptors[1];
  for (int64_t i = 0; i < in->sizes[0]; ++i)
    for (int64_t j = 0; j < in->sizes[1]; ++j)
#ifdef BRAID_TEST_ADD
      out->aligned[i * out->strides[0] + j] = in->aligned[i * in->strides[0] + j] + 1;
#else
      out->aligned[i * out->strides[0] + j] = in->aligned[i * in->strides[0] + j] - 1;
#endif
}
