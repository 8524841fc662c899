//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Walks the call tree of an entry once per queue and lists the commands of each queue, with
// absolute addresses.
//
//===----------------------------------------------------------------------===//
#include "CachedWeights.h"
#include "CommandTimes.h"
#include "Commands.h"
#include "NoAlias.h"
#include "Overlap.h"
#include "ReadInPlace.h"
#include "braid/Base/MatmulForm.h"
#include "braid/Base/RankSet.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/ScheduleChoice.h"
#include "braid/Program/Program.h"
#include "runtime/lib/Collective/CollectiveParts.h"
#include "runtime/lib/Collective/MessageSlots.h"
#include "runtime/lib/Collective/Plan.h"
#include "runtime/lib/Kernels/Operations.h"

#include <algorithm>
#include <map>
#include <set>

namespace braid::runtime {

std::optional<Queue> Command::awaitedQueue() const {
  if (auto *await = std::get_if<AwaitCommand>(&op))
    return await->setter;
  if (auto *wait = std::get_if<CollectiveWaitCommand>(&op))
    return wait->setter;
  return std::nullopt;
}

std::vector<RankQueue> Command::missing() const {
  auto *started = std::get_if<CollectiveCommand>(&op);
  return started ? started->collective.missing() : std::vector<RankQueue>();
}

bool Command::waitsForRoom() const {
  auto *started = std::get_if<CollectiveCommand>(&op);
  return started && started->collective.kind == CollectiveKind::send;
}

namespace fb = braid::program;

static_assert(kMaxViewRank <= kMaxRunLoops, "every view of a program has runs");

/// One call of a procedure.
struct CallFrame {
  /// The place of an argument of the call: an offset into an argument of the entry's procedure,
  /// which may move, or an address.
  struct Argument {
    std::optional<size_t> root;
    uint64_t offset = 0;
    std::byte *address = nullptr;
  };
  const fb::ProcedureT *procedure;
  std::vector<Argument> arguments;
  uint64_t localBase = 0, symmetricBase = 0;
  uint32_t eventBase = 0;
  std::vector<uint32_t> eventArguments; ///< numbers in the run
  const std::string *path = nullptr;
  std::string calls; ///< the calls that lead here: "@main/@layer#3"

  /// The number in the run of an event that the procedure names.
  uint32_t event(uint32_t local) const {
    const uint32_t own = procedure->num_events;
    return local < own ? eventBase + local : eventArguments[local - own];
  }
};

namespace {

class Resolver {
public:
  explicit Resolver(const ResolveInput &input)
      : in(input), uses(*input.program, !input.copyPayloads) {}

  Result<RankProgram> run() {
    const fb::ProgramT &program = *in.program;
    auto entry = std::find_if(program.entries.begin(), program.entries.end(),
                              [&](const auto &e) { return e->name == in.entry; });
    if (entry == program.entries.end())
      return Status::error("the program has no entry '", in.entry, "'");
    const fb::ProcedureT &procedure = *program.procedures[(*entry)->procedure];
    out.numEvents = procedure.num_events; // each is set exactly once, as verifyProgram says
    out.uses.resize(in.arguments.size());
    out.queues.resize(program.queues.size());
    out.estimates.resize(program.queues.size());
    out.ownThread.assign(program.queues.size(), true);
    setters.assign(out.numEvents, kComputeQueue);
    for (queue = 0; queue < program.queues.size(); ++queue) {
      auto root = std::make_shared<CallFrame>();
      root->procedure = &procedure;
      for (size_t i = 0; i < in.arguments.size(); ++i)
        root->arguments.push_back({i});
      // All walks pass the same calls in the same order, so the later ones reuse the paths of the
      // first.
      nextPath = 0;
      root->calls = "@" + root->procedure->name;
      root->path = path(root->calls);
      out.callsOf[root->path] = root->calls;
      RETURN_IF_ERROR(walk(root));
    }
    if (in.times)
      cachedWeights.shorten(out.estimates, *in.times);
    finishWaits();
    RETURN_IF_ERROR(readInPlace());
    findOverlap(out);
    if (in.kernels) // a device's queues need no threads
      giveToWaiters(out);
    findInFlight(out, in.symmetric.peer(in.rank, 0));
    return std::move(out);
  }

