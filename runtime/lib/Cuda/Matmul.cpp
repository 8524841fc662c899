//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matmuls by cuBLASLt. Its matrices are column-major: out[m, n] = lhs[m, k] rhs[n, k]^T becomes
// out^T[n, m] = rhs[n, k] lhs^T[k, m], with the same memory for each matrix and a bias for each
// row.
//
//===----------------------------------------------------------------------===//
#include "StreamCommand.h"
#include "braid/Base/StatusMacros.h"

namespace braid::runtime::cuda {

namespace {

/// The size that cuBLASLt's heuristics expect for recent architectures.
constexpr uint64_t kWorkspaceBytes = uint64_t(32) << 20;

Result<int> dataType(const char *what, DType dtype) {
  switch (dtype) {
  case DType::f32:
    return kReal32F;
  case DType::f16:
    return kReal16F;
  case DType::bf16:
    return kReal16BF;
  default:
    return Status::error(std::string("expects ") + what + " of f32, f16 or bf16, got " +
                         name(dtype));
  }
}

/// The largest power of two up to 256 that divides the address.
uint32_t alignmentOf(const Tensor &tensor) {
  const uint64_t bits = address(tensor.data) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

struct Operands {
  Tensor lhs, rhs, out;
  std::optional<Tensor> bias;
};

/// The descriptors of a matmul and its algorithm.
class MatmulPlan {
public:
  MatmulPlan(std::shared_ptr<const Blas> blas, cublasLtHandle_t handle, void *workspace)
      : blas(std::move(blas)), handle(handle), workspace(workspace) {}
  ~MatmulPlan() {
    for (cublasLtMatrixLayout_t layout : {rhsLayout, lhsLayout, outLayout})
      if (layout)
        blas->cublasLtMatrixLayoutDestroy(layout);
    if (operation)
      blas->cublasLtMatmulDescDestroy(operation);
  }
  MatmulPlan(const MatmulPlan &) = delete;
  MatmulPlan &operator=(const MatmulPlan &) = delete;

  Status prepare(const Operands &c);
  Status enqueue(CUstream stream) const {
    const float one = 1, zero = 0;
    BRAID_CUDA_TRY(*blas, cublasLtMatmul, handle, operation, &one, rhs, rhsLayout, lhs, lhsLayout,
                   &zero, out, outLayout, out, outLayout, &algorithm, workspace, kWorkspaceBytes,
                   stream);
    return {};
  }

private:
  /// Rows of `tensor` as columns.
  Status makeLayout(cublasLtMatrixLayout_t &layout, const char *what, const Tensor &tensor) const;
  template <typename Value> Status setOperation(int attribute, const Value &value) const {
    BRAID_CUDA_TRY(*blas, cublasLtMatmulDescSetAttribute, operation, attribute,
                   static_cast<const void *>(&value), sizeof value);
    return {};
  }
  Status setBias(const Tensor &bias) const;
  Status chooseAlgorithm(const Operands &c);

  std::shared_ptr<const Blas> blas;
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t rhsLayout = nullptr, lhsLayout = nullptr, outLayout = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  const void *lhs = nullptr, *rhs = nullptr;
  void *out = nullptr, *workspace;
};

Status MatmulPlan::makeLayout(cublasLtMatrixLayout_t &layout, const char *what,
                              const Tensor &tensor) const {
  ASSIGN_OR_RETURN(int type, dataType(what, tensor.dtype));
  ASSIGN_OR_RETURN(int64_t stride, tensor.rowStride());
  BRAID_CUDA_TRY(*blas, cublasLtMatrixLayoutCreate, &layout, type,
                 static_cast<uint64_t>(tensor.shape.back()), static_cast<uint64_t>(tensor.rows()),
                 stride);
  return {};
}

Status MatmulPlan::setBias(const Tensor &bias) const {
  ASSIGN_OR_RETURN(int32_t type, dataType("bias", bias.dtype));
  RETURN_IF_ERROR(setOperation(kDescEpilogue, kEpilogueBias));
  RETURN_IF_ERROR(setOperation<const void *>(kDescBiasPointer, bias.data));
  return setOperation(kDescBiasDataType, type);
}

Status MatmulPlan::prepare(const Operands &c) {
  lhs = c.lhs.data;
  rhs = c.rhs.data;
  out = c.out.data;
  BRAID_CUDA_TRY(*blas, cublasLtMatmulDescCreate, &operation, kCompute32F, kReal32F);
  RETURN_IF_ERROR(setOperation(kDescTransA, kOpT));
  RETURN_IF_ERROR(setOperation(kDescTransB, kOpN));
  RETURN_IF_ERROR(c.bias ? setBias(*c.bias) : Status());
  RETURN_IF_ERROR(makeLayout(rhsLayout, "rhs", c.rhs));
  RETURN_IF_ERROR(makeLayout(lhsLayout, "lhs", c.lhs));
  RETURN_IF_ERROR(makeLayout(outLayout, "out", c.out));
  return chooseAlgorithm(c);
}

Status MatmulPlan::chooseAlgorithm(const Operands &c) {
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
  return Status::error("cuBLASLt has no algorithm for [m, n, k] = " +
                       shapeString({c.lhs.rows(), c.rhs.shape[0], c.rhs.shape[1]}) + " of " +
                       name(c.lhs.dtype) + " and " + name(c.rhs.dtype) + " to " +
                       name(c.out.dtype) + (status.ok() ? "" : ": " + status.message()));
}

} // namespace

static Status openBlas(RankDevice &rank, const std::string &libraryPath) {
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

Result<StreamCommand> makeMatmul(const LibraryArguments &a, const LibraryPlace &place,
                                 RankDevice &rank) {
  if (!rank.blas)
    RETURN_IF_ERROR(openBlas(rank, place.libraryPath));
  Memory &workspace = rank.workspaces[place.queue];
  if (!workspace) {
    ASSIGN_OR_RETURN(workspace, allocate(rank.device, kWorkspaceBytes, place.stream,
                                         "the workspace of matmuls"));
  }
  auto plan =
      std::make_shared<MatmulPlan>(rank.blas, rank.blasHandle.get(), pointer(workspace.get()));
  Operands operands{a.tensor("input"), a.tensor("weight"), a.tensor("out"), std::nullopt};
  if (a.has("bias"))
    operands.bias = a.tensor("bias");
  RETURN_IF_ERROR(plan->prepare(operands));
  return StreamCommand([plan](CUstream stream) { return plan->enqueue(stream); });
}

} // namespace braid::runtime::cuda
