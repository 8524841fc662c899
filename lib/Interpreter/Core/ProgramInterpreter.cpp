//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/ProgramInterpreter.h"
#include "ProgramCompute.h"
#include "ProgramMessages.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Weights.h"
#include "braid/Program/program_generated.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <tuple>

namespace braid::interp {

using runtime::Code;
using runtime::HostTensor;

struct ProgramInterpreter::State {
  ProgramRoles program;
  runtime::Mesh mesh;
  runtime::Entry entry;
  std::vector<runtime::KernelFunction> kernels;
  /// values[rank][i]: the rank's shard of parameter, state or operand i before a run.
  std::vector<std::vector<AlignedBytes>> values;
  bool weightsLoaded = false;
  std::vector<bool> inputSet;

  size_t operandIndex() const { return entry.parameters.size() + entry.states.size(); }
  size_t numInputs() const { return operandIndex() + entry.operands.size(); }
  /// None where the rank does not have the argument.
  uint64_t bytesOf(int64_t rank, size_t argument) const {
    return program.of(rank).regionBytes[kFirstArgument + argument];
  }
  /// All roles have the same regions, queues and numbers of events.
  const ExpandedProgram &first() const { return program.roles.front(); }
};

namespace {

/// A rendezvous of the ranks of a group.
struct Rendezvous {
  std::vector<int64_t> ranks;                   ///< by position
  std::vector<const ProgramCommand *> commands; ///< by position; null: has not arrived
  std::vector<std::vector<Tensor>> results;     ///< by position; empty until all have arrived
  size_t arrived = 0;
};

/// The progress of one queue of one rank.
struct QueueState {
  int64_t rank = 0;
  Queue queue = runtime::kComputeQueue;
  size_t next = 0;      ///< the command that runs, or begins next
  bool running = false; ///< whether it has begun
  std::shared_ptr<Rendezvous> rendezvous;
  size_t position = 0;
  std::optional<ProgramTransfer> transfer; ///< of a send or receive that has begun
  /// The weight of its next step is 2 to this power, when that begins and when it ends a command.
  int beginPace = 0, endPace = 0;
};

/// A run in one order.
class Schedule {
public:
  Schedule(const ProgramInterpreter::State &state, uint64_t seed) : state(state), random(seed) {}

  Status run() {
    RETURN_IF_ERROR(allocate());
    for (QueueState &queue : queues)
      drawPace(queue);
    std::vector<QueueState *> able;
    while (true) {
      able.clear();
      uint64_t total = 0;
      bool done = true;
      for (QueueState &queue : queues) {
        done &= isDone(queue);
        if (canStep(queue)) {
          able.push_back(&queue);
          total += weight(queue);
        }
      }
      if (done)
        return messages.unreceived();
      if (able.empty())
        return deadlock();
      // A queue changes its pace at times, so that none always lags behind.
      if (draw(64) == 0)
        drawPace(queues[draw(queues.size())]);
      uint64_t at = draw(total);
      QueueState *chosen = nullptr;
      for (QueueState *queue : able) {
        chosen = queue;
        if (at < weight(*queue))
          break;
        at -= weight(*queue);
      }
      RETURN_IF_ERROR(chosen->running ? end(*chosen) : begin(*chosen));
    }
  }

  const std::byte *argument(int64_t rank, size_t index) const {
    return regions[static_cast<size_t>(rank)][kFirstArgument + index].get();
  }

private:
  uint64_t draw(uint64_t below) { return random() % below; }
  void drawPace(QueueState &queue) {
    constexpr int kPaces[] = {12, 8, 0};
    queue.beginPace = kPaces[draw(3)];
    queue.endPace = kPaces[draw(3)];
  }
  static uint64_t weight(const QueueState &queue) {
    return uint64_t(1) << (queue.running ? queue.endPace : queue.beginPace);
  }

