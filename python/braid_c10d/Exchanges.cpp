//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives of which each rank knows its own messages, and sends and receives.
//
//===----------------------------------------------------------------------===//
#include "Backend.h"
#include "Work.h"

#include <torch/csrc/distributed/c10d/Utils.hpp>

namespace braid::c10d_backend {

namespace {

using Tensors = std::vector<at::Tensor>;

/// The messages of an exchange, and the memory that they use.
struct Messages {
  std::vector<runtime::GroupMessage> all;
  Tensors kept;
  Targets targets;

  void send(int64_t to, const at::Tensor &tensor) { add(true, to, packed(tensor)); }
  void receive(int64_t from, const at::Tensor &tensor) { add(false, from, targets.add(tensor)); }

private:
  void add(bool isSend, int64_t peer, const at::Tensor &memory) {
    all.push_back({isSend, peer, memory.data_ptr(), static_cast<int64_t>(memory.nbytes())});
    kept.push_back(memory);
  }
};

/// Refuses lists that do not have a tensor like this one for each rank.
void checkList(const char *operation, const Tensors &list, const at::Tensor &like, int ranks) {
  check(operation, list);
  check(operation, like);
  TORCH_CHECK_VALUE(static_cast<int>(list.size()) == ranks, "braid: ", operation,
                    " expects a list of ", ranks, " tensors, got ", list.size());
  for (const at::Tensor &tensor : list)
    TORCH_CHECK_VALUE(tensor.numel() == like.numel() && tensor.scalar_type() == like.scalar_type(),
                      "braid: ", operation, " expects tensors of the same size and type, got ",
                      describe({tensor}), " and ", describe({like}));
}

} // namespace

Backend::WorkPointer Backend::allgather(Lists &outputs, Tensors &inputs,
                                        const c10d::AllgatherOptions &options) {
  TORCH_CHECK_VALUE(outputs.size() == 1 && inputs.size() == 1,
                    "braid: all_gather expects one tensor and one list, got ", inputs.size(),
                    " and ", outputs.size());
  checkList("all_gather", outputs[0], inputs[0], getSize());
  Lists transposed;
  for (const at::Tensor &output : outputs[0])
    transposed.push_back({output});
  return allgather_coalesced(transposed, inputs, options);
}

Backend::WorkPointer Backend::allgather_coalesced(Lists &outputs, Tensors &inputs,
                                                  const c10d::AllgatherOptions &options) {
  TORCH_CHECK_VALUE(static_cast<int>(outputs.size()) == getSize(),
                    "braid: all_gather_coalesced expects a list for each of ", getSize(),
                    " ranks, got ", outputs.size());
  for (const Tensors &list : outputs)
    TORCH_CHECK_VALUE(list.size() == inputs.size(), "braid: all_gather_coalesced expects lists of ",
                      inputs.size(), " tensors, got ", list.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensors ofRanks;
    for (const Tensors &list : outputs)
      ofRanks.push_back(list[i]);
    checkList("all_gather", ofRanks, inputs[i], getSize());
  }
  Request request;
  request.type = inputs.size() == 1 ? c10d::OpType::ALLGATHER : c10d::OpType::ALLGATHER_COALESCED;
  request.title = "braid:all_gather";
  request.timeout = options.timeout;
  request.inputs = inputs;
  request.signature = "all_gather to lists (" + describe(inputs) + ")";
  request.isExchange = true;
  Messages messages;
  Tensors memory;
  for (const at::Tensor &input : inputs)
    memory.push_back(packed(input));
  // The ranks begin with their next ones, so that not all send to one.
  for (int step = 0; step < getSize(); ++step) {
    const int to = (getRank() + step) % getSize();
    for (size_t i = 0; i < inputs.size(); ++i) {
      messages.send(to, memory[i]);
      messages.receive(to, outputs[static_cast<size_t>(to)][i]);
    }
  }
  for (const Tensors &list : outputs)
    request.outputs.insert(request.outputs.end(), list.begin(), list.end());
  request.messages = std::move(messages.all);
  request.kept = std::move(messages.kept);
  request.finish = [targets = std::move(messages.targets)] { targets.finish(); };
  return start(std::move(request));
}

Backend::WorkPointer Backend::gather(Lists &outputs, Tensors &inputs,
                                     const c10d::GatherOptions &options) {
  const bool isRoot = getRank() == options.rootRank;
  checkRank("gather", "a root", options.rootRank);
  TORCH_CHECK_VALUE(inputs.size() == 1 && outputs.size() == (isRoot ? 1 : 0),
                    "braid: gather expects one tensor and, on the root only, one list");
  check("gather", inputs);
  Request request;
  request.type = c10d::OpType::GATHER;
  request.title = "braid:gather";
  request.timeout = options.timeout;
  request.inputs = inputs;
  request.signature =
      "gather (to " + std::to_string(options.rootRank) + ", " + describe(inputs) + ")";
  request.isExchange = true;
  Messages messages;
  messages.send(options.rootRank, inputs[0]);
  if (isRoot) {
    checkList("gather", outputs[0], inputs[0], getSize());
    for (int from = 0; from < getSize(); ++from)
      messages.receive(from, outputs[0][static_cast<size_t>(from)]);
    request.outputs = outputs[0];
  }
  request.messages = std::move(messages.all);
  request.kept = std::move(messages.kept);
  request.finish = [targets = std::move(messages.targets)] { targets.finish(); };
  return start(std::move(request));
}

Backend::WorkPointer Backend::scatter(Tensors &outputs, Lists &inputs,
                                      const c10d::ScatterOptions &options) {
  const bool isRoot = getRank() == options.rootRank;
  checkRank("scatter", "a root", options.rootRank);
  TORCH_CHECK_VALUE(outputs.size() == 1 && inputs.size() == (isRoot ? 1 : 0),
                    "braid: scatter expects one tensor and, on the root only, one list");
  check("scatter", outputs);
  Request request;
  request.type = c10d::OpType::SCATTER;
  request.title = "braid:scatter";
  request.timeout = options.timeout;
  request.inputs = isRoot ? inputs[0] : Tensors();
  request.outputs = outputs;
  request.signature =
      "scatter (from " + std::to_string(options.rootRank) + ", " + describe(outputs) + ")";
  request.isExchange = true;
  Messages messages;
  if (isRoot) {
    checkList("scatter", inputs[0], outputs[0], getSize());
    for (int to = 0; to < getSize(); ++to)
      messages.send(to, inputs[0][static_cast<size_t>(to)]);
  }
  messages.receive(options.rootRank, outputs[0]);
  request.messages = std::move(messages.all);
  request.kept = std::move(messages.kept);
  request.finish = [targets = std::move(messages.targets)] { targets.finish(); };
  return start(std::move(request));
}

Backend::WorkPointer Backend::alltoall(Tensors &outputs, Tensors &inputs,
                                       const c10d::AllToAllOptions &options) {
  check("all_to_all", outputs);
  check("all_to_all", inputs);
  TORCH_CHECK_VALUE(static_cast<int>(outputs.size()) == getSize() &&
                        outputs.size() == inputs.size(),
                    "braid: all_to_all expects lists of ", getSize(), " tensors, got ",
                    inputs.size(), " and ", outputs.size());
  const at::ScalarType type = inputs[0].scalar_type();
  for (const Tensors *list : {&inputs, &outputs})
    for (const at::Tensor &tensor : *list)
      TORCH_CHECK_TYPE(tensor.scalar_type() == type,
                       "braid: all_to_all expects tensors of one type, got ", nameOf(type), " and ",
                       nameOf(tensor.scalar_type()));
  const auto own = static_cast<size_t>(getRank());
  TORCH_CHECK_VALUE(inputs[own].numel() == outputs[own].numel(), "braid: all_to_all: rank ",
                    getRank(), " keeps ", inputs[own].numel(),
                    " elements for itself where it expects ", outputs[own].numel());
  Request request;
  request.type = c10d::OpType::ALLTOALL;
  request.title = "braid:all_to_all";
  request.timeout = options.timeout;
  request.inputs = inputs;
  request.outputs = outputs;
  request.signature = "all_to_all (" + nameOf(type) + ")";
  request.isExchange = true;
  Messages messages;
  for (int step = 0; step < getSize(); ++step) {
    const int to = (getRank() + step) % getSize();
    messages.send(to, inputs[static_cast<size_t>(to)]);
    messages.receive(to, outputs[static_cast<size_t>(to)]);
  }
  request.messages = std::move(messages.all);
  request.kept = std::move(messages.kept);
  request.finish = [targets = std::move(messages.targets)] { targets.finish(); };
  return start(std::move(request));
}

/// The rows for each rank, packed.
static Tensors rowsOfRanks(const at::Tensor &tensor, const std::vector<int64_t> &splits,
                           int ranks) {
  c10d::checkSplitSizes(splits, tensor, ranks);
  const int64_t even = tensor.size(0) / ranks;
  Tensors parts;
  for (int64_t rank = 0, row = 0; rank < ranks; ++rank) {
    const int64_t rows = splits.empty() ? even : splits[static_cast<size_t>(rank)];
    TORCH_CHECK_VALUE(rows >= 0, "braid: all_to_all expects sizes of 0 or more, got ", rows);
    parts.push_back(tensor.detach().narrow(0, row, rows));
    row += rows;
  }
  return parts;
}

Backend::WorkPointer Backend::alltoall_base(at::Tensor &output, at::Tensor &input,
                                            std::vector<int64_t> &outputSplits,
                                            std::vector<int64_t> &inputSplits,
                                            const c10d::AllToAllOptions &options) {
  check("all_to_all_single", output);
  check("all_to_all_single", input);
  TORCH_CHECK_VALUE(output.dim() > 0 && input.dim() > 0,
                    "braid: all_to_all_single expects tensors with a dimension");
  Tensors outputs = rowsOfRanks(output, outputSplits, getSize()),
          inputs = rowsOfRanks(input, inputSplits, getSize());
  return alltoall(outputs, inputs, options);
}

//===----------------------------------------------------------------------===//
// Sends and receives
//===----------------------------------------------------------------------===//

static void checkMessage(const char *operation, const Tensors &tensors, int tag) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "braid: ", operation, " expects one tensor, got ",
                    tensors.size());
  check(operation, tensors);
  TORCH_CHECK_VALUE(tag >= 0, "braid: ", operation, " expects a tag of 0 or more, got ", tag);
}

