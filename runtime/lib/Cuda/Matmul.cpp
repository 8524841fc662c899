//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matmuls by cuBLASLt. Its matrices are column-major: out[m, n] = lhs[m, k] rhs[n, k]^T is given
// to it as out^T[n, m] = rhs[n, k] lhs^T[k, m], where each matrix lies in memory as it does for us
// and the bias belongs to the rows.
//
//===----------------------------------------------------------------------===//
#include "StreamCommand.h"
#include "braid/Base/StatusMacros.h"

namespace braid::runtime::cuda {

namespace {

/// What cuBLASLt's heuristics count on for recent architectures.
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

class MatmulStreamCommand : public StreamCommand {
public:
  MatmulStreamCommand(std::shared_ptr<const Blas> blas, cublasLtHandle_t handle, void *workspace)
      : blas(std::move(blas)), handle(handle), workspace(workspace) {}
  ~MatmulStreamCommand() override {
    for (cublasLtMatrixLayout_t layout : {rhsLayout, lhsLayout, outLayout})
      if (layout)
        blas->cublasLtMatrixLayoutDestroy(layout);
    if (operation)
      blas->cublasLtMatmulDescDestroy(operation);
  }
  MatmulStreamCommand(const MatmulStreamCommand &) = delete;
  MatmulStreamCommand &operator=(const MatmulStreamCommand &) = delete;

  Status prepare(const Operands &c);
  Status enqueue(CUstream stream) const override {
    const float one = 1, zero = 0;
    return blas->check(blas->cublasLtMatmul(handle, operation, &one, rhs, rhsLayout, lhs, lhsLayout,
                                            &zero, out, outLayout, out, outLayout, &algorithm,
                                            workspace, kWorkspaceBytes, stream),
                       "cublasLtMatmul");
  }

private:
  /// Rows of `tensor` as columns.
  Status makeLayout(cublasLtMatrixLayout_t &layout, const char *what, const Tensor &tensor) const;
  Status setOperation(int attribute, const void *value, size_t bytes) const {
    return blas->check(blas->cublasLtMatmulDescSetAttribute(operation, attribute, value, bytes),
                       "cublasLtMatmulDescSetAttribute");
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

Status MatmulStreamCommand::makeLayout(cublasLtMatrixLayout_t &layout, const char *what,
                                       const Tensor &tensor) const {
  ASSIGN_OR_RETURN(int type, dataType(what, tensor.dtype));
  ASSIGN_OR_RETURN(int64_t stride, tensor.rowStride());
  return blas->check(blas->cublasLtMatrixLayoutCreate(&layout, type,
                                                      static_cast<uint64_t>(tensor.shape.back()),
                                                      static_cast<uint64_t>(tensor.rows()), stride),
                     "cublasLtMatrixLayoutCreate");
}

Status MatmulStreamCommand::setBias(const Tensor &bias) const {
  ASSIGN_OR_RETURN(int type, dataType("bias", bias.dtype));
  const void *data = bias.data;
  const int32_t biasType = type;
  Status status = setOperation(kDescEpilogue, &kEpilogueBias, sizeof kEpilogueBias);
  if (status.ok())
    status = setOperation(kDescBiasPointer, static_cast<const void *>(&data), sizeof data);
  return status.ok() ? setOperation(kDescBiasDataType, &biasType, sizeof biasType) : status;
}

Status MatmulStreamCommand::prepare(const Operands &c) {
  lhs = c.lhs.data;
  rhs = c.rhs.data;
  out = c.out.data;
  Status status = blas->check(blas->cublasLtMatmulDescCreate(&operation, kCompute32F, kReal32F),
                              "cublasLtMatmulDescCreate");
  if (status.ok())
    status = setOperation(kDescTransA, &kOpT, sizeof kOpT);
  if (status.ok())
    status = setOperation(kDescTransB, &kOpN, sizeof kOpN);
  if (status.ok() && c.bias)
    status = setBias(*c.bias);
  if (status.ok())
    status = makeLayout(rhsLayout, "rhs", c.rhs);
  if (status.ok())
    status = makeLayout(lhsLayout, "lhs", c.lhs);
  if (status.ok())
    status = makeLayout(outLayout, "out", c.out);
  return status.ok() ? chooseAlgorithm(c) : status;
}

Status MatmulStreamCommand::chooseAlgorithm(const Operands &c) {
  cublasLtMatmulPreference_t preference;
  RETURN_IF_ERROR(blas->check(blas->cublasLtMatmulPreferenceCreate(&preference),
                              "cublasLtMatmulPreferenceCreate"));
  Status status;
  auto set = [&](int attribute, auto value) {
    if (status.ok())
      status = blas->check(
          blas->cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  set(kPreferenceMaxWorkspace, kWorkspaceBytes);
  set(kPreferenceAlignmentA, alignmentOf(c.rhs));
  set(kPreferenceAlignmentB, alignmentOf(c.lhs));
  set(kPreferenceAlignmentC, alignmentOf(c.out));
  set(kPreferenceAlignmentD, alignmentOf(c.out));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  if (status.ok())
    status = blas->check(blas->cublasLtMatmulAlgoGetHeuristic(handle, operation, rhsLayout,
                                                              lhsLayout, outLayout, outLayout,
                                                              preference, 1, &best, &found),
                         "cublasLtMatmulAlgoGetHeuristic");
  blas->cublasLtMatmulPreferenceDestroy(preference);
  if (!status.ok() || found == 0 || best.state != 0)
    status = Status::error("cuBLASLt has no algorithm for [m, n, k] = " +
                           shapeString({c.lhs.rows(), c.rhs.shape[0], c.rhs.shape[1]}) + " of " +
                           name(c.lhs.dtype) + " and " + name(c.rhs.dtype) + " to " +
                           name(c.out.dtype) + (status.ok() ? "" : ": " + status.message()));
  algorithm = best.algo;
  return status;
}

} // namespace

static Status openBlas(RankDevice &rank, const std::string &libraryPath) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Blas> loaded, Blas::load(libraryPath));
  RETURN_IF_ERROR(rank.device->use());
  cublasLtHandle_t handle;
  RETURN_IF_ERROR(loaded->check(loaded->cublasLtCreate(&handle), "cublasLtCreate"));
  rank.blas = loaded;
  // Destroying it waits for the device.
  rank.blasHandle = std::shared_ptr<cublasLtContext>(
      handle, [blas = loaded, device = rank.device](cublasLtHandle_t h) {
        if (device->use().ok())
          blas->cublasLtDestroy(h);
      });
  return {};
}

Result<StreamCommandPtr> makeMatmul(const LibraryArguments &a, const LibraryPlace &place,
                                    RankDevice &rank) {
  if (!rank.blas)
    RETURN_IF_ERROR(openBlas(rank, place.libraryPath));
  Memory &workspace = rank.workspaces[place.queue];
  if (!workspace) {
    ASSIGN_OR_RETURN(workspace, allocate(rank.device, kWorkspaceBytes, place.stream,
                                         "the workspace of matmuls"));
  }
  auto work = std::make_unique<MatmulStreamCommand>(rank.blas, rank.blasHandle.get(),
                                                    pointer(workspace.get()));
  Operands operands{a.tensor("input"), a.tensor("weight"), a.tensor("out"), std::nullopt};
  if (a.has("bias"))
    operands.bias = a.tensor("bias");
  RETURN_IF_ERROR(work->prepare(operands));
  return StreamCommandPtr(std::move(work));
}

} // namespace braid::runtime::cuda
