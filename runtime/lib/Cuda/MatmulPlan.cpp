//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MatmulPlan.h"
#include "braid/Base/StatusMacros.h"

namespace braid::runtime::cuda {

namespace {

/// The size that cuBLASLt's heuristics expect for recent architectures.
constexpr uint64_t kWorkspaceBytes = uint64_t(32) << 20;

Result<int> dataType(const std::string &what, DType dtype) {
  switch (dtype) {
  case DType::f32:
    return kReal32F;
  case DType::f16:
    return kReal16F;
  case DType::bf16:
    return kReal16BF;
  case DType::i8:
    return kReal8I;
  case DType::i32:
    return kReal32I;
  default:
    return Status::error("expects " + what + " of f32, f16 or bf16, got " + name(dtype));
  }
}

/// The largest power of two up to 256 that divides the address.
uint32_t alignmentOf(const Tensor &tensor) {
  const uint64_t bits = address(tensor.data) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

Status openBlas(RankDevice &rank, const std::string &libraryPath) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Blas> loaded, Blas::load(libraryPath));
  RETURN_IF_ERROR(rank.device->use());
  cublasLtHandle_t handle;
  BRAID_CUDA_TRY(*loaded, cublasLtCreate, &handle);
  rank.blas = loaded;
  // Destroying it waits for the device.
  rank.blasHandle = std::shared_ptr<cublasLtContext>(
      handle, [blas = loaded, device = rank.device](cublasLtHandle_t h) {
        if (device->use().ok())
          blas->cublasLtDestroy(h);
      });
  return {};
}

} // namespace

MatmulPlan::~MatmulPlan() {
  for (cublasLtMatrixLayout_t layout : {rhsLayout, lhsLayout, outLayout})
    if (layout)
      blas->cublasLtMatrixLayoutDestroy(layout);
  if (operation)
    blas->cublasLtMatmulDescDestroy(operation);
}

Status MatmulPlan::enqueue(CUstream stream) const {
  const float one = 1, beta = accumulate ? 1 : 0;
  const int32_t integerOne = 1, integerZero = 0;
  BRAID_CUDA_TRY(*blas, cublasLtMatmul, handle, operation,
                 integers ? static_cast<const void *>(&integerOne) : &one, rhs, rhsLayout, lhs,
                 lhsLayout, integers ? static_cast<const void *>(&integerZero) : &beta, out,
                 outLayout, out, outLayout, &algorithm, workspace, kWorkspaceBytes, stream);
  return {};
}

Status MatmulPlan::makeLayout(cublasLtMatrixLayout_t &layout, const std::string &what,
                              const Tensor &tensor, const MatmulForm::Matrix &matrix,
                              int64_t batch) const {
  ASSIGN_OR_RETURN(int type, dataType(what, tensor.dtype));
  if (matrix.columns != 1 && tensor.strides.back() != 1)
    return Status::error("expects a contiguous last dimension of " + what + " " +
                         shapeString(tensor.shape) + ", got strides " +
                         shapeString(tensor.strides));
  BRAID_CUDA_TRY(*blas, cublasLtMatrixLayoutCreate, &layout, type,
                 static_cast<uint64_t>(matrix.columns), static_cast<uint64_t>(matrix.rows),
                 matrix.stride);
  if (batch == 1)
    return {};
  if (batch > INT32_MAX)
    return Status::error("expects at most " + std::to_string(INT32_MAX) + " matrices, got " +
                         std::to_string(batch));
  auto set = [&](int attribute, auto value) -> Status {
    BRAID_CUDA_TRY(*blas, cublasLtMatrixLayoutSetAttribute, layout, attribute, &value,
                   sizeof value);
    return {};
  };
  RETURN_IF_ERROR(set(kLayoutBatchCount, static_cast<int32_t>(batch)));
  return set(kLayoutBatchStride, matrix.batch);
}

Status MatmulPlan::setBias(const MatmulOperands &c) const {
  ASSIGN_OR_RETURN(int32_t type, dataType("bias", c.bias->dtype));
  RETURN_IF_ERROR(setOperation(kDescEpilogue, kEpilogueBias));
  RETURN_IF_ERROR(setOperation<const void *>(kDescBiasPointer, c.bias->data));
  if (c.form.biasBatch != 0)
    RETURN_IF_ERROR(setOperation<int64_t>(kDescBiasBatchStride, c.form.biasBatch));
  return setOperation(kDescBiasDataType, type);
}