  Status allocate() {
    const int64_t ranks = state.mesh.numRanks();
    for (int64_t rank = 0; rank < ranks; ++rank) {
      regions.emplace_back();
      std::vector<std::byte *> addresses;
      for (size_t r = 0; r < state.first().regionBytes.size(); ++r) {
        const bool isInput = r >= kFirstArgument && r - kFirstArgument < state.numInputs();
        const bool isParameter = isInput && r - kFirstArgument < state.entry.parameters.size();
        const auto &values = state.values[static_cast<size_t>(rank)];
        // No command writes parameters, so that all runs share them.
        if (isParameter) {
          regions.back().push_back(nullptr);
          addresses.push_back(values[r - kFirstArgument].get());
          continue;
        }
        const uint64_t size = state.program.of(rank).regionBytes[r];
        AlignedBytes bytes = allocateAligned(size);
        if (!bytes)
          return Status::error("cannot allocate " + std::to_string(size) + " bytes for rank " +
                               std::to_string(rank));
        if (isInput)
          std::memcpy(bytes.get(), values[r - kFirstArgument].get(), size);
        addresses.push_back(bytes.get());
        regions.back().push_back(std::move(bytes));
      }
      memories.emplace_back(state.program.of(rank), std::move(addresses));
      events.emplace_back(state.first().numEvents);
      for (Queue queue = 0; queue < state.first().numQueues(); ++queue) {
        queues.emplace_back();
        queues.back().rank = rank;
        queues.back().queue = queue;
      }
    }
    return {};
  }

  const ProgramCommand &commandOf(const QueueState &queue) const {
    return state.program.of(queue.rank).commands(queue.queue)[queue.next];
  }
  bool isDone(const QueueState &queue) const {
    return queue.next == state.program.of(queue.rank).commands(queue.queue).size();
  }
  bool canStep(const QueueState &queue) const {
    if (isDone(queue))
      return false;
    const ProgramCommand &command = commandOf(queue);
    if (queue.transfer)
      return messages.ready(*queue.transfer);
    if (queue.rendezvous)
      return queue.rendezvous->arrived == queue.rendezvous->ranks.size();
    return !command.waits || events[static_cast<size_t>(queue.rank)][*command.event];
  }

  Status atFault(int64_t rank, const std::string &message) const {
    return Status::error("rank " + std::to_string(rank) + ": " + message, Code::checkFailed);
  }

  Status begin(QueueState &queue) {
    const ProgramCommand &command = commandOf(queue);
    if (Status status = memory(queue.rank).begin(command); !status.ok())
      return atFault(queue.rank, status.message());
    if (command.isCollective) {
      RETURN_IF_ERROR(startCollective(queue, command));
    } else if (command.writes.empty()) { // a command on events
      return end(queue);
    }
    queue.running = true;
    return {};
  }

  Status end(QueueState &queue) {
    const ProgramCommand &command = commandOf(queue);
    if (command.isCollective) {
      RETURN_IF_ERROR(queue.transfer ? finishTransfer(queue, command)
                                     : finishCollective(queue, command));
    } else if (Status status = compute(command, memory(queue.rank), state.first().program(),
                                       state.mesh, queue.rank, state.kernels);
               !status.ok()) {
      return status;
    }
    memory(queue.rank).end(command);
    if (command.event && !command.waits)
      events[static_cast<size_t>(queue.rank)][*command.event] = true;
    queue.running = false;
    ++queue.next;
    return {};
  }

  ProgramMemory &memory(int64_t rank) { return memories[static_cast<size_t>(rank)]; }

  Status startCollective(QueueState &queue, const ProgramCommand &command) {
    const Collective collective = collectiveOf(command);
    if (!collective.isPointToPoint())
      return arrive(queue, command);
    Result<ProgramTransfer> transfer = transferOf(collective, state.mesh, queue.rank);
    if (transfer.ok())
      queue.transfer = *transfer;
    return transfer.status();
  }

