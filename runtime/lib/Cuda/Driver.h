//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The functions of the CUDA driver in use. Types and values are those of cuda.h, which the build
// does not need; test/unit/Runtime/CudaAbiTest.cpp compares them where cuda.h exists.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_DRIVER_H
#define BRAID_CUDA_DRIVER_H

#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/SharedLibrary.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace braid::runtime::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;

constexpr CUresult kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotReady = 600,
                   kUnknownError = 999;
constexpr int kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76; // device attributes
constexpr int kMaxDynamicSharedBytes = 8;                                 // function attribute
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDefault = 0, kEventDisableTiming = 2;
constexpr unsigned kEventRecordDefault = 0, kEventRecordExternal = 1;
constexpr unsigned kHostAllocPortable = 1;
constexpr int kCaptureThreadLocal = 1;

#define BRAID_CUDA_DRIVER_SYMBOLS(X)                                                               \
  X(cuInit, CUresult(unsigned))                                                                    \
  X(cuGetErrorName, CUresult(CUresult, const char **))                                             \
  X(cuGetErrorString, CUresult(CUresult, const char **))                                           \
  X(cuDeviceGetCount, CUresult(int *))                                                             \
  X(cuDeviceGet, CUresult(CUdevice *, int))                                                        \
  X(cuDeviceGetName, CUresult(char *, int, CUdevice))                                              \
  X(cuDeviceGetAttribute, CUresult(int *, int, CUdevice))                                          \
  X(cuDevicePrimaryCtxRetain, CUresult(CUcontext *, CUdevice))                                     \
  X(cuDevicePrimaryCtxRelease_v2, CUresult(CUdevice))                                              \
  X(cuCtxSetCurrent, CUresult(CUcontext))                                                          \
  X(cuModuleLoadData, CUresult(CUmodule *, const void *))                                          \
  X(cuModuleUnload, CUresult(CUmodule))                                                            \
  X(cuModuleGetFunction, CUresult(CUfunction *, CUmodule, const char *))                           \
  X(cuFuncSetAttribute, CUresult(CUfunction, int, int))                                            \
  X(cuFuncGetParamInfo, CUresult(CUfunction, size_t, size_t *, size_t *))                          \
  X(cuMemAlloc_v2, CUresult(CUdeviceptr *, size_t))                                                \
  X(cuMemFree_v2, CUresult(CUdeviceptr))                                                           \
  X(cuMemHostAlloc, CUresult(void **, size_t, unsigned))                                           \
  X(cuMemFreeHost, CUresult(void *))                                                               \
  X(cuMemcpyAsync, CUresult(CUdeviceptr, CUdeviceptr, size_t, CUstream))                           \
  X(cuMemsetD8Async, CUresult(CUdeviceptr, unsigned char, size_t, CUstream))                       \
  X(cuStreamCreateWithPriority, CUresult(CUstream *, unsigned, int))                               \
  X(cuStreamDestroy_v2, CUresult(CUstream))                                                        \
  X(cuStreamQuery, CUresult(CUstream))                                                             \
  X(cuStreamWaitEvent, CUresult(CUstream, CUevent, unsigned))                                      \
  X(cuStreamBeginCapture_v2, CUresult(CUstream, int))                                              \
  X(cuStreamEndCapture, CUresult(CUstream, CUgraph *))                                             \
  X(cuGraphInstantiateWithFlags, CUresult(CUgraphExec *, CUgraph, unsigned long long))             \
  X(cuGraphLaunch, CUresult(CUgraphExec, CUstream))                                                \
  X(cuGraphDestroy, CUresult(CUgraph))                                                             \
  X(cuGraphExecDestroy, CUresult(CUgraphExec))                                                     \
  X(cuEventCreate, CUresult(CUevent *, unsigned))                                                  \
  X(cuEventDestroy_v2, CUresult(CUevent))                                                          \
  X(cuEventRecordWithFlags, CUresult(CUevent, CUstream, unsigned))                                 \
  X(cuEventQuery, CUresult(CUevent))                                                               \
  X(cuEventElapsedTime, CUresult(float *, CUevent, CUevent))                                       \
  X(cuLaunchKernel, CUresult(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,         \
                             unsigned, unsigned, CUstream, void **, void **))

class Driver {
public:
  /// Loads the driver and starts it. `path`: empty for the system's.
  static Result<std::shared_ptr<const Driver>> load(const std::string &path);

  BRAID_CUDA_DRIVER_SYMBOLS(BRAID_DECLARE_SYMBOL)

  /// The error of a call's result: "the CUDA driver failed in cuMemAlloc: out of memory
  /// (CUDA_ERROR_OUT_OF_MEMORY)".
  Status check(CUresult result, const char *call) const;

private:
  void findAll(Status &status);
  SharedLibrary library;
};

/// Calls a function of a driver, NCCL or cuBLASLt and returns its error from the calling function.
#define BRAID_CUDA_TRY(driver, function, ...)                                                      \
  RETURN_IF_ERROR((driver).check((driver).function(__VA_ARGS__), #function))

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_DRIVER_H
