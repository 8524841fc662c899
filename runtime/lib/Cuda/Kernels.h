//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A bundle's kernels on a device: the choice of the architecture, and the functions.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_KERNELS_H
#define BRAID_CUDA_KERNELS_H

#include "Device.h"
#include "braid/Runtime/Bundle.h"
#include "braid/Runtime/CudaKernels.h"

#include <map>

namespace braid::runtime::cuda {

/// Whether code for an architecture ("sm_90a") runs on a device of this compute capability.
/// Code of "sm_XY" runs where major is X and minor at least Y, of "sm_XYf" likewise, of "sm_XYa" on
/// XY only. An architecture that is not of this form runs nowhere.
bool runsOn(const std::string &architecture, int major, int minor);

/// The library with code for this device; among several the most specific one.
Result<const KernelLibrary *> chooseLibrary(const Bundle &bundle, const Device &device);

/// The code of a library on one device.
class Kernels {
public:
  static Result<std::unique_ptr<Kernels>> load(const Bundle &bundle, const KernelLibrary &library,
                                               const CudaLaunchTable &table,
                                               const DevicePtr &device);
  /// A function of the launch table, whose parameters are as the table says.
  Result<CUfunction> generated(const CudaKernel &kernel);
  /// A function of library.cuh, which takes one structure of `bytes` bytes.
  Result<CUfunction> library(const std::string &name, size_t bytes);

private:
  Result<CUfunction> find(const std::string &name, const std::vector<size_t> &parameterBytes);

  DevicePtr device;
  std::string member;
  Module module;
  std::map<std::string, CUfunction> found;
};

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_KERNELS_H
