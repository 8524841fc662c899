//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramMessages.h"
#include "braid/Base/MessagesInFlight.h"
#include "braid/Base/StatusMacros.h"

namespace braid::interp {

using runtime::Code;

namespace {
std::string place(const std::array<int64_t, 3> &at) {
  return "from rank " + std::to_string(at[1]) + " to rank " + std::to_string(at[2]) + " with tag " +
         std::to_string(at[0]);
}
} // namespace

Result<ProgramTransfer> transferOf(const Collective &collective, const runtime::Mesh &mesh,
                                   int64_t rank) {
  ASSIGN_OR_RETURN(std::vector<int64_t> ranks, mesh.group(rank, collective.axes));
  ASSIGN_OR_RETURN(int64_t position, mesh.groupPosition(rank, collective.axes));
  ProgramTransfer transfer;
  transfer.sends = collective.kind == CollectiveKind::send;
  for (auto [source, target] : collective.pairs)
    if ((transfer.sends ? source : target) == position)
      transfer.at = {collective.tag, ranks.at(static_cast<size_t>(source)),
                     ranks.at(static_cast<size_t>(target))};
  return transfer;
}

bool ProgramMessages::ready(const ProgramTransfer &transfer) const {
  if (!transfer.at)
    return true;
  auto it = sent.find(*transfer.at);
  const size_t inFlight = it == sent.end() ? 0 : it->second.size();
  return transfer.sends ? inFlight < static_cast<size_t>(runtime::kMessagesInFlight) : inFlight > 0;
}

void ProgramMessages::send(const ProgramTransfer &transfer, std::vector<Tensor> values) {
  if (transfer.at)
    sent[*transfer.at].push_back(std::move(values));
}

Result<std::vector<Tensor>> ProgramMessages::receive(const ProgramTransfer &transfer,
                                                     const std::vector<ValueType> &expected) {
  std::vector<Tensor> zeros;
  for (const ValueType &type : expected)
    zeros.push_back(Tensor::zeros(type.dtype, type.shape));
  if (!transfer.at)
    return zeros;
  std::deque<std::vector<Tensor>> &waiting = sent[*transfer.at];
  std::vector<Tensor> values = std::move(waiting.front());
  waiting.pop_front();
  auto types = [](const std::vector<Tensor> &tensors) {
    std::string text = "(";
    for (const Tensor &tensor : tensors)
      text += (text.size() > 1 ? ", " : "") + tensor.typeString();
    return text + ")";
  };
  if (types(values) != types(zeros))
    return Status::error("expects " + types(zeros) + " " + place(*transfer.at) + ", got " +
                             types(values),
                         Code::checkFailed);
  return values;
}

Status ProgramMessages::unreceived() const {
  for (const auto &[at, waiting] : sent)
    if (!waiting.empty())
      return Status::error("the message " + place(at) + " is never received", Code::checkFailed);
  return {};
}

} // namespace braid::interp
