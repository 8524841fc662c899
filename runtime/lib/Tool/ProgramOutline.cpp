//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramOutline.h"
#include "braid/Base/Algorithm.h"
#include "braid/Base/Encoding.h"
#include "braid/Program/Program.h"

// flatc writes a default label into switches over all enumerators.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wcovered-switch-default"
#include "braid/Base/StatusMacros.h"
#include "braid/Program/program_generated.h"
#pragma clang diagnostic pop

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <sstream>

namespace braid::runtime {

namespace fb = braid::program;

int64_t OutlineOperand::bytes() const {
  int64_t count = byteSize(dtype);
  for (int64_t size : shape)
    count *= size;
  return count;
}

namespace {

constexpr int64_t kMaxRanksListed = 64;

class Outliner {
public:
  Outliner(const fb::ProgramT &program, const Manifest &manifest, std::optional<int64_t> rank)
      : program(program), manifest(manifest), rank(rank) {}

  Result<ProgramOutline> run() {
    for (const auto &procedure : program.procedures) {
      OutlineProcedure outline;
      outline.name = procedure->name;
      outline.localBytes = procedure->local_bytes;
      outline.symmetricBytes = procedure->symmetric_bytes;
      current = procedure.get();
      entry = entryOf(*procedure);
      outline.entry = entry ? entry->name : "";
      for (uint32_t argument : procedure->symmetric_arguments)
        outline.symmetricArguments.push_back(argumentName(argument));
      for (const auto &stream : procedure->streams) {
        std::vector<OutlineCommand> &commands = outline.queues.emplace_back();
        for (const auto &source : stream->commands) {
          OutlineCommand command;
          command.index = commands.size();
          command.name = source->name;
          if (!source->on.empty())
            command.on = rankSetString(ranksOf(*source));
          fill(command, source->op);
          commands.push_back(std::move(command));
        }
      }
      procedures.push_back(std::move(outline));
    }
    RETURN_IF_ERROR(status);
    for (size_t p = 0; p < procedures.size(); ++p)
      connect(p);
    ProgramOutline result;
    result.queues = queuesOf(program);
    for (size_t p : callersFirst())
      if (!rank || procedures[p].executions != 0)
        result.procedures.push_back(ofRank(p));
    return result;
  }

private:
  static const std::vector<std::unique_ptr<fb::CommandT>> &streamOf(const fb::ProcedureT &procedure,
                                                                    Queue queue) {
    return procedure.streams[queue]->commands;
  }

  static RankSet ranksOf(const fb::CommandT &command) {
    RankSet ranks;
    for (const auto &named : command.on)
      ranks.axes.push_back({named->axis, {named->coordinates.begin(), named->coordinates.end()}});
    return ranks;
  }
  /// Whether the rank that is asked for runs it; without one, some rank does.
  bool runs(const fb::CommandT &command) const {
    return !rank || ranksOf(command).contains(manifest.mesh, *rank);
  }
  /// A procedure with the commands that the rank runs.
  OutlineProcedure ofRank(size_t p) {
    OutlineProcedure procedure = std::move(procedures[p]);
    for (Queue queue = 0; queue < procedure.queues.size(); ++queue) {
      const auto &stream = streamOf(*program.procedures[p], queue);
      std::vector<OutlineCommand> &commands = procedure.queues[queue];
      commands.erase(std::remove_if(commands.begin(), commands.end(),
                                    [&](const OutlineCommand &command) {
                                      return !runs(*stream[command.index]);
                                    }),
                     commands.end());
    }
    return procedure;
  }

  const Entry *entryOf(const fb::ProcedureT &procedure) const {
    for (const auto &e : program.entries)
      if (program.procedures[e->procedure].get() == &procedure)
        for (const Entry &candidate : manifest.entries)
          if (candidate.name == e->name)
            return &candidate;
    return nullptr;
  }

  //===--------------------------------------------------------------------===//
  // Operands
  //===--------------------------------------------------------------------===//

  std::string argumentName(size_t index) const {
    if (entry) {
      auto among = [&](const auto &values, const char *kind) {
        std::string found;
        if (index < values.size())
          found = std::string(kind) + " '" + values[index].name + "'";
        else
          index -= values.size();
        return found;
      };
      for (const std::string &found :
           {among(entry->parameters, "parameter"), among(entry->states, "state"),
            among(entry->operands, "input"), among(entry->results, "result")})
        if (!found.empty())
          return found;
    }
    return "argument " + std::to_string(index);
  }

