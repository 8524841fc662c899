//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PyTorch's process groups on the CPU by Braid's collectives.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_C10D_BACKEND_H
#define BRAID_C10D_BACKEND_H

#include "Tensors.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <memory>

namespace braid::c10d_backend {

class Backend : public c10d::Backend {
public:
  using WorkPointer = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  using Lists = std::vector<Tensors>;

  /// Meets the other ranks over the store. `jobRanks`: the ranks of this group in the job.
  Backend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
          std::chrono::milliseconds timeout, const std::string &name,
          std::vector<int64_t> jobRanks);
  ~Backend() override;

  const std::string getBackendName() const override { return "braid"; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override { defaultTimeout = timeout; }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return numbers.load(); }
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;

  WorkPointer broadcast(Tensors &tensors, const c10d::BroadcastOptions &options) override;
  WorkPointer allreduce(Tensors &tensors, const c10d::AllreduceOptions &options) override;
  WorkPointer allreduce_coalesced(Tensors &tensors,
                                  const c10d::AllreduceCoalescedOptions &options) override;
  WorkPointer reduce(Tensors &tensors, const c10d::ReduceOptions &options) override;
  WorkPointer allgather(Lists &outputs, Tensors &inputs,
                        const c10d::AllgatherOptions &options) override;
  WorkPointer _allgather_base(at::Tensor &output, at::Tensor &input,
                              const c10d::AllgatherOptions &options) override;
  WorkPointer allgather_coalesced(Lists &outputs, Tensors &inputs,
                                  const c10d::AllgatherOptions &options) override;
  WorkPointer allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                              const c10d::AllgatherOptions &options) override;
  WorkPointer gather(Lists &outputs, Tensors &inputs, const c10d::GatherOptions &options) override;
  WorkPointer scatter(Tensors &outputs, Lists &inputs,
                      const c10d::ScatterOptions &options) override;
  WorkPointer reduce_scatter(Tensors &outputs, Lists &inputs,
                             const c10d::ReduceScatterOptions &options) override;
  WorkPointer _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                   const c10d::ReduceScatterOptions &options) override;
  WorkPointer reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                              const c10d::ReduceScatterOptions &options) override;
  WorkPointer alltoall_base(at::Tensor &output, at::Tensor &input,
                            std::vector<int64_t> &outputSplits, std::vector<int64_t> &inputSplits,
                            const c10d::AllToAllOptions &options) override;
  WorkPointer alltoall(Tensors &outputs, Tensors &inputs,
                       const c10d::AllToAllOptions &options) override;
  WorkPointer send(Tensors &tensors, int to, int tag) override;
  WorkPointer recv(Tensors &tensors, int from, int tag) override;
  WorkPointer recvAnysource(Tensors &tensors, int tag) override;
  WorkPointer barrier(const c10d::BarrierOptions &options) override;

private:
  /// A collective, and what belongs to it.
  struct Request {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    const char *title = nullptr; ///< for profiles: "braid:all_reduce"
    std::string signature;
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
    Tensors inputs;               ///< for profiles
    Tensors outputs;              ///< of the work
    Tensors kept;                 ///< memory that is in use until the end
    std::function<void()> finish; ///< completes the outputs, if it is there
    // One of the two.
    runtime::GroupCollective collective;
    std::vector<runtime::GroupMessage> messages;
    bool isExchange = false;
  };
  WorkPointer start(Request request);
  WorkPointer startReduction(Request request, const Reduction &reduction, const Tensors &inputs,
                             const Tensors &outputs);
  WorkPointer reduceScatter(const char *operation, c10d::OpType type, const Tensors &outputs,
                            const Tensors &inputs, const c10d::ReduceScatterOptions &options);
  WorkPointer allGatherInto(const char *operation, c10d::OpType type, const Tensors &outputs,
                            const Tensors &inputs, const c10d::AllgatherOptions &options);
  WorkPointer receive(Tensors &tensors, int from, int tag);
  void meet(const c10::intrusive_ptr<c10d::Store> &store, std::chrono::milliseconds timeout);
  void checkRank(const char *operation, const char *what, int64_t rank) const;
  int64_t limitNs(std::chrono::milliseconds timeout) const;

  std::unique_ptr<runtime::Group> group;
  std::chrono::milliseconds defaultTimeout;
  std::atomic<uint64_t> numbers{0};
};

} // namespace braid::c10d_backend
#endif // BRAID_C10D_BACKEND_H
