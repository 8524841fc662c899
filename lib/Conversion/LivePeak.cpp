//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "LivePeak.h"

#include "braid/Analysis/HappensBefore.h"

#include <map>
#include <tuple>

using namespace mlir;
using namespace braid;

SmallVector<std::pair<rt::AllocOp, rt::AllocOp>> braid::decodedPayloads(rt::ProcedureOp procedure) {
  auto bufferOf = [](Value memory) { return rt::getRoot(memory).getDefiningOp<rt::AllocOp>(); };
  llvm::SmallPtrSet<Operation *, 16> decoded;
  for (auto launch : procedure.getBody().front().getOps<rt::LaunchOp>()) {
    rt::KernelOp kernel = launch.getKernelOp();
    const std::optional<StringRef> library = kernel.getLibrary();
    for (auto [i, input] : llvm::enumerate(launch.getInputs()))
      if (library ? *library == "decode" || *library == "decode_sum"
                  : static_cast<bool>(kernel.getPayload(static_cast<unsigned>(i))))
        decoded.insert(bufferOf(input));
  }
  SmallVector<std::pair<rt::AllocOp, rt::AllocOp>> payloads;
  for (auto start : procedure.getBody().front().getOps<rt::StartOp>()) {
    if (start.getKind() != rt::CollectiveKind::AllToAll &&
        start.getKind() != rt::CollectiveKind::AllGather)
      continue;
    for (auto [input, output] : llvm::zip_equal(start.getInputs(), start.getOutputs())) {
      rt::AllocOp from = bufferOf(input), to = bufferOf(output);
      if (from && to && decoded.contains(to))
        payloads.emplace_back(from, to);
    }
  }
  return payloads;
}

namespace {

/// The numbers of the procedure's arguments that are in flight when it hands out an event.
SmallVector<unsigned> argumentsInFlight(rt::ProcedureOp procedure, unsigned result) {
  SmallVector<unsigned> numbers;
  auto add = [&](Value memory) {
    if (auto argument = dyn_cast<BlockArgument>(rt::getRoot(memory)))
      numbers.push_back(argument.getArgNumber());
  };
  Value event = procedure.getBody().front().getTerminator()->getOperand(result);
  if (auto start = event.getDefiningOp<rt::StartOp>()) {
    llvm::for_each(start.getInputs(), add);
    llvm::for_each(start.getOutputs(), add);
  } else if (auto call = event.getDefiningOp<rt::CallOp>()) {
    for (unsigned number :
         argumentsInFlight(call.getProcedure(), cast<OpResult>(event).getResultNumber()))
      add(call.getArguments()[number]);
  }
  return numbers;
}

/// The queues that commands of a procedure and its callees stand on.
llvm::SmallSetVector<Attribute, 4> queuesOf(rt::ProcedureOp procedure) {
  llvm::SmallSetVector<Attribute, 4> queues;
  for (Operation &op : procedure.getBody().front())
    if (auto call = dyn_cast<rt::CallOp>(op))
      queues.insert_range(queuesOf(call.getProcedure()));
    else
      queues.insert(rt::queueOf(&op));
  return queues;
}

/// Whether a rank runs the command.
bool isOn(int64_t rank, Operation *command) {
  comm::PlaceAttr place = comm::placeOf(command);
  if (!place)
    return true;
  auto mesh = *command->getParentOfType<ModuleOp>().getOps<comm::MeshOp>().begin();
  return comm::toRuntime(place).contains(comm::toRuntime(mesh), rank);
}

/// The lives of the buffers that a rank uses of a procedure, as first and last command by number.
class Lives {
public:
  Lives(rt::ProcedureOp procedure, int64_t rank) {
    for (Operation &op : procedure.getBody().front())
      if (!isa<rt::AllocOp, rt::ViewOp, rt::SubviewOp>(op) && isOn(rank, &op))
        commands.push_back(&op);
    const auto end = static_cast<int64_t>(commands.size()) - 1;
    DenseMap<Value, int64_t> waits; // by event: the first command that waits for it
    for (auto [i, op] : llvm::enumerate(commands))
      for (Value operand : op->getOperands())
        if (isa<rt::EventType>(operand.getType()))
          waits.try_emplace(operand, static_cast<int64_t>(i));
    auto waitFor = [&](Value event) {
      auto it = waits.find(event);
      return it == waits.end() ? end : it->second;
    };
    // A queue runs in order: before a command of it, all of its earlier collectives have ended.
    DenseMap<Attribute, int64_t> limits;
    auto limit = [&](Attribute queue) -> int64_t & {
      return limits.try_emplace(queue, end).first->second;
    };
    std::vector<int64_t> ends(commands.size());
    for (int64_t i = end; i >= 0; --i) {
      if (auto start = dyn_cast<rt::StartOp>(commands[i])) {
        int64_t &own = limit(start.getQueue());
        own = ends[i] = std::min(waitFor(start.getDone()), own);
      } else if (auto call = dyn_cast<rt::CallOp>(commands[i])) {
        for (Attribute queue : queuesOf(call.getProcedure()))
          limit(queue) = i - 1;
      } else if (!isa<rt::ReturnOp>(commands[i])) {
        limit(rt::queueOf(commands[i])) = i - 1;
      }
    }
    DenseMap<Attribute, int64_t> over; // by queue: when its last collective ends
    for (int64_t i = 0; i <= end; ++i) {
      auto start = dyn_cast<rt::StartOp>(commands[i]);
      if (!start) {
        for (Value operand : commands[i]->getOperands())
          use(operand, i, i);
        if (auto call = dyn_cast<rt::CallOp>(commands[i]))
          for (OpResult event : call->getResults())
            for (unsigned number : argumentsInFlight(call.getProcedure(), event.getResultNumber()))
              use(call.getArguments()[number], i, waitFor(event));
        continue;
      }
      // It runs behind the collective before it, and only then needs memory for its outputs.
      int64_t &before = over.try_emplace(start.getQueue(), -1).first->second;
      const int64_t begin = std::max(i, before + 1);
      for (Value input : start.getInputs())
        use(input, i, ends[i]);
      for (Value output : start.getOutputs())
        use(output, begin, std::max(begin, ends[i]));
      before = ends[i];
    }
    for (auto [from, to] : decodedPayloads(procedure))
      if (ofBuffers.contains(from) && ofBuffers.contains(to))
        ofBuffers[from].second = std::max(ofBuffers[from].second, ofBuffers[to].second);
  }