  /// Makes one command of a resolved program again.
  Result<Command> again(const ArgumentCommand &use, const RankProgram &program) {
    queue = use.queue;
    const auto found = program.payloads.find(use.command);
    payloads = queue == kComputeQueue && found != program.payloads.end() ? &found->second : nullptr;
    return make(*use.frame, *use.source);
  }

private:
  const std::string *path(std::string text) {
    if (nextPath == out.paths.size())
      out.paths.push_back(std::move(text));
    return &out.paths[nextPath++];
  }

  Status walk(const std::shared_ptr<const CallFrame> &frame) {
    for (const auto &source : frame->procedure->streams[queue]->commands) {
      if (!runs(*source))
        continue;
      if (const fb::CallT *call = source->op.AsCall()) {
        RETURN_IF_ERROR(enter(*frame, *call, source->name));
        continue;
      }
      used.clear();
      estimate = 0.0;
      usedBytes = 0;
      ASSIGN_OR_RETURN(Command command, make(*frame, *source));
      if (in.times) {
        out.estimates[queue].push_back({estimate.ok() ? *estimate : 0, usedBytes});
        if (!estimate.ok() && out.notEstimated.empty())
          out.notEstimated = describe(command) + ": " + estimate.status().message();
      }
      std::vector<Command> &stream = out.queues[queue];
      if (uses.mayReadInPlace()) {
        uses.add(queue, *frame->procedure, frame->path, source->op,
                 [&](const fb::ViewT &view) { return tensor(*frame, view); });
        if (queue == kComputeQueue)
          sources.push_back({queue, stream.size(), source.get(), frame});
      }
      for (size_t argument : used)
        out.uses[argument].push_back({queue, stream.size(), source.get(), frame});
      stream.push_back(std::move(command));
    }
    return {};
  }

  Status readInPlace() {
    if (!uses.mayReadInPlace())
      return {};
    findReadsInPlace(out, uses, *in.transport, in.symmetric);
    for (const auto &[number, parts] : out.payloads) {
      ASSIGN_OR_RETURN(Command command, again(sources[number], out));
      static_cast<CommandSchedule &>(command) = out.queues[kComputeQueue][number];
      out.queues[kComputeQueue][number] = std::move(command);
    }
    for (Queue q = 0; in.times && q < out.queues.size(); ++q)
      for (size_t i = 0; i < out.queues[q].size(); ++i)
        if (auto *op = std::get_if<CollectiveCommand>(&out.queues[q][i].op))
          if (op->collective.readInPlace)
            if (const Result<double> seconds = in.times->ofCollective(op->collective); seconds.ok())
              out.estimates[q][i].seconds = *seconds;
    payloads = nullptr;
    return {};
  }

  /// Whether this rank runs a command where its procedure runs.
  bool runs(const fb::CommandT &command) const {
    RankSet ranks;
    for (const auto &named : command.on)
      ranks.axes.push_back({named->axis, {named->coordinates.begin(), named->coordinates.end()}});
    return ranks.contains(*in.mesh, in.rank);
  }

  Result<Command> make(const CallFrame &frame, const fb::CommandT &source) {
    Command command;
    command.name = source.name;
    command.path = frame.path;
    Status status = translate(frame, source.op, command);
    if (status.ok())
      status = verifyNoAlias(source.op, *in.program,
                             [&](const fb::ViewT &view) { return tensor(frame, view); });
    if (!status.ok())
      return Status::error(describe(command), " on the ", in.program->queues[queue]->name,
                           " queue ", status.message());
    return command;
  }

  Status enter(const CallFrame &caller, const fb::CallT &call, const std::string &callName) {
    auto callee = std::make_shared<CallFrame>();
    callee->procedure = in.program->procedures[call.procedure].get();
    for (const auto &view : call.arguments) {
      CallFrame::Argument argument;
      if (view->space == fb::Space::argument) {
        argument = caller.arguments[view->index];
        argument.offset += offsetOf(*view);
      } else {
        argument.address = address(caller, *view);
      }
      callee->arguments.push_back(argument);
    }
    callee->localBase = caller.localBase + call.local_base_bytes;
    callee->symmetricBase = caller.symmetricBase + call.symmetric_base_bytes;
    callee->eventBase = caller.eventBase + call.event_base;
    for (uint32_t event : call.event_arguments)
      callee->eventArguments.push_back(caller.event(event));
    const std::string text = callName.empty() || callName == callee->procedure->name
                                 ? "@" + callee->procedure->name
                                 : "@" + callee->procedure->name + " (" + callName + ")";
    callee->calls =
        caller.calls + "/@" + (call.identity.empty() ? callee->procedure->name : call.identity);
    callee->path = path(text);
    if (in.times)
      out.callsOf[callee->path] = callee->calls;
    return walk(callee);
  }

