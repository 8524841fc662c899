//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Work.h"

namespace braid::c10d_backend {

Work::Work(int rank, c10d::OpType type, const char *title, const std::vector<at::Tensor> &inputs,
           std::vector<at::Tensor> itsOutputs, std::string what, uint64_t number)
    : c10d::Work(rank, type, title, inputs), outputs(std::move(itsOutputs)), what(std::move(what)),
      number(number), future(c10::make_intrusive<c10::ivalue::Future>(
                          c10::ListType::create(c10::TensorType::get()))) {}

void Work::end(const runtime::Status &status, int64_t from) {
  sender = static_cast<int>(from);
  std::exception_ptr error;
  if (!status.ok())
    error =
        std::make_exception_ptr(C10_BUILD_ERROR(DistBackendError, "braid: " + status.message()));
  finish(error);
  if (error)
    future->setErrorIfNeeded(error);
  else
    future->markCompleted(c10::IValue(outputs));
}

bool Work::wait(std::chrono::milliseconds timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto isEnded = [this] { return completed_; };
  if (timeout == kNoTimeout)
    cv_.wait(lock, isEnded);
  else if (!cv_.wait_for(lock, timeout, isEnded))
    C10_THROW_ERROR(DistBackendError, "braid: rank " + std::to_string(rank_) + " has waited " +
                                          std::to_string(timeout.count()) + " ms for " + what +
                                          ", which goes on");
  if (exception_)
    std::rethrow_exception(exception_);
  return true;
}

void Work::abort() { TORCH_CHECK(false, "braid: ", what, " cannot be aborted alone"); }

} // namespace braid::c10d_backend
