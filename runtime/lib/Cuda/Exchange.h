//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives on streams: a step of all ranks of a group at once. NCCL does them where each rank
// has a GPU of its own; where ranks share one, which NCCL refuses, they copy from each other's
// memory.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_EXCHANGE_H
#define BRAID_CUDA_EXCHANGE_H

#include "Nccl.h"
#include "StreamCommand.h"

namespace braid::runtime::cuda {

/// One rank's side of a collective. The heap is a rank's own with NCCL, that of all ranks else.
struct Member {
  const Collective *collective;
  SymmetricHeap heap;
  RankDevice *device;
  CUstream stream; ///< of its communication queue
  uint64_t number; ///< of the command on that queue, from 1 on
};

/// What a collective does on the streams of its members. On each of them the outputs are complete,
/// and nobody reads that member's inputs any more, when what was given to its stream is done.
class ExchangeCommand {
public:
  virtual ~ExchangeCommand() = default;
  virtual Status enqueue() const = 0;
};
using ExchangePtr = std::unique_ptr<const ExchangeCommand>;

Result<ExchangePtr> makeCopyExchange(const std::vector<Member> &members);

/// What a send leaves behind for its receive, in memory of the sender's device.
struct DeviceMessage {
  Member sender;
  Memory memory;
  Event sent;
};
/// The values go into the message, on the sender's stream.
Result<ExchangePtr> makeSend(const DeviceMessage &message);
/// They come out of it, on the same device.
Result<ExchangePtr> makeReceive(const Member &receiver, const DeviceMessage &message);
/// For a rank that is nobody's target.
ExchangePtr makeReceiveOfNothing(const Member &receiver);

/// A group's communicators, by position.
struct Communicators {
  std::shared_ptr<const Nccl> nccl;
  std::vector<ncclComm_t> members;
  static Result<std::shared_ptr<Communicators>> create(std::shared_ptr<const Nccl> nccl,
                                                       const std::vector<int> &devices);
  ~Communicators();
  /// What went wrong since, while collectives were under way.
  Status check() const;
  bool lost = false; ///< what they do did not end
};
Result<ExchangePtr> makeNcclExchange(const std::vector<Member> &members,
                                     const std::shared_ptr<Communicators> &communicators);
/// From the sender's device, where the sender's stream waits for the receiver's to come here. The
/// positions are those of sender and receiver among the communicators.
ExchangePtr makeNcclReceive(const Member &receiver, const DeviceMessage &message,
                            size_t senderPosition, size_t receiverPosition,
                            const std::shared_ptr<Communicators> &communicators);

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_EXCHANGE_H