  /// This rank's offset of a view.
  uint64_t offsetOf(const fb::ViewT &view) const {
    if (!view.position)
      return view.offset_bytes;
    const fb::PositionT &place = *view.position;
    // The axes were verified.
    const int64_t position = *in.mesh->groupPosition(in.rank, axesOf(place.axes));
    return view.offset_bytes +
           static_cast<uint64_t>(shiftedPosition(position, place.shift, place.count)) *
               place.stride_bytes;
  }

  std::byte *address(const CallFrame &frame, const fb::ViewT &view) const {
    switch (view.space) {
    case fb::Space::argument: {
      const CallFrame::Argument &argument = frame.arguments[view.index];
      if (argument.root)
        used.insert(*argument.root);
      return (argument.root ? in.arguments[*argument.root] : argument.address) + argument.offset +
             offsetOf(view);
    }
    case fb::Space::local:
      return in.local + frame.localBase + offsetOf(view);
    case fb::Space::symmetric:
      return in.symmetric.peer(in.symmetric.rank, frame.symmetricBase + offsetOf(view));
    }
    return nullptr;
  }

  Tensor tensor(const CallFrame &frame, const fb::ViewT &view) const {
    return {address(frame, view), static_cast<DType>(view.dtype), view.shape, view.strides};
  }

  Status translate(const CallFrame &frame, const fb::OperationUnion &op, Command &command) {
    switch (op.type) {
    case fb::Operation::Launch: {
      const fb::LaunchT &launch = *op.AsLaunch();
      if (const LibraryKernel *library = libraryKernelOf(*in.program->kernels[launch.kernel]))
        return libraryLaunch(frame, launch, *library, command);
      command.operation = "kernel";
      if (command.name.empty())
        command.name = in.program->kernels[launch.kernel]->symbol;
      std::vector<Tensor> operands;
      for (const auto &view : launch.operands)
        operands.push_back(tensor(frame, *view));
      const fb::KernelT &kernel = *in.program->kernels[launch.kernel];
      if (!in.kernels) {
        ASSIGN_OR_RETURN(std::vector<EncodedOperand> encoded,
                         encodedOperands(kernel, operands, launch.rows));
        command.op = DeviceLaunchCommand{launch.kernel, std::move(operands), launch.rows,
                                         std::move(encoded)};
        return {};
      }
      if (in.times) {
        estimate = in.times->ofKernel(kernel, launch, *in.mesh);
        usedBytes = CommandTimes::bytesOf(launch);
        for (const Tensor &operand : operands)
          cachedWeights.noteUse(operand.data, static_cast<size_t>(operand.spanBytes()));
      }
      if (!kernel.codecs.empty()) {
        ASSIGN_OR_RETURN(const std::vector<EncodedOperand> encoded,
                         encodedOperands(kernel, operands, launch.rows));
        ASSIGN_OR_RETURN(command.op,
                         resolveCodecLaunch((*in.kernels)[launch.kernel], operands,
                                            launch.row_operand, encoded, launch.rows, in.threads));
        return {};
      }
      ASSIGN_OR_RETURN(command.op, resolveLaunch((*in.kernels)[launch.kernel], operands,
                                                 launch.row_operand, launch.rows, in.threads));
      return {};
    }
    case fb::Operation::Copy: {
      const fb::CopyT &copy = *op.AsCopy();
      command.operation = "copy";
      if (in.times) {
        const Tensor source = tensor(frame, *copy.source);
        estimate = in.times->ofCopy(source);
        usedBytes = 2 * static_cast<double>(source.numElements() * byteSize(source.dtype));
      }
      ASSIGN_OR_RETURN(command.op,
                       resolveCopy(tensor(frame, *copy.source), tensor(frame, *copy.dest)));
      return {};
    }
    case fb::Operation::CollectiveStart:
      return collective(frame, *op.AsCollectiveStart(), command);
    case fb::Operation::CollectiveWait:
      command.operation = "wait";
      command.op = CollectiveWaitCommand{frame.event(op.AsCollectiveWait()->event), 0};
      return {};
    case fb::Operation::Record:
      command.operation = "record";
      command.op = RecordCommand{frame.event(op.AsRecord()->event)};
      return {};
    case fb::Operation::Await:
      command.operation = "await";
      command.op = AwaitCommand{frame.event(op.AsAwait()->event)};
      return {};
    case fb::Operation::Call:
    case fb::Operation::NONE:
      break;
    }
    return Status::error("is of an unknown kind");
  }

