//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramWriter.h"

#include "braid/Base/LibraryKernels.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Version.h"

#include <algorithm>

namespace braid::runtime {

namespace fb = braid::program;

static std::unique_ptr<fb::QueueT> queueOf(fb::QueueKind kind) {
  auto queue = std::make_unique<fb::QueueT>();
  queue->kind = kind;
  queue->name = name(static_cast<QueueKind>(kind));
  return queue;
}

ProgramWriter::ProgramWriter(int64_t ranks) {
  manifest.producer = std::string("braid ") + version();
  manifest.modelName = "calibration";
  manifest.mesh.axes = {{"r", ranks}};
  manifest.transports = {"threads", "shm"};
  manifest.entries.resize(1);
  manifest.entries[0].name = "main";
  contents.version = kProgramVersion;
  contents.mesh = std::make_unique<fb::MeshT>();
  contents.mesh->axes.push_back(std::make_unique<fb::MeshAxisT>());
  contents.mesh->axes[0]->name = "r";
  contents.mesh->axes[0]->size = ranks;
  contents.queues.push_back(queueOf(fb::QueueKind::compute));
  contents.queues.push_back(queueOf(fb::QueueKind::communication));
  contents.entries.push_back(std::make_unique<fb::EntryT>());
  contents.entries[0]->name = "main";
  addProcedure("main");
}

void ProgramWriter::addProcedure(const std::string &name) {
  auto procedure = std::make_unique<fb::ProcedureT>();
  procedure->name = name;
  for (size_t i = 0; i < contents.queues.size(); ++i)
    procedure->streams.push_back(std::make_unique<fb::StreamT>());
  contents.procedures.push_back(std::move(procedure));
}

template <typename Op> void ProgramWriter::add(Queue queue, Op op) {
  auto command = std::make_unique<fb::CommandT>();
  command->op.Set(std::move(op));
  main().streams[queue]->commands.push_back(std::move(command));
}

ProgramWriter::View ProgramWriter::view(fb::Space space, uint64_t &arena, uint64_t offset,
                                        const std::vector<int64_t> &shape) {
  auto view = std::make_unique<fb::ViewT>();
  view->space = space;
  view->offset_bytes = offset;
  view->dtype = fb::DType::f32;
  view->shape = shape;
  view->strides.assign(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    view->strides[d - 1] = view->strides[d] * shape[d];
  const auto bytes = static_cast<uint64_t>(view->strides[0] * shape[0]) * sizeof(float);
  arena =
      std::max(arena, (offset + bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment);
  return view;
}

ProgramWriter::View ProgramWriter::local(uint64_t offset, const std::vector<int64_t> &shape) {
  return view(fb::Space::local, main().local_bytes, offset, shape);
}
ProgramWriter::View ProgramWriter::symmetric(uint64_t offset, const std::vector<int64_t> &shape) {
  return view(fb::Space::symmetric, main().symmetric_bytes, offset, shape);
}

uint32_t ProgramWriter::nothing() {
  auto kernel = std::make_unique<fb::KernelT>();
  kernel->symbol = "nothing";
  kernel->num_operands = 1;
  kernels["nothing"] = [](void *const *) {};
  contents.kernels.push_back(std::move(kernel));
  return static_cast<uint32_t>(contents.kernels.size() - 1);
}

void ProgramWriter::launchNothing(uint32_t kernel) {
  fb::LaunchT launch;
  launch.kernel = kernel;
  launch.operands.push_back(local(0, {1, 16}));
  launch.row_operand = {true};
  launch.rows = 1;
  add(kComputeQueue, std::move(launch));
}

void ProgramWriter::matmul(int64_t m, int64_t n, int64_t k) {
  const std::string symbol =
      "matmul " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  uint32_t number = 0;
  while (number < contents.kernels.size() && contents.kernels[number]->symbol != symbol)
    ++number;
  if (number == contents.kernels.size()) {
    auto kernel = std::make_unique<fb::KernelT>();
    kernel->symbol = symbol;
    kernel->num_operands = 3;
    kernel->library = std::make_unique<fb::LibraryCallT>();
    kernel->library->name = "matmul";
    kernel->library->integers = {0, 1, 0};
    contents.kernels.push_back(std::move(kernel));
  }
  fb::LaunchT launch;
  launch.kernel = number;
  const auto lhs = static_cast<uint64_t>(m * k) * sizeof(float),
             rhs = static_cast<uint64_t>(n * k) * sizeof(float);
  launch.operands.push_back(local(0, {m, k}));
  launch.operands.push_back(local(lhs, {n, k}));
  launch.operands.push_back(local(lhs + rhs, {m, n}));
  launch.rows = m;
  add(kComputeQueue, std::move(launch));
}

void ProgramWriter::copy(View from, View to) {
  fb::CopyT copy;
  copy.source = std::move(from);
  copy.dest = std::move(to);
  add(kComputeQueue, std::move(copy));
}

void ProgramWriter::callOfNothing(uint32_t kernel) {
  if (!hasCallee) {
    addProcedure("callee");
    fb::ProcedureT &callee = *contents.procedures.back();
    callee.local_bytes = kFrameAlignment;
    auto command = std::make_unique<fb::CommandT>();
    fb::LaunchT launch;
    launch.kernel = kernel;
    launch.operands.push_back(local(0, {1, 16}));
    launch.row_operand = {true};
    launch.rows = 1;
    command->op.Set(std::move(launch));
    callee.streams[kComputeQueue]->commands.push_back(std::move(command));
    hasCallee = true;
  }
  for (Queue queue = 0; queue < contents.queues.size(); ++queue) {
    fb::CallT call;
    call.procedure = 1;
    add(queue, std::move(call));
  }
}

void ProgramWriter::eventThereAndBack() {
  for (const auto &[from, to] :
       {std::pair(kComputeQueue, kCommunicationQueue), {kCommunicationQueue, kComputeQueue}}) {
    fb::RecordT record;
    record.event = main().num_events;
    add(from, std::move(record));
    fb::AwaitT await;
    await.event = main().num_events++;
    add(to, std::move(await));
  }
}

uint32_t ProgramWriter::start(CollectiveKind kind, const std::string &identity, View input,
                              View output, const std::vector<std::pair<int64_t, int64_t>> &pairs) {
  fb::RecordT record;
  record.event = main().num_events;
  add(kComputeQueue, std::move(record));
  fb::AwaitT await;
  await.event = main().num_events++;
  add(kCommunicationQueue, std::move(await));
  fb::CollectiveStartT start;
  start.kind = static_cast<fb::CollectiveKind>(kind);
  start.axes.push_back(std::make_unique<fb::AxisRefT>());
  start.axes[0]->name = "r";
  start.inputs.push_back(std::move(input));
  start.outputs.push_back(std::move(output));
  start.identity = identity;
  for (const auto &[source, target] : pairs)
    for (int64_t position : {source, target})
      start.pairs.push_back(static_cast<uint32_t>(position));
  start.done = main().num_events;
  add(kCommunicationQueue, std::move(start));
  return main().num_events++;
}

void ProgramWriter::wait(uint32_t event) {
  fb::CollectiveWaitT wait;
  wait.event = event;
  add(kComputeQueue, std::move(wait));
}

Result<ProgramWriter::Ready> ProgramWriter::load(WorldOptions options) {
  // Models have large arenas, which are in huge pages but for their ends.
  constexpr uint64_t kHugePage = uint64_t(1) << 21;
  for (uint64_t *arena : {&main().local_bytes, &main().symmetric_bytes})
    if (*arena > 0)
      *arena = (*arena + kHugePage - 1) / kHugePage * kHugePage;
  flatbuffers::FlatBufferBuilder buffer;
  fb::FinishProgramBuffer(buffer, fb::Program::Pack(buffer, &contents));
  const auto *data = reinterpret_cast<const std::byte *>(buffer.GetBufferPointer());
  ASSIGN_OR_RETURN(
      Bundle bundle,
      Bundle::create({manifest, {{manifest.programMember, Bytes(data, data + buffer.GetSize())}}}));
  options.kernels = &kernels;
  ASSIGN_OR_RETURN(std::shared_ptr<const World> world, World::create(options));
  Ready ready;
  ASSIGN_OR_RETURN(ready.model,
                   Model::load(world, std::make_shared<const Bundle>(std::move(bundle))));
  ASSIGN_OR_RETURN(ready.execution, ready.model->execution());
  return ready;
}

} // namespace braid::runtime
