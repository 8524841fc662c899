//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// No rank waits for ever: a rank waits for reads that end, on every rank, before the command at
// which it waits. A read begins when the collective has ended, and until it ends a rank waits for
// nothing but reads that end earlier.
//
//===----------------------------------------------------------------------===//
#include "ReadInPlace.h"
#include "NoAlias.h"
#include "Overlap.h"
#include "braid/Program/Program.h"

#include <algorithm>

namespace braid::runtime {

namespace fb = braid::program;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

static bool isDecoder(const std::string &kernel) {
  return kernel == "decode" || kernel == "decode_sum";
}

OperandUses::OperandUses(const fb::ProgramT &itsProgram, bool mayRead) : program(itsProgram) {
  if (!mayRead)
    return;
  for (const auto &kernel : program.kernels) {
    decodes |= kernel->library && isDecoder(kernel->library->name);
    for (const auto &codec : kernel->codecs)
      decodes |= isDecoder(codec->codec->name);
  }
  if (!decodes)
    return;
  for (const auto &procedure : program.procedures)
    for (const auto &stream : procedure->streams)
      for (const auto &command : stream->commands) {
        isAlike &= command->on.empty();
        // Reads are found by where payloads are, and by what writes to them: where else a rank
        // reads makes no difference.
        forEachView(command->op, [&](const fb::ViewT &view, bool isWritten) {
          isAlike &= !view.position || (!isWritten && view.dtype != fb::DType::i8);
        });
      }
}

/// Visits the views of a command: visit(view, whether it is written). What a call passes counts as
/// written.
template <typename Visit>
void OperandUses::forEachView(const fb::OperationUnion &op, Visit visit) const {
  if (const fb::LaunchT *launch = op.AsLaunch()) {
    const fb::KernelT &kernel = *program.kernels[launch->kernel];
    const LibraryKernel *library = libraryKernelOf(kernel);
    std::vector<size_t> given;
    if (library)
      given = library->given(kernel.library->optional);
    for (size_t i = 0; i < launch->operands.size(); ++i)
      visit(*launch->operands[i], library ? library->writes(given[i])
                                          : i + kernel.num_outputs >= launch->operands.size());
  } else if (const fb::CopyT *copy = op.AsCopy()) {
    visit(*copy->source, false);
    visit(*copy->dest, true);
  } else if (const fb::CollectiveStartT *start = op.AsCollectiveStart()) {
    for (const auto &view : start->inputs)
      visit(*view, false);
    for (const auto &view : start->outputs)
      visit(*view, true);
  } else if (const fb::CallT *call = op.AsCall()) {
    for (const auto &view : call->arguments)
      visit(*view, true);
  }
}

void OperandUses::add(Queue queue, const fb::ProcedureT &procedure, const std::string *call,
                      const fb::OperationUnion &op,
                      const std::function<Tensor(const fb::ViewT &)> &tensor) {
  std::vector<Operand> operands;
  forEachView(op, [&](const fb::ViewT &view, bool isWritten) {
    const int32_t buffer = view.space == fb::Space::argument ? -1 : view.buffer;
    operands.push_back(
        {call, buffer, referencesTo(procedure, buffer), tensor(view), isWritten, false});
  });
  if (const fb::LaunchT *launch = op.AsLaunch()) {
    const fb::KernelT &kernel = *program.kernels[launch->kernel];
    if (kernel.library && isDecoder(kernel.library->name))
      operands.front().isPayload = true;
    for (const auto &codec : kernel.codecs)
      operands[codec->operand].isPayload = isDecoder(codec->codec->name);
  }
  if (queues.size() <= queue)
    queues.resize(queue + 1);
  queues[queue].push_back(std::move(operands));
}

/// The views of a buffer in its procedure.
int32_t OperandUses::referencesTo(const fb::ProcedureT &procedure, int32_t buffer) {
  auto [found, isFirst] = references.try_emplace(&procedure);
  std::map<int32_t, int32_t> &counts = found->second;
  if (isFirst)
    for (const auto &stream : procedure.streams)
      for (const auto &command : stream->commands)
        forEachView(command->op, [&](const fb::ViewT &view, bool) {
          if (view.space != fb::Space::argument)
            ++counts[view.buffer];
        });
  return counts[buffer];
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

namespace {

using Operand = OperandUses::Operand;

class Finder {
public:
  Finder(RankProgram &program, const OperandUses &uses, Transport &transport,
         const SymmetricHeap &symmetric)
      : program(program), compute(program.queues[kComputeQueue]), uses(uses), transport(transport),
        symmetric(symmetric), windows(windowsOf(program)), starts(program.numEvents, Place{}),
        waiters(program.numEvents, 0), writes(program.queues.size()) {
    for (Queue q = 0; q < program.queues.size(); ++q)
      for (size_t i = 0; i < program.queues[q].size(); ++i) {
        const Command &command = program.queues[q][i];
        if (auto *op = std::get_if<CollectiveCommand>(&command.op))
          starts[op->event] = {q, i};
        else if (auto *wait = std::get_if<CollectiveWaitCommand>(&command.op))
          ++waiters[wait->event];
        else if (auto *await = std::get_if<AwaitCommand>(&command.op))
          ++waiters[await->event];
        for (const Operand &operand : uses.of(q, i))
          if (operand.isWritten)
            writes[q].push_back({i, operand.tensor.data,
                                 operand.tensor.data + operand.tensor.spanBytes(),
                                 &operand.tensor});
      }
  }

  void find() {
    for (size_t i = 0; i < compute.size(); ++i)
      if (auto *wait = std::get_if<CollectiveWaitCommand>(&compute[i].op))
        if (waiters[wait->event] == 1 && starts[wait->event].queue != kComputeQueue)
          readAfter(i, starts[wait->event]);
  }

private:
  struct Place {
    Queue queue = kComputeQueue;
    size_t command = 0;
  };

  static bool computes(const Command &command) {
    return std::holds_alternative<LaunchCommand>(command.op) ||
           std::holds_alternative<LibraryCommand>(command.op) ||
           std::holds_alternative<CopyCommand>(command.op) ||
           std::holds_alternative<DeviceLaunchCommand>(command.op) ||
           std::holds_alternative<LibraryArguments>(command.op);
  }

  void readAfter(size_t wait, Place start) {
    auto &op = std::get<CollectiveCommand>(program.queues[start.queue][start.command].op);
    Collective &c = op.collective;
    if (c.kind != CollectiveKind::allToAll && c.kind != CollectiveKind::allGather)
      return;
    PeerReads *reads = c.group->ranks.size() > 1 ? transport.peerReads(c) : nullptr;
    const std::vector<Operand> &operands = uses.of(start.queue, start.command);
    const size_t values = c.values.size();
    if (!reads)
      return;
    // Other views of an output's buffer than the collective's are payloads that commands decode.
    int32_t views = 0;
    for (size_t v = 0; v < values; ++v) {
      const int32_t others = operands[values + v].references - 1;
      if (others < 1)
        return;
      views += others;
    }
    std::map<size_t, std::map<const std::byte *, std::vector<std::byte *>>> parts;
    size_t last = wait;
    while (views > 0) {
      ++last;
      if (last == compute.size() || !computes(compute[last]))
        return;
      for (const Operand &operand : uses.of(kComputeQueue, last))
        for (size_t v = 0; v < values; ++v) {
          const Operand &output = operands[values + v];
          if (operand.buffer < 0 || operand.call != output.call || operand.buffer != output.buffer)
            continue;
          if (!operand.isPayload)
            return;
          std::vector<std::byte *> of = partsOf(c, c.values[v], operand.tensor);
          if (of.empty())
            return;
          parts[last][operand.tensor.data] = std::move(of);
          --views;
        }
    }
    size_t before = compute.size();
    for (size_t v = 0; v < values; ++v)
      if (!findWrites(operands[v].tensor, wait, last, start, before))
        return;
    const auto number = static_cast<uint32_t>(program.reads.size());
    program.reads.push_back({reads, op.index});
    for (auto &[command, payloads] : parts)
      program.payloads[command].merge(payloads);
    compute[last].endsRead = number;
    (before < compute.size() ? compute[before].awaitsReads : program.awaitsReads).push_back(number);
    c.readInPlace = true;
    program.collectives[op.index].readInPlace = true;
  }

  /// Sets `before` to the first command of the compute queue, if it comes earlier, during which or
  /// after which something may write to an input. False where that may be while peers read it.
  bool findWrites(const Tensor &input, size_t wait, size_t last, Place start,
                  size_t &before) const {
    const std::byte *begin = input.data, *end = begin + input.spanBytes();
    // Most are somewhere else, which takes no walk along strides.
    auto isHere = [&](const Write &write) {
      return write.begin < end && begin < write.end && mayOverlap(*write.tensor, input);
    };
    const std::vector<Write> &own = writes[kComputeQueue];
    const auto next =
        std::upper_bound(own.begin(), own.end(), wait, [](size_t command, const Write &write) {
          return command < write.command;
        });
    if (const auto found = std::find_if(next, own.end(), isHere); found != own.end())
      before = std::min(before, found->command);
    if (before <= last)
      return false;
    for (Queue q = 1; q < program.queues.size(); ++q)
      for (const Write &write : writes[q]) {
        const Window window = windows[q][write.command];
        if (window.end <= wait || (q == start.queue && write.command == start.command) ||
            !isHere(write))
          continue;
        // It may run when the command before its window has ended: a record.
        if (window.begin <= last + 1)
          return false;
        before = std::min(before, window.begin - 1);
      }
    return true;
  }

  /// Where the parts of an output's payload lie in the inputs of the ranks that send them; empty if
  /// some are not in one run.
  std::vector<std::byte *> partsOf(const Collective &c, const CollectiveValue &value,
                                   const Tensor &payload) const {
    struct Run {
      const std::byte *begin, *end;
      std::byte *source;
    };
    std::vector<Run> runs;
    for (size_t s = 0; s < c.group->ranks.size(); ++s) {
      std::byte *from =
          symmetric.peer(c.group->ranks[s], value.input.offset) + c.position * value.sourceStep;
      const std::byte *to = symmetric.peer(symmetric.rank, value.output.offset) +
                            static_cast<int64_t>(s) * value.destStep;
      forEachRun(value.part, [&](int64_t source, int64_t dest, int64_t bytes) {
        runs.push_back({to + dest, to + dest + bytes, from + source});
      });
    }
    std::sort(runs.begin(), runs.end(),
              [](const Run &a, const Run &b) { return a.begin < b.begin; });
    const Result<int64_t> stride = payload.rowStride();
    std::vector<std::byte *> parts;
    for (int64_t i = 0; stride.ok() && i < payload.rows(); ++i) {
      const std::byte *part = payload.data + i * *stride;
      auto after =
          std::upper_bound(runs.begin(), runs.end(), part,
                           [](const std::byte *at, const Run &run) { return at < run.begin; });
      if (after == runs.begin() || part + payload.shape.back() > (after - 1)->end)
        return {};
      parts.push_back((after - 1)->source + (part - (after - 1)->begin));
    }
    return parts;
  }

  RankProgram &program;
  std::vector<Command> &compute;
  const OperandUses &uses;
  Transport &transport;
  const SymmetricHeap &symmetric;
  const std::vector<std::vector<Window>> windows;
  std::vector<Place> starts;   ///< of collectives, by event
  std::vector<size_t> waiters; ///< by event
  struct Write {
    size_t command;
    const std::byte *begin, *end;
    const Tensor *tensor;
  };
  std::vector<std::vector<Write>> writes; ///< by queue, in its order
};

} // namespace

void findReadsInPlace(RankProgram &program, const OperandUses &uses, Transport &transport,
                      const SymmetricHeap &symmetric) {
  Finder(program, uses, transport, symmetric).find();
}

} // namespace braid::runtime
