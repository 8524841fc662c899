//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels for the null device.
//
//===----------------------------------------------------------------------===//
#include "../../lib/NullDevice/NullLaunch.h"

extern "C" {

extern const char braid_launch_table[];
const char braid_launch_table[] = R"({
  "format_version": 1, "architecture": "sm_90a",
  "kernels": [{
    "symbol": "add_bias", "function": "braid_add_bias", "threads": 32, "shared_bytes": 0,
    "items_per_row": 24, "items_per_block": 32, "outputs": 1,
    "operands": [
      {"name": "x", "dtype": "f32", "shape": [-1, 24], "alignment": 16},
      {"name": "bias", "dtype": "f32", "shape": [24], "alignment": 16},
      {"name": "y", "dtype": "f32", "shape": [-1, 24], "alignment": 16}]
  }, {
    "symbol": "sleeper", "function": "braid_sleeper", "threads": 32, "shared_bytes": 0,
    "items_per_row": 1, "items_per_block": 32, "outputs": 1,
    "operands": [
      {"name": "x", "dtype": "f32", "shape": [1, 64], "alignment": 4},
      {"name": "slept", "dtype": "f32", "shape": [1, 1], "alignment": 4}]
  }]
})";

/// y[row, column] = x[row, column] + bias[column], as on a GPU: one element per thread.
void braid_add_bias(const BraidNullLaunch *launch) {
  void **p = launch->parameters;
  const float *x = *static_cast<const float **>(p[0]);
  const auto xStride = *static_cast<const long long *>(p[1]);
  const float *bias = *static_cast<const float **>(p[2]);
  float *y = *static_cast<float **>(p[3]);
  const auto yStride = *static_cast<const long long *>(p[4]);
  const auto rows = *static_cast<const unsigned *>(p[5]);
  for (unsigned item = 0; item < launch->grid * launch->block; ++item) {
    const unsigned row = item / 24, column = item % 24;
    if (row < rows)
      y[row * yStride + column] = x[row * xStride + column] + bias[column];
  }
}

/// The device runs commands at once, and reports what might run in another order.
void braid_sleeper(const BraidNullLaunch *) {}

} // extern "C"