Backend::WorkPointer Backend::send(Tensors &tensors, int to, int tag) {
  checkMessage("send", tensors, tag);
  checkRank("send", "a rank", to);
  TORCH_CHECK_VALUE(to != getRank(), "braid: rank ", to, " cannot send to itself");
  const at::Tensor memory = packed(tensors[0]);
  auto work = c10::make_intrusive<Work>(getRank(), c10d::OpType::SEND, "braid:send", tensors,
                                        tensors, "send (" + describe(tensors) + ")", 0);
  group->send(to, static_cast<uint32_t>(tag), memory.data_ptr(),
              static_cast<int64_t>(memory.nbytes()), limitNs(c10d::kUnsetTimeout),
              [work, memory](const runtime::Status &status) { work->end(status); });
  return work;
}

Backend::WorkPointer Backend::recv(Tensors &tensors, int from, int tag) {
  checkMessage("recv", tensors, tag);
  checkRank("recv", "a rank", from);
  TORCH_CHECK_VALUE(from != getRank(), "braid: rank ", from, " cannot receive from itself");
  return receive(tensors, from, tag);
}

Backend::WorkPointer Backend::recvAnysource(Tensors &tensors, int tag) {
  checkMessage("recv", tensors, tag);
  return receive(tensors, -1, tag);
}

Backend::WorkPointer Backend::receive(Tensors &tensors, int from, int tag) {
  auto targets = std::make_shared<Targets>();
  const at::Tensor memory = targets->add(tensors[0]);
  auto work = c10::make_intrusive<Work>(
      getRank(), from < 0 ? c10d::OpType::RECVANYSOURCE : c10d::OpType::RECV, "braid:recv", tensors,
      tensors, "recv (" + describe(tensors) + ")", 0);
  group->receive(from, static_cast<uint32_t>(tag), memory.data_ptr(),
                 static_cast<int64_t>(memory.nbytes()), limitNs(c10d::kUnsetTimeout),
                 [work, memory, targets](const runtime::Status &status, int64_t sender) {
                   if (status.ok())
                     targets->finish();
                   work->end(status, sender);
                 });
  return work;
}

} // namespace braid::c10d_backend