  /// The parts of a payload that is read in place; otherwise none.
  std::vector<std::byte *> partsOf(const std::byte *payload) const {
    if (!payloads)
      return {};
    const auto found = payloads->find(payload);
    return found == payloads->end() ? std::vector<std::byte *>() : found->second;
  }

  Result<std::vector<EncodedOperand>> encodedOperands(const fb::KernelT &kernel,
                                                      const std::vector<Tensor> &operands,
                                                      int64_t rows) const {
    std::vector<EncodedOperand> encoded;
    for (const auto &codec : kernel.codecs) {
      const Tensor &payload = operands[codec->operand];
      const Tensor *own = codec->own < 0 ? nullptr : &operands[static_cast<size_t>(codec->own)];
      EncodedOperand one{codec->operand, {}};
      const std::vector<AxisRef> axes = axesOf(codec->codec->axes);
      ASSIGN_OR_RETURN(const int64_t parts, in.mesh->numShards(axes));
      static_cast<LibraryCall &>(one.codec) = codecCall(
          *codec, rows, {payload.dtype, payload.shape, payload.strides},
          own ? std::optional(OperandType{own->dtype, own->shape, own->strides}) : std::nullopt,
          parts);
      ASSIGN_OR_RETURN(one.codec.part, in.mesh->groupPosition(in.rank, axes));
      one.codec.data.resize(one.codec.operands.size());
      one.codec.data[codecPayload(one.codec)] = payload.data;
      if (own)
        one.codec.data[kOwnRows] = own->data;
      one.codec.payloadParts = partsOf(payload.data);
      encoded.push_back(std::move(one));
    }
    return encoded;
  }

  Status libraryLaunch(const CallFrame &frame, const fb::LaunchT &launch,
                       const LibraryKernel &library, Command &command) {
    const fb::LibraryCallT &call = *in.program->kernels[launch.kernel]->library;
    command.operation = library.name;
    LibraryArguments arguments;
    arguments.kernel = &library;
    arguments.operands.resize(library.operands.size());
    arguments.data.resize(library.operands.size());
    size_t next = 0;
    bool readsWeights = false;
    for (size_t i : library.given(call.optional)) {
      const fb::ViewT &view = *launch.operands[next++];
      readsWeights |= i == MatmulForm::rhsOperand && view.space == fb::Space::argument &&
                      frame.arguments[view.index].root;
      Tensor operand = tensor(frame, view);
      arguments.data[i] = operand.data;
      arguments.operands[i] =
          OperandType{operand.dtype, std::move(operand.shape), std::move(operand.strides)};
    }
    arguments.integers = call.integers;
    arguments.numbers = call.numbers;
    const std::vector<AxisRef> axes = axesOf(call.axes);
    ASSIGN_OR_RETURN(arguments.parts, in.mesh->numShards(axes));
    ASSIGN_OR_RETURN(arguments.part, in.mesh->groupPosition(in.rank, axes));
    arguments.payloadParts = partsOf(arguments.data.front());
    if (!in.kernels) {
      command.op = std::move(arguments);
      return {};
    }
    if (in.times) {
      estimate = in.times->ofLibrary(arguments);
      usedBytes = cost::bytesOf(arguments);
      cachedWeights.noteUse(arguments, queue, out.queues[queue].size(), readsWeights);
    }
    ASSIGN_OR_RETURN(command.op, resolveLibrary(arguments, {in.threads, in.queryBlock, in.matmuls,
                                                            frame.calls + "/" + command.name}));
    return {};
  }

