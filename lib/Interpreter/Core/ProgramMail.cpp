//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramMail.h"
#include "braid/Base/StatusMacros.h"

namespace braid::interp {

using runtime::Code;

namespace {
std::string place(const std::array<int64_t, 3> &at) {
  return "from rank " + std::to_string(at[1]) + " to rank " + std::to_string(at[2]) +
         " on channel " + std::to_string(at[0]);
}
} // namespace

Result<ProgramHalf> halfOf(const Collective &collective, const runtime::Mesh &mesh, int64_t rank) {
  ASSIGN_OR_RETURN(std::vector<int64_t> ranks, mesh.group(rank, collective.axes));
  ASSIGN_OR_RETURN(int64_t position, mesh.groupPosition(rank, collective.axes));
  ProgramHalf half;
  half.sends = collective.kind == CollectiveKind::send;
  for (auto [source, target] : collective.pairs)
    if ((half.sends ? source : target) == position)
      half.at = {collective.channel, ranks.at(static_cast<size_t>(source)),
                 ranks.at(static_cast<size_t>(target))};
  return half;
}

bool ProgramMail::ready(const ProgramHalf &half) const {
  if (half.sends || !half.at)
    return true;
  auto it = sent.find(*half.at);
  return it != sent.end() && !it->second.empty();
}

void ProgramMail::send(const ProgramHalf &half, std::vector<Tensor> values) {
  if (half.at)
    sent[*half.at].push_back(std::move(values));
}

Result<std::vector<Tensor>> ProgramMail::receive(const ProgramHalf &half,
                                                 const std::vector<ValueType> &expected) {
  std::vector<Tensor> zeros;
  for (const ValueType &type : expected)
    zeros.push_back(Tensor::zeros(type.dtype, type.shape));
  if (!half.at)
    return zeros;
  std::deque<std::vector<Tensor>> &waiting = sent[*half.at];
  std::vector<Tensor> values = std::move(waiting.front());
  waiting.pop_front();
  auto types = [](const std::vector<Tensor> &tensors) {
    std::string text = "(";
    for (const Tensor &tensor : tensors)
      text += (text.size() > 1 ? ", " : "") + tensor.typeString();
    return text + ")";
  };
  if (types(values) != types(zeros))
    return Status::error("expects " + types(zeros) + " " + place(*half.at) + ", which were sent " +
                             types(values),
                         Code::checkFailed);
  return values;
}

Status ProgramMail::unreceived() const {
  for (const auto &[at, waiting] : sent)
    if (!waiting.empty())
      return Status::error("what was sent " + place(at) + " is never received", Code::checkFailed);
  return {};
}

} // namespace braid::interp
