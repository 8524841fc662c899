//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The runtime's declarations of CUDA's driver, compared with cuda.h if installed.
//
//===----------------------------------------------------------------------===//
#include "../../../runtime/lib/Cuda/Driver.h"

#include <cuda.h>

namespace {

namespace own = braid::runtime::cuda;

template <typename R, typename... A, typename S, typename... B>
constexpr bool sameSizes(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) == sizeof...(B))
    return sizeof(R) == sizeof(S) && ((sizeof(A) == sizeof(B)) && ...);
  return false;
}

using namespace own; // for the types in the list
#define BRAID_COMPARE(name, ...)                                                                   \
  static_assert(sameSizes(static_cast<decltype(&::name)>(nullptr),                                 \
                          static_cast<std::add_pointer_t<__VA_ARGS__>>(nullptr)),                  \
                #name " is another function in cuda.h");
namespace compared {
using CUresult = own::CUresult;
using CUdevice = own::CUdevice;
using CUdeviceptr = own::CUdeviceptr;
using CUcontext = own::CUcontext;
using CUmodule = own::CUmodule;
using CUfunction = own::CUfunction;
using CUstream = own::CUstream;
using CUevent = own::CUevent;
using CUgraph = own::CUgraph;
using CUgraphExec = own::CUgraphExec;
BRAID_CUDA_DRIVER_SYMBOLS(BRAID_COMPARE)
} // namespace compared

static_assert(own::kSuccess == CUDA_SUCCESS && own::kInvalidValue == CUDA_ERROR_INVALID_VALUE &&
              own::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY &&
              own::kNotReady == CUDA_ERROR_NOT_READY && own::kUnknownError == CUDA_ERROR_UNKNOWN);
static_assert(own::kComputeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              own::kComputeCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(own::kMaxDynamicSharedBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(own::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(own::kEventDefault == CU_EVENT_DEFAULT &&
              own::kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(own::kEventRecordDefault == CU_EVENT_RECORD_DEFAULT &&
              own::kEventRecordExternal == CU_EVENT_RECORD_EXTERNAL);
static_assert(own::kHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(own::kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

} // namespace