  /// The place of a tensor in the symmetric arena.
  Result<StridedView> symmetricView(const Tensor &tensor) const {
    const std::byte *base = in.symmetric.peer(in.symmetric.rank, 0);
    if (tensor.data < base || tensor.data + tensor.spanBytes() > base + in.symmetricBytes)
      return Status::error("expects symmetric memory");
    return StridedView{static_cast<uint64_t>(tensor.data - base), tensor.shape, tensor.strides};
  }

  Status collective(const CallFrame &frame, const fb::CollectiveStartT &start, Command &command) {
    CollectiveCommand result{};
    Collective &c = result.collective;
    c.kind = static_cast<CollectiveKind>(start.kind);
    c.reduce = static_cast<ReduceKind>(start.reduce);
    command.operation = name(c.kind);
    c.name = command.name;
    c.role = start.identity;
    c.path = frame.path;
    c.dim = start.dim;
    c.concatDim = start.concat_dim;
    c.root = start.root;
    c.tag = start.tag;
    for (size_t i = 0; i + 1 < start.pairs.size(); i += 2)
      c.pairs.push_back({start.pairs[i], start.pairs[i + 1]});
    std::vector<AxisRef> axes = axesOf(start.axes);
    ASSIGN_OR_RETURN(std::vector<int64_t> ranks, in.mesh->group(in.rank, axes));
    ASSIGN_OR_RETURN(c.position, in.mesh->groupPosition(in.rank, axes));
    c.queue = queue;
    c.group = in.transport->group(ranks, queue);
    int64_t bytes = 0;
    RETURN_IF_ERROR(addValues(c, start, frame, bytes));
    if (isPointToPoint(c.kind)) {
      size_t &index = messages[{c.kind, MessageSlots::peer(c), c.tag}];
      c.messageSlot = in.transport->messageSlot(c, index++);
    }
    RETURN_IF_ERROR(checkOverlap(c, start, frame));
    int64_t groupSize = static_cast<int64_t>(ranks.size());
    ASSIGN_OR_RETURN(c.algorithm, chooseAlgorithm(c.kind, bytes, groupSize, in.transport->name()));
    c.bytesSent = bytesSent(c.algorithm, c.kind, bytes, groupSize, isSource(c));
    RETURN_IF_ERROR(in.transport->plan(c));
    if (c.chosen && !c.chosen->considered.empty())
      c.bytesSent = c.plan->schedule.bytesSent();
    if (in.times)
      estimate = in.times->ofCollective(c);
    result.event = frame.event(start.done);
    result.index = identify(c, frame);
    collectives[result.event] = {result.index, command.name};
    command.op = std::move(result);
    return {};
  }

  /// Adds the views of the values, and their bytes: a send has inputs only, a recv outputs only.
  Status addValues(Collective &c, const fb::CollectiveStartT &start, const CallFrame &frame,
                   int64_t &bytes) const {
    const size_t count = std::max(start.inputs.size(), start.outputs.size());
    const bool sends = c.kind == CollectiveKind::send, receives = c.kind == CollectiveKind::recv;
    for (size_t v = 0; v < count; ++v) {
      CollectiveValue value;
      if (!receives) {
        const Tensor input = tensor(frame, *start.inputs[v]);
        value.dtype = input.dtype;
        ASSIGN_OR_RETURN(value.input, symmetricView(input));
        bytes += input.numElements() * byteSize(input.dtype);
      }
      if (!sends) {
        const Tensor output = tensor(frame, *start.outputs[v]);
        value.dtype = output.dtype;
        ASSIGN_OR_RETURN(value.output, symmetricView(output));
      }
      setParts(c, static_cast<int64_t>(c.group->ranks.size()), value);
      c.values.push_back(std::move(value));
    }
    return {};
  }

  /// Peers read inputs while outputs are written: only an all_reduce may work on one view.
  Status checkOverlap(const Collective &c, const fb::CollectiveStartT &start,
                      const CallFrame &frame) const {
    const bool inPlace = c.kind == CollectiveKind::allReduce || c.group->ranks.size() == 1;
    for (size_t o = 0; o < start.outputs.size(); ++o) {
      const Tensor output = tensor(frame, *start.outputs[o]);
      for (size_t i = 0; i < start.outputs.size(); ++i)
        if (i != o && mayOverlap(output, tensor(frame, *start.outputs[i])))
          return Status::error("expects output ", o, " not to overlap output ", i);
      for (size_t i = 0; i < start.inputs.size(); ++i) {
        const Tensor input = tensor(frame, *start.inputs[i]);
        const bool same = i == o && inPlace && isSameMemory(input, output);
        if (!same && mayOverlap(output, input))
          return Status::error("expects output ", o, " not to overlap input ", i);
      }
    }
    return {};
  }