  std::string memoryOf(const fb::ViewT &view) const {
    if (view.space == fb::Space::argument)
      return argumentName(view.index);
    std::string space = view.space == fb::Space::symmetric ? "symmetric " : "";
    if (view.buffer < 0)
      return space + "bytes from " + std::to_string(view.offset_bytes);
    return space + "buffer '" + current->buffers[static_cast<size_t>(view.buffer)]->name + "'";
  }

  static std::string placeOf(const fb::ViewT &view) {
    if (!view.position)
      return "";
    const int64_t shift = view.position->shift;
    return ", at ((position " + std::string(shift < 0 ? "- " : "+ ") +
           std::to_string(shift < 0 ? -static_cast<uint64_t>(shift)
                                    : static_cast<uint64_t>(shift)) +
           ") mod " + std::to_string(view.position->count) + ") * " +
           std::to_string(view.position->stride_bytes) + " bytes";
  }

  void operand(OutlineCommand &command, const std::string &role,
               const std::unique_ptr<fb::ViewT> &view, bool written = false) {
    if (view)
      command.operands.push_back({role, memoryOf(*view) + placeOf(*view),
                                  static_cast<DType>(view->dtype), view->shape, written});
  }
  void result(OutlineCommand &command, const std::unique_ptr<fb::ViewT> &view,
              const char *role = "") {
    operand(command, role, view, /*written=*/true);
  }

  //===--------------------------------------------------------------------===//
  // Groups
  //===--------------------------------------------------------------------===//

  OutlineGroup groupOf(const std::vector<std::unique_ptr<fb::AxisRefT>> &axes) {
    OutlineGroup group;
    std::vector<AxisRef> refs;
    for (const auto &axis : axes) {
      group.axes += (group.axes.empty() ? "" : ", ") + axis->name;
      if (axis->size != 0)
        group.axes += ":(" + std::to_string(axis->pre) + ")" + std::to_string(axis->size);
      refs.push_back({axis->name, axis->pre, axis->size});
    }
    auto membersOf = [&](int64_t r) {
      Result<std::vector<int64_t>> members = manifest.mesh.group(r, refs);
      if (!members.ok())
        status = members.status();
      return members.ok() ? *members : std::vector<int64_t>{r};
    };
    const int64_t ranks = manifest.mesh.numRanks();
    std::vector<int64_t> first = membersOf(rank.value_or(0));
    group.size = static_cast<int64_t>(first.size());
    if (rank) {
      group.groups.push_back(std::move(first));
    } else if (ranks <= kMaxRanksListed) {
      std::set<int64_t> seen;
      for (int64_t r = 0; r < ranks; ++r)
        if (!seen.count(r)) {
          group.groups.push_back(membersOf(r));
          seen.insert(group.groups.back().begin(), group.groups.back().end());
        }
    }
    return group;
  }

  //===--------------------------------------------------------------------===//
  // Commands
  //===--------------------------------------------------------------------===//

  void fill(OutlineCommand &command, const fb::OperationUnion &op) {
    switch (op.type) {
    case fb::Operation::Launch:
      return fillLaunch(command, *op.AsLaunch());
    case fb::Operation::Copy:
      command.kind = "copy";
      operand(command, "", op.AsCopy()->source);
      return result(command, op.AsCopy()->dest);
    case fb::Operation::CollectiveStart:
      return fillCollective(command, *op.AsCollectiveStart());
    case fb::Operation::CollectiveWait:
    case fb::Operation::Await:
      command.kind = "wait";
      return;
    case fb::Operation::Record:
      command.kind = "signal";
      return;
    case fb::Operation::Call:
      command.kind = "call";
      command.callee = program.procedures[op.AsCall()->procedure]->name;
      if (!op.AsCall()->identity.empty())
        command.details.emplace_back("identity", "@" + op.AsCall()->identity);
      for (const auto &argument : op.AsCall()->arguments)
        operand(command, "", argument);
      return;
    case fb::Operation::NONE:
      break;
    }
    command.kind = "unknown";
  }