  /// A send posts its message; a receive stores it.
  Status finishTransfer(QueueState &queue, const ProgramCommand &command) {
    ProgramMemory &own = memory(queue.rank);
    const ProgramTransfer transfer = *queue.transfer;
    queue.transfer.reset();
    std::vector<Tensor> values;
    for (const Operand &operand : command.reads)
      values.push_back(own.load(operand.view));
    if (transfer.sends) {
      messages.send(transfer, std::move(values));
      return {};
    }
    std::vector<ValueType> expected;
    for (const Operand &operand : command.writes)
      expected.push_back({operand.view.dtype, operand.view.shape});
    Result<std::vector<Tensor>> received = messages.receive(transfer, expected);
    if (!received.ok())
      return Status::error("rank " + std::to_string(queue.rank) + ": " + command.describe() + ": " +
                               received.status().message(),
                           received.status().code());
    for (size_t v = 0; v < command.writes.size(); ++v)
      own.store(command.writes[v].view, received->at(v));
    return {};
  }

  /// The n-th collective that a queue of a rank starts on a group matches the n-th ones that this
  /// queue of the other ranks starts.
  Status arrive(QueueState &queue, const ProgramCommand &command) {
    std::vector<runtime::AxisRef> axes = groupOf(command);
    ASSIGN_OR_RETURN(std::vector<int64_t> ranks, state.mesh.group(queue.rank, axes));
    ASSIGN_OR_RETURN(int64_t position, state.mesh.groupPosition(queue.rank, axes));
    size_t number = started[{ranks, queue.queue, queue.rank}]++;
    std::shared_ptr<Rendezvous> &rendezvous = rendezvousTable[{ranks, queue.queue, number}];
    if (!rendezvous) {
      rendezvous = std::make_shared<Rendezvous>();
      rendezvous->ranks = ranks;
      rendezvous->commands.resize(ranks.size());
    }
    queue.rendezvous = rendezvous;
    queue.position = static_cast<size_t>(position);
    rendezvous->commands[queue.position] = &command;
    ++rendezvous->arrived;
    return {};
  }

  /// All ranks have arrived. The first one to finish computes the results of all, since the inputs
  /// of all are still available.
  Status finishCollective(QueueState &queue, const ProgramCommand &command) {
    Rendezvous &rendezvous = *queue.rendezvous;
    if (rendezvous.results.empty()) {
      rendezvous.results.resize(rendezvous.ranks.size());
      const Collective collective = collectiveOf(command);
      std::vector<std::vector<Tensor>> contributions(rendezvous.ranks.size());
      for (size_t i = 0; i < rendezvous.ranks.size(); ++i)
        for (const Operand &read : rendezvous.commands[i]->reads)
          contributions[i].push_back(memory(rendezvous.ranks[i]).load(read.view));
      for (size_t i = 0; i < rendezvous.ranks.size(); ++i) {
        Result<std::vector<Tensor>> results =
            applyAll(collective, contributions, static_cast<int64_t>(i));
        if (!results.ok())
          return Status::error(command.describe() + ": " + results.status().message());
        rendezvous.results[i] = std::move(*results);
      }
    }
    for (size_t v = 0; v < command.writes.size(); ++v)
      memory(queue.rank).store(command.writes[v].view, rendezvous.results[queue.position][v]);
    queue.rendezvous.reset();
    return {};
  }

  Status deadlock() const {
    std::string text = "no queue can go on:";
    for (const QueueState &queue : queues)
      if (!isDone(queue))
        text += "\n  rank " + std::to_string(queue.rank) + " is at " + commandOf(queue).describe();
    return Status::error(text, Code::checkFailed);
  }

