//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The functions of cuBLASLt in use, as in Driver.h.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_BLAS_H
#define BRAID_CUDA_BLAS_H

#include "Driver.h"

namespace braid::runtime::cuda {

using cublasStatus_t = int;
using cublasLtHandle_t = struct cublasLtContext *;
using cublasLtMatmulDesc_t = struct cublasLtMatmulDescOpaque_t *;
using cublasLtMatrixLayout_t = struct cublasLtMatrixLayoutOpaque_t *;
using cublasLtMatmulPreference_t = struct cublasLtMatmulPreferenceOpaque_t *;

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

// cudaDataType, cublasComputeType_t and the attributes of descriptors.
constexpr int kReal32F = 0, kReal16F = 2, kReal8I = 3, kReal32I = 10, kReal16BF = 14;
constexpr int kCompute32F = 68, kCompute32I = 72;
constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8,
              kDescBiasBatchStride = 10, kDescBiasDataType = 26;
constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;
constexpr int kPreferenceMaxWorkspace = 1, kPreferenceAlignmentA = 5, kPreferenceAlignmentB = 6,
              kPreferenceAlignmentC = 7, kPreferenceAlignmentD = 8;
constexpr int32_t kOpN = 0, kOpT = 1;
constexpr uint32_t kEpilogueDefault = 1, kEpilogueBias = 4;

#define BRAID_CUBLASLT_SYMBOLS(X)                                                                  \
  X(cublasLtGetStatusString, const char *(cublasStatus_t))                                         \
  X(cublasLtCreate, cublasStatus_t(cublasLtHandle_t *))                                            \
  X(cublasLtDestroy, cublasStatus_t(cublasLtHandle_t))                                             \
  X(cublasLtMatmulDescCreate, cublasStatus_t(cublasLtMatmulDesc_t *, int, int))                    \
  X(cublasLtMatmulDescDestroy, cublasStatus_t(cublasLtMatmulDesc_t))                               \
  X(cublasLtMatmulDescSetAttribute,                                                                \
    cublasStatus_t(cublasLtMatmulDesc_t, int, const void *, size_t))                               \
  X(cublasLtMatrixLayoutCreate,                                                                    \
    cublasStatus_t(cublasLtMatrixLayout_t *, int, uint64_t, uint64_t, int64_t))                    \
  X(cublasLtMatrixLayoutSetAttribute,                                                              \
    cublasStatus_t(cublasLtMatrixLayout_t, int, const void *, size_t))                             \
  X(cublasLtMatrixLayoutDestroy, cublasStatus_t(cublasLtMatrixLayout_t))                           \
  X(cublasLtMatmulPreferenceCreate, cublasStatus_t(cublasLtMatmulPreference_t *))                  \
  X(cublasLtMatmulPreferenceDestroy, cublasStatus_t(cublasLtMatmulPreference_t))                   \
  X(cublasLtMatmulPreferenceSetAttribute,                                                          \
    cublasStatus_t(cublasLtMatmulPreference_t, int, const void *, size_t))                         \
  X(cublasLtMatmulAlgoGetHeuristic,                                                                \
    cublasStatus_t(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,                 \
                   cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,         \
                   cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t *, int *))     \
  X(cublasLtMatmul,                                                                                \
    cublasStatus_t(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *,             \
                   cublasLtMatrixLayout_t, const void *, cublasLtMatrixLayout_t, const void *,     \
                   const void *, cublasLtMatrixLayout_t, void *, cublasLtMatrixLayout_t,           \
                   const cublasLtMatmulAlgo_t *, void *, size_t, CUstream))

class Blas {
public:
  static Result<std::shared_ptr<const Blas>> load(const std::string &path);
  BRAID_CUBLASLT_SYMBOLS(BRAID_DECLARE_SYMBOL)
  Status check(cublasStatus_t result, const char *call) const;

private:
  void findAll(Status &status);
  SharedLibrary library;
};

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_BLAS_H
