//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matmuls by cuBLASLt. Its matrices are column-major: out[m, n] = lhs[m, k] rhs[k, n] becomes
// out^T[n, m] = rhs^T[n, k] lhs^T[k, m], with the same memory for each matrix and a bias for each
// row. What is stored by rows counts as transposed there.
//
//===----------------------------------------------------------------------===//
#include "StreamCommand.h"
#include "braid/Base/MatmulForm.h"
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
  default:
    return Status::error("expects " + what + " of f32, f16 or bf16, got " + name(dtype));
  }
}

/// The largest power of two up to 256 that divides the address.
uint32_t alignmentOf(const Tensor &tensor) {
  const uint64_t bits = address(tensor.data) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

struct Operands {
  MatmulForm form;
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
    const float one = 1, beta = accumulate ? 1 : 0;
    BRAID_CUDA_TRY(*blas, cublasLtMatmul, handle, operation, &one, rhs, rhsLayout, lhs, lhsLayout,
                   &beta, out, outLayout, out, outLayout, &algorithm, workspace, kWorkspaceBytes,
                   stream);
    return {};
  }

private:
  /// Rows as columns.
  Status makeLayout(cublasLtMatrixLayout_t &layout, const std::string &what, const Tensor &tensor,
                    const MatmulForm::Matrix &matrix, int64_t batch) const;
  template <typename Value> Status setOperation(int attribute, const Value &value) const {
    BRAID_CUDA_TRY(*blas, cublasLtMatmulDescSetAttribute, operation, attribute,
                   static_cast<const void *>(&value), sizeof value);
    return {};
  }
  Status setBias(const Operands &c) const;
  Status chooseAlgorithm(const Operands &c);

  std::shared_ptr<const Blas> blas;
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t rhsLayout = nullptr, lhsLayout = nullptr, outLayout = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  const void *lhs = nullptr, *rhs = nullptr;
  void *out = nullptr, *workspace;
  bool accumulate = false;
};

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

Status MatmulPlan::setBias(const Operands &c) const {
  ASSIGN_OR_RETURN(int32_t type, dataType("bias", c.bias->dtype));
  RETURN_IF_ERROR(setOperation(kDescEpilogue, kEpilogueBias));
  RETURN_IF_ERROR(setOperation<const void *>(kDescBiasPointer, c.bias->data));
  if (c.form.biasBatch != 0)
    RETURN_IF_ERROR(setOperation<int64_t>(kDescBiasBatchStride, c.form.biasBatch));
  return setOperation(kDescBiasDataType, type);
}

Status MatmulPlan::prepare(const Operands &c) {
  lhs = c.lhs.data;
  rhs = c.rhs.data;
  out = c.out.data;
  accumulate = c.form.accumulate;
  BRAID_CUDA_TRY(*blas, cublasLtMatmulDescCreate, &operation, kCompute32F, kReal32F);
  RETURN_IF_ERROR(setOperation(kDescTransA, c.form.transposeRhs ? kOpT : kOpN));
  RETURN_IF_ERROR(setOperation(kDescTransB, c.form.transposeLhs ? kOpT : kOpN));
  RETURN_IF_ERROR(c.bias ? setBias(c) : Status());
  RETURN_IF_ERROR(makeLayout(rhsLayout, "rhs", c.rhs, c.form.rhs, c.form.batch));
  RETURN_IF_ERROR(makeLayout(lhsLayout, "lhs", c.lhs, c.form.lhs, c.form.batch));
  RETURN_IF_ERROR(makeLayout(outLayout, "out", c.out, c.form.out, c.form.batch));
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
  return Status::error(
      "cuBLASLt has no algorithm for [m, n, k] = " + shapeString({c.form.m, c.form.n, c.form.k}) +
      (c.form.batch == 1 ? "" : " times " + std::to_string(c.form.batch)) + " of " +
      name(c.lhs.dtype) + " and " + name(c.rhs.dtype) + " to " + name(c.out.dtype) +
      (status.ok() ? "" : ": " + status.message()));
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

/// With counts: a check of the counts before the matmul, and zeros beyond them after it.
static Result<StreamCommand> makeCounted(const StreamCommand &product, const Operands &c,
                                         const LibraryArguments &a, const LaunchPlace &place,
                                         RankDevice &rank) {
  const Integers counts = integersOf(a, "counts");
  library::CheckCounts check{};
  check.counts = {counts.data, counts.stride, static_cast<int>(counts.wide)};
  check.count = c.form.batch;
  check.most = c.form.m;
  check.fault = rank.faults + place.queue;
  check.command = place.number;
  rank.hasFaults[place.queue] = true;
  std::vector<StreamCommand> commands;
  RETURN_IF_ERROR(
      append(commands, libraryStreamCommand(rank, "braid_check_counts", check.count, check)));
  commands.push_back(product);
  // In place, so that only rows beyond the counts are written.
  const int64_t size = byteSize(c.out.dtype);
  RETURN_IF_ERROR(
      append(commands, makeCopyCounted(runsOf(c.out.shape, size, c.out.strides, c.out.strides),
                                       {c.form.batch, c.form.m, c.form.n * size}, c.out.data,
                                       c.out.data, check.counts, rank)));
  return StreamCommand([commands](CUstream stream) -> Status {
    for (const StreamCommand &command : commands)
      RETURN_IF_ERROR(command(stream));
    return {};
  });
}

Result<StreamCommand> makeMatmul(const LibraryArguments &a, const LaunchPlace &place,
                                 RankDevice &rank) {
  if (a[MatmulForm::lhsOperand].dtype == DType::i8)
    return Status::error("matmul of i8 is not implemented on target 'cuda'");
  if (!rank.blas)
    RETURN_IF_ERROR(openBlas(rank, place.libraryPath));
  Memory &workspace = rank.workspaces[place.queue];
  if (!workspace) {
    ASSIGN_OR_RETURN(workspace, allocate(rank.device, kWorkspaceBytes, place.stream,
                                         "the workspace of matmuls"));
  }
  auto plan =
      std::make_shared<MatmulPlan>(rank.blas, rank.blasHandle.get(), pointer(workspace.get()));
  ASSIGN_OR_RETURN(const MatmulForm form, MatmulForm::of(a));
  Operands operands{form, a.tensor("lhs"), a.tensor("rhs"), a.tensor("out"), std::nullopt};
  if (a.has("bias"))
    operands.bias = a.tensor("bias");
  RETURN_IF_ERROR(plan->prepare(operands));
  const StreamCommand product([plan](CUstream stream) { return plan->enqueue(stream); });
  return a.has("counts") ? makeCounted(product, operands, a, place, rank) : product;
}

} // namespace braid::runtime::cuda