  void fillLaunch(OutlineCommand &command, const fb::LaunchT &launch) {
    const fb::KernelT &kernel = *program.kernels[launch.kernel];
    if (const LibraryKernel *library = libraryKernelOf(kernel))
      return fillLibraryLaunch(command, launch, *kernel.library, *library);
    command.kind = "kernel";
    command.details.emplace_back("kernel", "@" + kernel.symbol);
    command.details.emplace_back("rows", std::to_string(launch.rows));
    const size_t numInputs = launch.operands.size() - kernel.num_outputs;
    for (size_t i = 0; i < launch.operands.size(); ++i) {
      const fb::OperandCodecT *codec = codecOf(kernel, i);
      operand(command, codec ? encodingOf(*codec) : "", launch.operands[i], i >= numInputs);
    }
  }

  /// "int8:128", "int8:128 for others", "sum of 4 int8:128", "sum of 3 int8:128 and own rows".
  static std::string encodingOf(const fb::OperandCodecT &codec) {
    const std::vector<int64_t> &integers = codec.codec->integers;
    const Result<Encoding> encoding = Encoding::fromCode(static_cast<uint32_t>(integers.front()));
    const std::string name = encoding.ok() ? encoding->str() : "?";
    if (codec.codec->name != "decode_sum")
      return name + (codec.codec->axes.empty() ? "" : " for others");
    const bool hasOwn = codec.own >= 0;
    return "sum of " + std::to_string(integers.back() - (hasOwn ? 1 : 0)) + " " + name +
           (hasOwn ? " and own rows" : "");
  }

  void fillLibraryLaunch(OutlineCommand &command, const fb::LaunchT &launch,
                         const fb::LibraryCallT &call, const LibraryKernel &library) {
    command.kind = library.name;
    const size_t outputs = library.numOutputs(call.optional);
    size_t next = 0;
    for (size_t i : library.given(call.optional)) {
      const LibraryOperand &role = library.operands[i];
      const bool written = library.writes(i);
      const auto &view = launch.operands[next++];
      if (written && library.reads(i, call.integers))
        operand(command, role.name, view);
      operand(command, written && outputs == 1 ? "" : role.name, view, written);
    }
    for (size_t i = 0; i < library.integers.size(); ++i)
      command.details.emplace_back(library.integers[i], std::to_string(call.integers[i]));
    for (size_t i = 0; i < library.numbers.size(); ++i) {
      const bool isList = library.listOfNumbers && i + 1 == library.numbers.size();
      std::ostringstream text;
      text << (isList ? static_cast<double>(call.numbers.size() - i) : call.numbers[i]);
      command.details.emplace_back(library.numbers[i], text.str());
    }
    if (!call.axes.empty())
      command.group = groupOf(call.axes);
  }

  void fillCollective(OutlineCommand &command, const fb::CollectiveStartT &start) {
    const auto kind = static_cast<CollectiveKind>(start.kind);
    command.kind = runtime::name(kind);
    if (!start.identity.empty())
      command.details.emplace_back("identity", start.identity);
    if (hasReduction(kind))
      command.details.emplace_back("reduction",
                                   runtime::name(static_cast<ReduceKind>(start.reduce)));
    if (kind == CollectiveKind::allToAll) {
      command.details.emplace_back("splits dimension", std::to_string(start.dim));
      command.details.emplace_back("joins dimension", std::to_string(start.concat_dim));
    } else if (kind == CollectiveKind::reduceScatter || kind == CollectiveKind::allGather) {
      command.details.emplace_back(kind == CollectiveKind::allGather ? "joins dimension"
                                                                     : "splits dimension",
                                   std::to_string(start.dim));
    }
    command.group = groupOf(start.axes);
    const auto at = [&](uint32_t position) {
      const std::vector<std::vector<int64_t>> &groups = command.group->groups;
      return groups.size() == 1 && position < groups.front().size()
                 ? "rank " + std::to_string(groups.front()[position])
                 : "position " + std::to_string(position);
    };
    if (kind == CollectiveKind::reduce || kind == CollectiveKind::broadcast)
      command.details.emplace_back(kind == CollectiveKind::reduce ? "to" : "from", at(start.root));
    for (size_t i = 0; i + 1 < start.pairs.size(); i += 2)
      command.details.emplace_back(at(start.pairs[i]), "to " + at(start.pairs[i + 1]));
    int64_t sent = 0;
    for (size_t i = 0; i < start.inputs.size(); ++i) {
      operand(command, "", start.inputs[i]);
      // The counts of an all_to_all_v are sent, too.
      Result<Algorithm> algorithm =
          chooseAlgorithm(kind, command.operands.back().bytes(), command.group->size, "threads");
      if (algorithm.ok())
        sent += bytesSent(*algorithm, kind, command.operands.back().bytes(), command.group->size);
    }
    if (kind != CollectiveKind::recv)
      command.bytesSent = sent;
    for (const auto &output : start.outputs)
      result(command, output);
    command.collective = collectiveOf(start, *command.group);
  }

