//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The interface of a kernel library for the null device, which replaces code for a GPU. It exports
// for each kernel a function of this type under the kernel's name, and `braid_launch_table`, the
// text of the launch table that it was compiled with (CudaKernels.h). It may omit kernels of
// library.cuh: the null device implements them as plain loops.
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
