//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The functions of NCCL in use, as in Driver.h.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_NCCL_H
#define BRAID_CUDA_NCCL_H

#include "Driver.h"

namespace braid::runtime::cuda {

using ncclResult_t = int;
using ncclComm_t = struct ncclComm *;

// ncclDataType_t and ncclRedOp_t.
constexpr int kNcclInt8 = 0, kNcclInt32 = 2, kNcclInt64 = 4, kNcclFloat16 = 6, kNcclFloat32 = 7,
              kNcclFloat64 = 8, kNcclBfloat16 = 9;
constexpr int kNcclSum = 0, kNcclMax = 2, kNcclMin = 3;

#define BRAID_NCCL_SYMBOLS(X)                                                                      \
  X(ncclGetErrorString, const char *(ncclResult_t))                                                \
  X(ncclGetLastError, const char *(ncclComm_t))                                                    \
  X(ncclCommInitAll, ncclResult_t(ncclComm_t *, int, const int *))                                 \
  X(ncclCommDestroy, ncclResult_t(ncclComm_t))                                                     \
  X(ncclCommAbort, ncclResult_t(ncclComm_t))                                                       \
  X(ncclCommGetAsyncError, ncclResult_t(ncclComm_t, ncclResult_t *))                               \
  X(ncclGroupStart, ncclResult_t())                                                                \
  X(ncclGroupEnd, ncclResult_t())                                                                  \
  X(ncclAllReduce, ncclResult_t(const void *, void *, size_t, int, int, ncclComm_t, CUstream))     \
  X(ncclReduceScatter, ncclResult_t(const void *, void *, size_t, int, int, ncclComm_t, CUstream)) \
  X(ncclAllGather, ncclResult_t(const void *, void *, size_t, int, ncclComm_t, CUstream))          \
  X(ncclReduce, ncclResult_t(const void *, void *, size_t, int, int, int, ncclComm_t, CUstream))   \
  X(ncclBroadcast, ncclResult_t(const void *, void *, size_t, int, int, ncclComm_t, CUstream))     \
  X(ncclSend, ncclResult_t(const void *, size_t, int, int, ncclComm_t, CUstream))                  \
  X(ncclRecv, ncclResult_t(void *, size_t, int, int, ncclComm_t, CUstream))

class Nccl {
public:
  static Result<std::shared_ptr<const Nccl>> load(const std::string &path);
  BRAID_NCCL_SYMBOLS(BRAID_DECLARE_SYMBOL)
  Status check(ncclResult_t result, const char *call) const;

private:
  void findAll(Status &status);
  SharedLibrary library;
};

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_NCCL_H