  uint32_t identify(const Collective &c, const CallFrame &frame) {
    CollectiveInfo info;
    info.calls = frame.calls;
    info.name = c.role.empty() ? c.name : c.role;
    info.kind = name(c.kind);
    if (info.name.empty())
      info.name = info.kind;
    // A program that the compiler has not made may use a name twice.
    if (const int64_t number = alike[info.identity()]++)
      info.name += "#" + std::to_string(number);
    info.bytesSent = c.bytesSent;
    info.algorithm = c.plan ? name(c.plan->algorithm) : name(c.algorithm);
    info.chosen = c.chosen;
    if (c.chosen)
      info.chunkBytes = c.chosen->chunkBytes;
    out.collectives.push_back(std::move(info));
    out.bytesSent += c.bytesSent;
    return static_cast<uint32_t>(out.collectives.size() - 1);
  }

  /// Gives each wait the queue that sets its event, and that for a collective the index and name of
  /// the collective. The wait's queue may be walked first, so this comes after all walks.
  void finishWaits() {
    for (Queue q = 0; q < out.queues.size(); ++q)
      for (const Command &command : out.queues[q]) {
        if (auto *op = std::get_if<RecordCommand>(&command.op))
          setters[op->event] = q;
        else if (auto *op = std::get_if<CollectiveCommand>(&command.op))
          setters[op->event] = q;
      }
    for (std::vector<Command> &commands : out.queues)
      for (Command &command : commands) {
        if (auto *await = std::get_if<AwaitCommand>(&command.op))
          await->setter = setters[await->event];
        auto *wait = std::get_if<CollectiveWaitCommand>(&command.op);
        if (!wait)
          continue;
        const EventSource &source = collectives.at(wait->event);
        wait->setter = setters[wait->event];
        wait->index = source.index;
        if (command.name.empty())
          command.name = source.name;
      }
  }

  /// The collective that sets an event.
  struct EventSource {
    uint32_t index;
    std::string name;
  };

  const ResolveInput &in;
  RankProgram out;
  Queue queue = kComputeQueue;
  size_t nextPath = 0;
  OperandUses uses;
  std::vector<ArgumentCommand> sources; ///< of the compute queue's commands, where uses are noted
  /// Of the command that is made, as in RankProgram::payloads; null: none.
  const std::map<const std::byte *, std::vector<std::byte *>> *payloads = nullptr;
  mutable std::set<size_t> used; ///< the entry's arguments that the current command uses
  Result<double> estimate = 0.0; ///< seconds of the current command
  double usedBytes = 0;          ///< by the current command
  CachedWeights cachedWeights;   ///< with estimates
  std::map<uint32_t, EventSource> collectives; ///< by event
  std::vector<Queue> setters;                  ///< by event
  std::map<std::string, int64_t> alike;        ///< collectives so far, by identity
  /// Sends and receives so far, by peer and tag.
  std::map<std::tuple<CollectiveKind, int64_t, int64_t>, size_t> messages;
};

} // namespace

Result<RankProgram> resolve(const ResolveInput &input) { return Resolver(input).run(); }

Result<std::vector<MovedCommand>> moveArguments(const ResolveInput &input,
                                                const RankProgram &program,
                                                const std::vector<size_t> &arguments) {
  Resolver resolver(input);
  std::vector<MovedCommand> moved;
  std::set<std::pair<Queue, size_t>> done; // a command may use several
  for (size_t argument : arguments)
    for (const ArgumentCommand &use : program.uses[argument]) {
      if (!done.emplace(use.queue, use.command).second)
        continue;
      ASSIGN_OR_RETURN(Command command, resolver.again(use, program));
      static_cast<CommandSchedule &>(command) = program.queues[use.queue][use.command];
      moved.push_back({use.queue, use.command, std::move(command)});
    }
  return moved;
}

} // namespace braid::runtime