  const ProgramInterpreter::State &state;
  std::mt19937_64 random;
  std::vector<std::vector<AlignedBytes>> regions; ///< by rank
  std::vector<ProgramMemory> memories;
  std::vector<std::vector<bool>> events;
  std::vector<QueueState> queues;
  ProgramMessages messages;
  std::map<std::tuple<std::vector<int64_t>, Queue, int64_t>, size_t> started;
  std::map<std::tuple<std::vector<int64_t>, Queue, size_t>, std::shared_ptr<Rendezvous>>
      rendezvousTable;
};

Result<HostTensor> gather(const runtime::Mesh &mesh, const char *kind,
                          const runtime::EntryValue &value,
                          const std::function<const std::byte *(int64_t)> &shard) {
  HostTensor full = HostTensor::zeros(value.dtype, value.shardedShape());
  std::map<Shape, std::pair<int64_t, HostTensor>> held; // by the box's offsets
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    if (!value.on.contains(mesh, rank))
      continue;
    Result<runtime::Box> box = runtime::localBox(mesh, rank, value.shardedShape(), value.sharding);
    if (!box.ok())
      return Status::error(std::string(kind) + " '" + value.name + "': " + box.status().message());
    HostTensor own = HostTensor::zeros(value.dtype, box->sizes);
    std::memcpy(own.data.data(), shard(rank), own.data.size());
    auto [first, isNew] = held.try_emplace(box->offsets, rank, own);
    if (!isNew && first->second.second.data != own.data)
      return Status::error("ranks " + std::to_string(first->second.first) + " and " +
                               std::to_string(rank) + " hold different values of " + kind + " '" +
                               value.name + "'",
                           Code::checkFailed);
    runtime::insertBox(full, *box, own);
  }
  if (value.paddedShape.empty())
    return full;
  return runtime::extractBox(full, {Shape(value.globalShape.size(), 0), value.globalShape});
}

} // namespace

ProgramInterpreter::ProgramInterpreter(std::unique_ptr<State> state) : state(std::move(state)) {}
ProgramInterpreter::~ProgramInterpreter() = default;

const ProgramRoles &ProgramInterpreter::program() const { return state->program; }

Result<std::unique_ptr<ProgramInterpreter>>
ProgramInterpreter::create(const runtime::Bytes &program, const runtime::Manifest &manifest,
                           const runtime::Entry &entry, const KernelLookup &kernels) {
  ASSIGN_OR_RETURN(ProgramRoles expanded, expandProgram(program, manifest, entry));
  auto state = std::make_unique<State>();
  state->program = std::move(expanded);
  state->mesh = manifest.mesh;
  state->entry = entry;
  state->inputSet.assign(entry.operands.size(), false);
  state->weightsLoaded = entry.parameters.empty();
  for (const auto &kernel : state->first().program().kernels) {
    if (kernel->library) {
      state->kernels.push_back(nullptr);
      continue;
    }
    ASSIGN_OR_RETURN(runtime::KernelFunction function, kernels(kernel->symbol));
    state->kernels.push_back(function);
  }
  for (int64_t rank = 0; rank < manifest.mesh.numRanks(); ++rank) {
    state->values.emplace_back();
    for (size_t i = 0; i < state->numInputs(); ++i) {
      AlignedBytes bytes = allocateAligned(state->bytesOf(rank, i));
      if (!bytes)
        return Status::error("cannot allocate " + std::to_string(state->bytesOf(rank, i)) +
                             " bytes for rank " + std::to_string(rank));
      if (i >= entry.parameters.size() && i < state->operandIndex())
        std::memset(bytes.get(), 0, state->bytesOf(rank, i));
      state->values.back().push_back(std::move(bytes));
    }
  }
  return std::unique_ptr<ProgramInterpreter>(new ProgramInterpreter(std::move(state)));
}

Status ProgramInterpreter::loadWeights(runtime::WeightSource &source) {
  for (size_t rank = 0; rank < state->values.size(); ++rank) {
    auto place = [&](size_t i) -> void * { return state->values[rank][i].get(); };
    RETURN_IF_ERROR(runtime::loadParameters(source, state->mesh, static_cast<int64_t>(rank),
                                            state->entry.parameters, place));
  }
  state->weightsLoaded = true;
  return {};
}

