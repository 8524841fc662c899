//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A matmul by cuBLASLt. Its matrices are column-major: out[m, n] = lhs[m, k] rhs[k, n] becomes
// out^T[n, m] = rhs^T[n, k] lhs^T[k, m], with the same memory for each matrix and a bias for each
// row. What is stored by rows counts as transposed there.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_MATMULPLAN_H
#define BRAID_CUDA_MATMULPLAN_H

#include "StreamCommand.h"
#include "braid/Base/MatmulForm.h"

namespace braid::runtime::cuda {

/// f32, f16 or bf16, summed in f32; or lhs and rhs of i8 and out of i32, without bias and
/// accumulate.
struct MatmulOperands {
  MatmulForm form;
  Tensor lhs, rhs, out;
  std::optional<Tensor> bias;
};

/// The descriptors of a matmul and its algorithm.
class MatmulPlan {
public:
  /// Loads the library if it is not, and gives the queue its workspace.
  static Result<std::shared_ptr<const MatmulPlan>> make(const MatmulOperands &c,
                                                        const LaunchPlace &place, RankDevice &rank);

  MatmulPlan(std::shared_ptr<const Blas> blas, cublasLtHandle_t handle, void *workspace)
      : blas(std::move(blas)), handle(handle), workspace(workspace) {}
  ~MatmulPlan();
  MatmulPlan(const MatmulPlan &) = delete;
  MatmulPlan &operator=(const MatmulPlan &) = delete;

  Status enqueue(CUstream stream) const;

private:
  Status prepare(const MatmulOperands &c);
  /// Rows as columns.
  Status makeLayout(cublasLtMatrixLayout_t &layout, const std::string &what, const Tensor &tensor,
                    const MatmulForm::Matrix &matrix, int64_t batch) const;
  template <typename Value> Status setOperation(int attribute, const Value &value) const {
    BRAID_CUDA_TRY(*blas, cublasLtMatmulDescSetAttribute, operation, attribute,
                   static_cast<const void *>(&value), sizeof value);
    return {};
  }
  Status setBias(const MatmulOperands &c) const;
  Status chooseAlgorithm(const MatmulOperands &c);

  std::shared_ptr<const Blas> blas;
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t rhsLayout = nullptr, lhsLayout = nullptr, outLayout = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  const void *lhs = nullptr, *rhs = nullptr;
  void *out = nullptr, *workspace;
  bool accumulate = false, integers = false;
};

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_MATMULPLAN_H