  static ScheduleRequest collectiveOf(const fb::CollectiveStartT &start,
                                      const OutlineGroup &group) {
    ScheduleRequest request;
    request.kind = static_cast<CollectiveKind>(start.kind);
    request.ranks = group.size;
    request.root = start.root;
    for (size_t i = 0; i + 1 < start.pairs.size(); i += 2)
      request.pairs.emplace_back(start.pairs[i], start.pairs[i + 1]);
    // A recv has outputs only.
    const auto &views = start.inputs.empty() ? start.outputs : start.inputs;
    for (size_t i = 0; i < views.size(); ++i) {
      const fb::ViewT &view = *views[i];
      ScheduleValue value;
      value.elementBytes = byteSize(static_cast<DType>(view.dtype));
      value.partBytes = value.elementBytes;
      for (int64_t size : view.shape)
        value.partBytes *= size;
      value.partBytes /= request.inputParts();
      value.inPlace = request.kind == CollectiveKind::allReduce && i < start.outputs.size() &&
                      isSamePlace(view, *start.outputs[i]);
      request.values.push_back(value);
    }
    return request;
  }

  static bool isSamePlace(const fb::ViewT &a, const fb::ViewT &b) {
    return a.space == b.space && a.index == b.index && a.offset_bytes == b.offset_bytes &&
           a.shape == b.shape && a.strides == b.strides && !a.position && !b.position;
  }

  //===--------------------------------------------------------------------===//
  // Events
  //===--------------------------------------------------------------------===//

  static std::optional<uint32_t> eventSet(const fb::OperationUnion &op) {
    if (const auto *start = op.AsCollectiveStart())
      return start->done;
    if (const auto *record = op.AsRecord())
      return record->event;
    return std::nullopt;
  }
  static std::optional<uint32_t> eventAwaited(const fb::OperationUnion &op) {
    if (const auto *wait = op.AsCollectiveWait())
      return wait->event;
    if (const auto *await = op.AsAwait())
      return await->event;
    return std::nullopt;
  }

  struct Ends {
    std::optional<OutlinePlace> set;
    std::vector<OutlinePlace> awaited;
  };

  /// The commands that set and await the events of a procedure's frame and its event arguments.
  /// Commands of callees are named by the call on the compute queue and the procedures on the way.
  const std::map<uint32_t, Ends> &endsOf(size_t p) {
    auto [it, isNew] = ends.try_emplace(p);
    if (!isNew)
      return it->second;
    std::map<uint32_t, Ends> found;
    const fb::ProcedureT &procedure = *program.procedures[p];
    for (Queue queue = 0; queue < program.queues.size(); ++queue) {
      const auto &stream = streamOf(procedure, queue);
      for (size_t i = 0; i < stream.size(); ++i) {
        const OutlineCommand &command = procedures[p].queues[queue][i];
        OutlinePlace place{program.queues[queue]->name, i, command.kind, command.name, {}};
        if (std::optional<uint32_t> event = eventSet(stream[i]->op))
          found[*event].set = place;
        if (std::optional<uint32_t> event = eventAwaited(stream[i]->op))
          found[*event].awaited.push_back(place);
        const fb::CallT *call = stream[i]->op.AsCall();
        if (!call || queue != kComputeQueue)
          continue;
        const uint32_t own = program.procedures[call->procedure]->num_events;
        for (const auto &[event, inner] : endsOf(call->procedure)) {
          auto outside = [&](OutlinePlace callee) {
            callee.within.insert(callee.within.begin(), command.callee);
            callee.index = i;
            return callee;
          };
          Ends &mine =
              found[event < own ? call->event_base + event : call->event_arguments[event - own]];
          if (inner.set)
            mine.set = outside(*inner.set);
          for (const OutlinePlace &waiter : inner.awaited)
            mine.awaited.push_back(outside(waiter));
        }
      }
    }
    return ends[p] = std::move(found);
  }