/// Writes the ranks' shards of a value to values[rank][index].
static Status setValue(ProgramInterpreter::State &state, const char *kind,
                       const runtime::EntryValue &expected, size_t index, const HostTensor &value) {
  const std::string what = std::string(kind) + " '" + expected.name + "'";
  if (value.dtype != expected.dtype || value.shape != expected.globalShape)
    return Status::error(what + " expects " + runtime::name(expected.dtype) + " " +
                         runtime::shapeString(expected.globalShape) + ", got " +
                         runtime::name(value.dtype) + " " + runtime::shapeString(value.shape));
  HostTensor full = HostTensor::zeros(expected.dtype, expected.shardedShape());
  runtime::insertBox(full, {Shape(value.shape.size(), 0), value.shape}, value);
  for (size_t rank = 0; rank < state.values.size(); ++rank) {
    if (!expected.on.contains(state.mesh, static_cast<int64_t>(rank)))
      continue;
    Result<runtime::Box> box = runtime::localBox(state.mesh, static_cast<int64_t>(rank),
                                                 expected.shardedShape(), expected.sharding);
    if (!box.ok())
      return Status::error(what + ": " + box.status().message());
    HostTensor shard = runtime::extractBox(full, *box);
    std::memcpy(state.values[rank][index].get(), shard.data.data(), shard.data.size());
  }
  return {};
}

Status ProgramInterpreter::setInput(const std::string &name, const HostTensor &value) {
  for (size_t i = 0; i < state->entry.operands.size(); ++i)
    if (state->entry.operands[i].name == name) {
      RETURN_IF_ERROR(
          setValue(*state, "input", state->entry.operands[i], state->operandIndex() + i, value));
      state->inputSet[i] = true;
      return {};
    }
  return Status::error("no input '" + name + "'");
}

Status ProgramInterpreter::setState(const std::string &name, const HostTensor &value) {
  for (size_t i = 0; i < state->entry.states.size(); ++i)
    if (state->entry.states[i].name == name)
      return setValue(*state, "state", state->entry.states[i], state->entry.parameters.size() + i,
                      value);
  return Status::error("no state '" + name + "'");
}

Result<ProgramResults> ProgramInterpreter::run(uint64_t seed) {
  if (!state->weightsLoaded)
    return Status::error("weights are missing");
  for (size_t i = 0; i < state->inputSet.size(); ++i)
    if (!state->inputSet[i])
      return Status::error("input '" + state->entry.operands[i].name + "' is missing");
  Schedule schedule(*state, seed);
  RETURN_IF_ERROR(schedule.run());
  ProgramResults results;
  auto add = [&](const char *kind, const std::vector<runtime::EntryValue> &values,
                 size_t first) -> Status {
    for (size_t i = 0; i < values.size(); ++i) {
      ASSIGN_OR_RETURN(HostTensor full, gather(state->mesh, kind, values[i], [&](int64_t rank) {
                         return schedule.argument(rank, first + i);
                       }));
      results.emplace(values[i].name, std::move(full));
    }
    return {};
  };
  RETURN_IF_ERROR(add("result", state->entry.results, state->numInputs()));
  RETURN_IF_ERROR(add("state", state->entry.states, state->entry.parameters.size()));
  return results;
}

Result<ProgramResults>
ProgramInterpreter::runSchedules(uint64_t seed, int64_t count,
                                 const std::function<void(int64_t)> &progress) {
  ProgramResults first;
  for (int64_t i = 0; i < count; ++i) {
    if (progress)
      progress(i);
    const uint64_t now = seed + static_cast<uint64_t>(i);
    Result<ProgramResults> results = run(now);
    if (!results.ok())
      return Status::error("in the order of seed " + std::to_string(now) + ": " +
                               results.status().message(),
                           results.status().code());
    if (i == 0)
      first = std::move(*results);
    else
      for (const auto &[name, value] : *results)
        if (value.data != first[name].data)
          return Status::error("result '" + name + "' depends on the order: seeds " +
                                   std::to_string(seed) + " and " + std::to_string(now) + " differ",
                               Code::checkFailed);
  }
  return first;
}

} // namespace braid::interp