  std::vector<Operation *> commands;
  llvm::MapVector<Operation *, std::pair<int64_t, int64_t>> ofBuffers; ///< by rt.alloc

private:
  void use(Value operand, int64_t first, int64_t last) {
    if (!isa<MemRefType>(operand.getType()))
      return;
    Operation *buffer = rt::getRoot(operand).getDefiningOp();
    if (!buffer)
      return;
    auto [it, isNew] = ofBuffers.try_emplace(buffer, first, last);
    it->second.first = std::min(it->second.first, first);
    it->second.second = std::max(it->second.second, last);
  }
};

} // namespace

ArenaBytes LivePeaks::of(rt::ProcedureOp procedure) {
  ArenaBytes most{};
  for (int64_t rank : HappensBefore::differingRanks(procedure))
    for (auto [all, own] : llvm::zip(most, onRank(procedure, rank)))
      all = std::max(all, own);
  return most;
}

ArenaBytes LivePeaks::onRank(rt::ProcedureOp procedure, int64_t rank) {
  if (auto it = known.find({procedure, rank}); it != known.end())
    return it->second;
  const Lives lives(procedure, rank);
  std::vector<std::vector<rt::AllocOp>> begin(lives.commands.size()), end(lives.commands.size());
  for (const auto &[op, life] : lives.ofBuffers) {
    begin[life.first].push_back(cast<rt::AllocOp>(op));
    end[life.second].push_back(cast<rt::AllocOp>(op));
  }
  // What is in one place at one time is computed in place.
  std::map<std::tuple<rt::Space, int64_t, int64_t>, int64_t> places;
  ArenaBytes live{}, peak{};
  auto count = [&](rt::AllocOp alloc, int64_t change) {
    const int64_t size = llvm::alignTo(alloc.getSizeInBytes(), rt::kBufferAlignment);
    int64_t &users = places[{alloc.getSpace(), static_cast<int64_t>(*alloc.getOffset()), size}];
    const bool was = users != 0;
    users += change;
    if (was != (users != 0))
      live[static_cast<int>(alloc.getSpace())] += was ? -size : size;
  };
  for (auto [i, op] : llvm::enumerate(lives.commands)) {
    for (rt::AllocOp alloc : begin[i])
      count(alloc, 1);
    ArenaBytes inCallee{};
    if (auto call = dyn_cast<rt::CallOp>(op))
      inCallee = onRank(call.getProcedure(), rank);
    for (int space : {0, 1})
      peak[space] = std::max(peak[space], live[space] + inCallee[space]);
    for (rt::AllocOp alloc : end[i])
      count(alloc, -1);
  }
  return known[{procedure, rank}] = peak;
}
