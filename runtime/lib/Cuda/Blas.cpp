//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Blas.h"
#include "braid/Base/StatusMacros.h"

namespace braid::runtime::cuda {

Result<std::shared_ptr<const Blas>> Blas::load(const std::string &path) {
  auto blas = std::make_shared<Blas>();
  std::vector<std::string> names = {"libcublasLt.so.13", "libcublasLt.so.12"};
  if (!path.empty())
    names = {path};
  if (Status status = blas->library.open("cuBLASLt", names); !status.ok())
    return Status::error("matmuls on target 'cuda' expect cuBLASLt of CUDA 13 or 12: " +
                         status.message());
  Status status;
  blas->findAll(status);
  RETURN_IF_ERROR(status);
  return std::shared_ptr<const Blas>(std::move(blas));
}

void Blas::findAll(Status &status){BRAID_CUBLASLT_SYMBOLS(BRAID_FIND_SYMBOL)}

Status Blas::check(cublasStatus_t result, const char *call) const {
  if (result == 0)
    return {};
  const char *text = cublasLtGetStatusString(result);
  return Status::error(std::string("cuBLASLt failed in ") + call + ": " +
                           (text ? text : std::to_string(result)),
                       Code::rankFailed);
}

} // namespace braid::runtime::cuda
