//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a library of kernels for the null device exports, where code for a GPU stands elsewhere: for
// each kernel a function of this type under the kernel's name, and `braid_launch_table`, the text
// of the launch table that it was made with (CudaKernels.h). Kernels of library.cuh may be missing:
// the null device has them in plain loops.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_NULLLAUNCH_H
#define BRAID_TEST_NULLLAUNCH_H

struct BraidNullLaunch {
  unsigned grid, block, sharedBytes;
  void **parameters; /* addresses of the values, as cuLaunchKernel takes them */
};
typedef void (*BraidNullKernel)(const struct BraidNullLaunch *);

#endif /* BRAID_TEST_NULLLAUNCH_H */
