//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Driver.h"

namespace braid::runtime::cuda {

Result<std::shared_ptr<const Driver>> Driver::load(const std::string &path) {
  auto driver = std::make_shared<Driver>();
  Status status = driver->library.open("the CUDA driver", {path.empty() ? "libcuda.so.1" : path});
  const std::string expects =
      "target 'cuda' expects an NVIDIA GPU and its driver on this machine: ";
  if (!status.ok())
    return Status::error(expects + status.message());
  driver->findAll(status);
  if (!status.ok())
    return Status::error(status.message() +
                         ": target 'cuda' expects a driver for CUDA 12.4 or newer");
  if (Status started = driver->check(driver->cuInit(0), "cuInit"); !started.ok())
    return Status::error(expects + started.message());
  return std::shared_ptr<const Driver>(std::move(driver));
}

void Driver::findAll(Status &status){BRAID_CUDA_DRIVER_SYMBOLS(BRAID_FIND_SYMBOL)}

Status Driver::check(CUresult result, const char *call) const {
  if (result == kSuccess)
    return {};
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  return Status::error(std::string("the CUDA driver failed in ") + call + ": " +
                           (text ? text : "unknown error") + " (" +
                           (name ? name : std::to_string(result)) + ")",
                       Code::rankFailed);
}

} // namespace braid::runtime::cuda
