//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sends and receives on one device. A send is over when its values are in memory of their own, so
// that it does not wait for its receive (Collective/MessageSlots.h).
//
//===----------------------------------------------------------------------===//
#include "Exchange.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Collective/MessageSlots.h"

namespace braid::runtime::cuda {

namespace {

/// What one rank gives to its stream.
class Half : public ExchangeCommand {
public:
  explicit Half(const Member &member) : member(member) {}
  Status enqueue() const override {
    const Driver &api = member.device->device->api();
    if (awaited)
      BRAID_CUDA_TRY(api, cuStreamWaitEvent, member.stream, awaited, 0);
    for (const StreamCommandPtr &work : commands)
      RETURN_IF_ERROR(work->enqueue(member.stream));
    if (recorded)
      BRAID_CUDA_TRY(api, cuEventRecordWithFlags, recorded, member.stream, kEventRecordDefault);
    return {};
  }
  Status copy(const std::byte *source, std::byte *dest, int64_t bytes) {
    Result<StreamCommandPtr> work = makeCopy({source, dest, bytes, {}, {}, {}}, *member.device);
    if (work.ok() && *work)
      commands.push_back(std::move(*work));
    return work.status();
  }
  void fill(std::byte *data, int64_t bytes) {
    if (StreamCommandPtr work = makeFill(data, bytes, *member.device))
      commands.push_back(std::move(work));
  }

  CUevent awaited = nullptr, recorded = nullptr;

private:
  Member member;
  std::vector<StreamCommandPtr> commands;
};

int64_t bytesOf(const CollectiveValue &value) {
  return value.numElements() * byteSize(value.dtype);
}

} // namespace

Result<ExchangePtr> makeSend(const DeviceMessage &message) {
  const Member &sender = message.sender;
  auto half = std::make_unique<Half>(sender);
  std::byte *to = pointer(message.memory.get());
  for (const CollectiveValue &value : sender.collective->values) {
    RETURN_IF_ERROR(
        half->copy(sender.heap.peer(sender.heap.rank, value.inputOffset), to, bytesOf(value)));
    to += MessageSlots::roundedBytes(value);
  }
  half->recorded = message.sent.get();
  return ExchangePtr(std::move(half));
}

Result<ExchangePtr> makeReceive(const Member &receiver, const DeviceMessage &message) {
  auto half = std::make_unique<Half>(receiver);
  half->awaited = message.sent.get();
  const std::byte *from = pointer(message.memory.get());
  for (const CollectiveValue &value : receiver.collective->values) {
    RETURN_IF_ERROR(half->copy(from, receiver.heap.peer(receiver.heap.rank, value.outputOffset),
                               bytesOf(value)));
    from += MessageSlots::roundedBytes(value);
  }
  return ExchangePtr(std::move(half));
}

ExchangePtr makeReceiveOfNothing(const Member &receiver) {
  auto half = std::make_unique<Half>(receiver);
  for (const CollectiveValue &value : receiver.collective->values)
    half->fill(receiver.heap.peer(receiver.heap.rank, value.outputOffset), bytesOf(value));
  return half;
}

} // namespace braid::runtime::cuda
