//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sends and receives on one device. A send ends when its values are in the message's memory, and
// waits for the receive of the message that was there before (Collective/MessageSlots.h).
//
//===----------------------------------------------------------------------===//
#include "Exchange.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Collective/MessageSlots.h"

namespace braid::runtime::cuda {

/// Gives commands to a rank's stream, behind an event and before another one; both may be null.
static Exchange onStream(const Member &member, CUevent awaited, std::vector<StreamCommand> commands,
                         CUevent recorded) {
  return [member, awaited, commands = std::move(commands), recorded]() -> Status {
    const Driver &api = member.device->device->api();
    if (awaited)
      BRAID_CUDA_TRY(api, cuStreamWaitEvent, member.stream, awaited, 0);
    for (const StreamCommand &command : commands)
      RETURN_IF_ERROR(command(member.stream));
    if (recorded)
      BRAID_CUDA_TRY(api, cuEventRecordWithFlags, recorded, member.stream, kEventRecordDefault);
    return {};
  };
}

Result<Exchange> makeSend(const DeviceMessage &message, const DeviceMessage *previous) {
  const Member &sender = message.sender;
  std::vector<StreamCommand> commands;
  std::byte *to = pointer(message.memory->get());
  for (size_t v = 0; v < sender.collective->values.size(); ++v) {
    const CollectiveValue &value = sender.collective->values[v];
    RETURN_IF_ERROR(append(commands, makeCopy({sender.input(v), to, value.part}, *sender.device)));
    to += MessageSlots::roundedBytes(value);
  }
  // Its receive was enqueued before: commands are in an order in which a send waits for room.
  const CUevent room = previous ? previous->taken.get() : nullptr;
  return onStream(sender, room, std::move(commands), message.sent.get());
}

Result<Exchange> makeReceive(const Member &receiver, const DeviceMessage &message) {
  std::vector<StreamCommand> commands;
  const std::byte *from = pointer(message.memory->get());
  for (size_t v = 0; v < receiver.collective->values.size(); ++v) {
    const CollectiveValue &value = receiver.collective->values[v];
    RETURN_IF_ERROR(
        append(commands, makeCopy({from, receiver.output(v), value.part}, *receiver.device)));
    from += MessageSlots::roundedBytes(value);
  }
  return onStream(receiver, message.sent.get(), std::move(commands), message.taken.get());
}

Exchange makeReceiveOfZeros(const Member &receiver) {
  std::vector<StreamCommand> commands;
  for (size_t v = 0; v < receiver.collective->values.size(); ++v)
    if (StreamCommand fill =
            makeFill(receiver.collective->values[v], receiver.output(v), *receiver.device))
      commands.push_back(std::move(fill));
  return onStream(receiver, nullptr, std::move(commands), nullptr);
}

} // namespace braid::runtime::cuda