Status MatmulPlan::prepare(const MatmulOperands &c) {
  lhs = c.lhs.data;
  rhs = c.rhs.data;
  out = c.out.data;
  accumulate = c.form.accumulate;
  integers = c.lhs.dtype == DType::i8;
  BRAID_CUDA_TRY(*blas, cublasLtMatmulDescCreate, &operation, integers ? kCompute32I : kCompute32F,
                 integers ? kReal32I : kReal32F);
  RETURN_IF_ERROR(setOperation(kDescTransA, c.form.transposeRhs ? kOpT : kOpN));
  RETURN_IF_ERROR(setOperation(kDescTransB, c.form.transposeLhs ? kOpT : kOpN));
  RETURN_IF_ERROR(c.bias ? setBias(c) : Status());
  RETURN_IF_ERROR(makeLayout(rhsLayout, "rhs", c.rhs, c.form.rhs, c.form.batch));
  RETURN_IF_ERROR(makeLayout(lhsLayout, "lhs", c.lhs, c.form.lhs, c.form.batch));
  RETURN_IF_ERROR(makeLayout(outLayout, "out", c.out, c.form.out, c.form.batch));
  return chooseAlgorithm(c);
}

Status MatmulPlan::chooseAlgorithm(const MatmulOperands &c) {
  cublasLtMatmulPreference_t preference;
  BRAID_CUDA_TRY(*blas, cublasLtMatmulPreferenceCreate, &preference);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  auto set = [&](int attribute, auto value) -> Status {
    BRAID_CUDA_TRY(*blas, cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value,
                   sizeof value);
    return {};
  };
  auto choose = [&]() -> Status {
    RETURN_IF_ERROR(set(kPreferenceMaxWorkspace, kWorkspaceBytes));
    RETURN_IF_ERROR(set(kPreferenceAlignmentA, alignmentOf(c.rhs)));
    RETURN_IF_ERROR(set(kPreferenceAlignmentB, alignmentOf(c.lhs)));
    RETURN_IF_ERROR(set(kPreferenceAlignmentC, alignmentOf(c.out)));
    RETURN_IF_ERROR(set(kPreferenceAlignmentD, alignmentOf(c.out)));
    BRAID_CUDA_TRY(*blas, cublasLtMatmulAlgoGetHeuristic, handle, operation, rhsLayout, lhsLayout,
                   outLayout, outLayout, preference, 1, &best, &found);
    return {};
  };
  const Status status = choose();
  blas->cublasLtMatmulPreferenceDestroy(preference);
  algorithm = best.algo;
  if (status.ok() && found > 0 && best.state == 0)
    return {};
  return Status::error(
      "cuBLASLt has no algorithm for [m, n, k] = " + shapeString({c.form.m, c.form.n, c.form.k}) +
      (c.form.batch == 1 ? "" : " times " + std::to_string(c.form.batch)) + " of " +
      name(c.lhs.dtype) + " and " + name(c.rhs.dtype) + " to " + name(c.out.dtype) +
      (status.ok() ? "" : ": " + status.message()));
}

Result<std::shared_ptr<const MatmulPlan>>
MatmulPlan::make(const MatmulOperands &c, const LaunchPlace &place, RankDevice &rank) {
  if (!rank.blas)
    RETURN_IF_ERROR(openBlas(rank, place.libraryPath));
  Memory &workspace = rank.workspaces[place.queue];
  if (!workspace) {
    ASSIGN_OR_RETURN(workspace, allocate(rank.device, kWorkspaceBytes, place.stream,
                                         "the workspace of matmuls"));
  }
  auto plan =
      std::make_shared<MatmulPlan>(rank.blas, rank.blasHandle.get(), pointer(workspace.get()));
  RETURN_IF_ERROR(plan->prepare(c));
  return std::shared_ptr<const MatmulPlan>(std::move(plan));
}

} // namespace braid::runtime::cuda
