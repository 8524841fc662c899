//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What was asked of a group, as PyTorch waits for it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_C10D_WORK_H
#define BRAID_C10D_WORK_H

#include "runtime/lib/Group/Group.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace braid::c10d_backend {

class Work : public c10d::Work {
public:
  Work(int rank, c10d::OpType type, const char *title, const std::vector<at::Tensor> &inputs,
       std::vector<at::Tensor> outputs, std::string what, uint64_t number);

  /// Called once; the outputs are complete then.
  void end(const runtime::Status &status, int64_t sender = -1);

  bool wait(std::chrono::milliseconds timeout) override;
  std::vector<at::Tensor> result() override { return outputs; }
  int sourceRank() const override { return sender; }
  uint64_t getSequencenumber() const override { return number; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future; }
  void abort() override;

private:
  std::vector<at::Tensor> outputs;
  const std::string what; ///< "all_reduce (sum, 8 f32)"
  const uint64_t number;
  int sender = -1;
  c10::intrusive_ptr<c10::ivalue::Future> future;
};

} // namespace braid::c10d_backend
#endif // BRAID_C10D_WORK_H
