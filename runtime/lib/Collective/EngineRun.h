//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A collective that a queue has begun, on the engine.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_ENGINERUN_H
#define BRAID_COLLECTIVE_ENGINERUN_H

#include "Engine.h"

#include <functional>

namespace braid::runtime {

class EngineRun : public CollectiveRun {
public:
  /// The error for a lost peer, with where it was; may be empty.
  using DescribeLoss = std::function<Status(int64_t peer, const Status &error)>;
  explicit EngineRun(const VectorKernels &kernels, net::Link *link = nullptr,
                     const DescribeLoss *describeLoss = nullptr)
      : engine(kernels, link), link(link), describeLoss(describeLoss) {}

  /// Begins a collective on the member's next run; null when that fails, in `control`.
  static EngineRun *begin(const Collective &c, GroupMember &member, const SymmetricHeap &heap,
                          RunControl &control, QueueState &self);
  void reserve(const Collective &c) { engine.reserve(c); }
  bool advance() override;
  bool wait() override;
  void abandon() override;
  void traceSteps() override { engine.trace = &spans; }
  const std::vector<StepSpan> *steps() const override { return &spans; }

private:
  void fail(const Status &status);

  Engine engine;
  std::vector<StepSpan> spans;
  net::Link *link;
  const DescribeLoss *describeLoss;
  RunControl *control = nullptr;
  QueueState *self = nullptr;
};

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_ENGINERUN_H
