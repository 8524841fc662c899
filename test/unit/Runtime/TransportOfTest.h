//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A transport whose collectives a test runs; memory and groups are those of threads.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_TRANSPORTOFTEST_H
#define BRAID_TEST_UNIT_RUNTIME_TRANSPORTOFTEST_H

#include "runtime/lib/Collective/Transport.h"

namespace braid::runtime::testing {

/// Of two ranks, without sends and recvs.
class TransportOfTest : public Transport {
public:
  const char *name() const override { return memory->name(); }
  Status allocate(size_t bytes) override { return memory->allocate(bytes); }
  SymmetricHeap heap(int64_t rank) const override { return memory->heap(rank); }
  ProcessGroup *group(const std::vector<int64_t> &ranks, Queue queue) override {
    return memory->group(ranks, queue);
  }
  MessageSlot *messageSlot(const Collective &, size_t) override { return nullptr; }
  Status prepare() override { return {}; }
  void reset() override {}
  bool sendOrReceive(const Collective &, const SymmetricHeap &, RunControl &,
                     QueueState &) override {
    return false;
  }

private:
  std::unique_ptr<Transport> memory = createThreadsTransport(2);
};

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_TRANSPORTOFTEST_H
