//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Nccl.h"
#include "braid/Base/StatusMacros.h"

namespace braid::runtime::cuda {

Result<std::shared_ptr<const Nccl>> Nccl::load(const std::string &path) {
  auto nccl = std::make_shared<Nccl>();
  if (Status status = nccl->library.open("NCCL", {path.empty() ? "libnccl.so.2" : path});
      !status.ok())
    return Status::error("transport 'nccl' expects NCCL 2: " + status.message());
  Status status;
  nccl->findAll(status);
  RETURN_IF_ERROR(status);
  return std::shared_ptr<const Nccl>(std::move(nccl));
}

void Nccl::findAll(Status &status){BRAID_NCCL_SYMBOLS(BRAID_FIND_SYMBOL)}

Status Nccl::check(ncclResult_t result, const char *call) const {
  if (result == 0)
    return {};
  const char *text = ncclGetErrorString(result), *last = ncclGetLastError(nullptr);
  return Status::error(std::string("NCCL failed in ") + call + ": " +
                           (text ? text : std::to_string(result)) +
                           (last && *last ? std::string(" (") + last + ")" : ""),
                       Code::rankFailed);
}

} // namespace braid::runtime::cuda
