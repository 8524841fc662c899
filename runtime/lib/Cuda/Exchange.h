//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives on streams, enqueued for all ranks of a group at once. NCCL runs them where each rank
// has a GPU of its own; where ranks share one, which NCCL refuses, they copy from each other's
// memory.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_EXCHANGE_H
#define BRAID_CUDA_EXCHANGE_H

#include "Nccl.h"
#include "StreamCommand.h"

namespace braid::runtime::cuda {

/// One rank's side of a collective. The heap is the rank's own with NCCL, else that of all ranks.
struct Member {
  const std::byte *input(size_t v) const {
    return heap.peer(heap.rank, collective->values[v].input.offset);
  }
  std::byte *output(size_t v) const {
    return heap.peer(heap.rank, collective->values[v].output.offset);
  }
  const Collective *collective;
  SymmetricHeap heap;
  RankDevice *device;
  CUstream stream; ///< of its queue
  uint64_t number; ///< of the command on that queue, from 1 on
};

/// Enqueues a collective on the streams of its members. When a stream has done what it was given,
/// its member's outputs are complete and no other member reads its inputs any more. Empty where
/// there is nothing to do.
using Exchange = std::function<Status()>;

Result<Exchange> makeCopyExchange(const std::vector<Member> &members);

/// A message from a send to its receive, in memory of the sender's device.
struct DeviceMessage {
  Member sender;
  std::shared_ptr<Memory> memory; ///< of its slot
  Event sent;
  Event taken; ///< if it is received on the same device
};
/// Copies the values to the message, on the sender's stream. `previous` had the memory before; null
/// if none had.
Result<Exchange> makeSend(const DeviceMessage &message, const DeviceMessage *previous);
/// Copies them from the message, on the same device.
Result<Exchange> makeReceive(const Member &receiver, const DeviceMessage &message);
/// Writes zeros, for a rank that is no target.
Exchange makeReceiveOfZeros(const Member &receiver);

/// A group's communicators, by position.
struct Communicators {
  std::shared_ptr<const Nccl> nccl;
  std::vector<ncclComm_t> members;
  static Result<std::shared_ptr<Communicators>> create(std::shared_ptr<const Nccl> nccl,
                                                       const std::vector<int> &devices);
  ~Communicators();
  /// The error of a collective that was enqueued.
  Status check() const;
  bool lost = false; ///< a collective did not end
};
Result<Exchange> makeNcclExchange(const std::vector<Member> &members,
                                  const std::shared_ptr<Communicators> &communicators);
/// Receives from the sender's device, where the sender's stream waits for the receiver's to arrive.
/// The positions are those of sender and receiver among the communicators.
Exchange makeNcclReceive(const Member &receiver, const DeviceMessage &message,
                         size_t senderPosition, size_t receiverPosition,
                         const std::shared_ptr<Communicators> &communicators);

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_EXCHANGE_H