  void connect(size_t p) {
    const std::map<uint32_t, Ends> &mine = endsOf(p);
    for (Queue queue = 0; queue < program.queues.size(); ++queue) {
      const auto &stream = streamOf(*program.procedures[p], queue);
      for (size_t i = 0; i < stream.size(); ++i) {
        OutlineCommand &command = procedures[p].queues[queue][i];
        if (std::optional<uint32_t> event = eventSet(stream[i]->op))
          command.awaitedBy = mine.at(*event).awaited;
        if (std::optional<uint32_t> event = eventAwaited(stream[i]->op))
          if (const std::optional<OutlinePlace> &set = mine.at(*event).set)
            command.waitsFor.push_back(*set);
      }
    }
  }

  //===--------------------------------------------------------------------===//
  // Order of procedures
  //===--------------------------------------------------------------------===//

  std::vector<size_t> callersFirst() {
    std::vector<size_t> finished;
    std::set<size_t> seen;
    std::function<void(size_t)> visit = [&](size_t p) {
      if (!seen.insert(p).second)
        return;
      // Callees in reverse order, since the list is reversed.
      const auto &stream = streamOf(*program.procedures[p], kComputeQueue);
      for (auto it = stream.rbegin(); it != stream.rend(); ++it)
        if (const fb::CallT *call = (*it)->op.AsCall())
          visit(call->procedure);
      finished.push_back(p);
    };
    for (auto it = program.entries.rbegin(); it != program.entries.rend(); ++it)
      visit((*it)->procedure);
    std::reverse(finished.begin(), finished.end());
    for (const auto &e : program.entries)
      ++procedures[e->procedure].executions;
    for (size_t p : finished)
      for (const auto &command : streamOf(*program.procedures[p], kComputeQueue))
        if (const fb::CallT *call = command->op.AsCall(); call && runs(*command))
          procedures[call->procedure].executions += procedures[p].executions;
    for (size_t p = 0; p < procedures.size(); ++p)
      if (!seen.count(p))
        finished.push_back(p);
    return finished;
  }

  const fb::ProgramT &program;
  const Manifest &manifest;
  std::optional<int64_t> rank;
  Status status;
  const fb::ProcedureT *current = nullptr;
  const Entry *entry = nullptr; ///< of the current procedure
  std::vector<OutlineProcedure> procedures;
  std::map<size_t, std::map<uint32_t, Ends>> ends;
};

} // namespace

Result<ProgramOutline> outlineProgram(const Bundle &bundle, std::optional<int64_t> rank) {
  const int64_t ranks = bundle.manifest().mesh.numRanks();
  if (rank && (*rank < 0 || *rank >= ranks))
    return Status::error("there is no rank ", *rank, ": the mesh has ", ranks,
                         ranks == 1 ? " rank" : " ranks");
  std::unique_ptr<fb::ProgramT> program(fb::GetProgram(bundle.program().data())->UnPack());
  return Outliner(*program, bundle.manifest(), rank).run();
}

Result<ProgramOutline> outlineProgram(const Bundle &bundle, std::optional<int64_t> rank,
                                      const std::string &procedure) {
  Result<ProgramOutline> outline = outlineProgram(bundle, rank);
  if (!outline.ok() || procedure.empty())
    return outline;
  auto &all = outline->procedures;
  std::string names;
  for (const OutlineProcedure &one : all)
    names += (names.empty() ? "" : ", ") + one.name;
  all.erase(
      std::remove_if(all.begin(), all.end(), [&](const auto &p) { return p.name != procedure; }),
      all.end());
  if (all.empty())
    return Status::error("the program has no procedure '", procedure, "', it has ", names);
  return outline;
}

} // namespace braid::runtime
