//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/ExpandedProgram.h"
#include "braid/Base/LibraryKernels.h"
#include "braid/Base/RankSet.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Program/Program.h"
#include "braid/Program/program_generated.h"

#include <algorithm>
#include <map>
#include <set>

namespace braid::interp {

namespace fb = braid::program;

std::string ProgramCommand::describe() const {
  return std::string(kind) + (name.empty() ? "" : " '" + name + "'") + " in " + place + " on the " +
         queueName + " queue";
}

std::vector<int64_t> ExpandedProgram::inputsOfSegments() const {
  std::vector<int64_t> ofRegion(regionBytes.size(), -1), result;
  for (size_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].isInput)
      ofRegion[buffers[b].region] = static_cast<int64_t>(b);
  for (const Segment &segment : segments)
    result.push_back(ofRegion[segment.region]);
  return result;
}

std::string ExpandedProgram::describeBytes(uint32_t segment) const {
  const Segment &s = segments[segment];
  const char *region = s.region == kLocal       ? "local"
                       : s.region == kSymmetric ? "symmetric"
                                                : "argument";
  return std::string(region) + " bytes [" + std::to_string(s.begin) + ", " + std::to_string(s.end) +
         ")";
}

namespace {

/// Contiguous runs of bytes that a view covers, in ascending order where strides descend.
std::vector<std::pair<uint64_t, uint64_t>> runsOf(const MemoryView &view) {
  auto elementBytes = static_cast<uint64_t>(runtime::byteSize(view.dtype));
  std::vector<uint64_t> begins{view.offset};
  uint64_t length = elementBytes;
  for (size_t d = view.shape.size(); d-- > 0;) {
    auto size = static_cast<uint64_t>(view.shape[d]);
    uint64_t stride = static_cast<uint64_t>(view.strides[d]) * elementBytes;
    if (size == 1 || stride == 0)
      continue;
    if (begins.size() == 1 && stride == length) {
      length *= size;
      continue;
    }
    std::vector<uint64_t> all;
    all.reserve(begins.size() * size);
    for (uint64_t i = 0; i < size; ++i)
      for (uint64_t begin : begins)
        all.push_back(begin + i * stride);
    begins = std::move(all);
  }
  std::vector<std::pair<uint64_t, uint64_t>> runs;
  std::sort(begins.begin(), begins.end());
  for (uint64_t begin : begins) {
    if (!runs.empty() && begin <= runs.back().second)
      runs.back().second = std::max(runs.back().second, begin + length);
    else
      runs.emplace_back(begin, begin + length);
  }
  return runs;
}

bool sameMemory(const MemoryView &a, const MemoryView &b) {
  return a.region == b.region && a.offset == b.offset && a.dtype == b.dtype && a.shape == b.shape &&
         a.strides == b.strides;
}

const char *kindOf(const fb::OperationUnion &op, const fb::ProgramT &program) {
  switch (op.type) {
  case fb::Operation::Launch: {
    const auto *library = runtime::libraryKernelOf(*program.kernels[op.AsLaunch()->kernel]);
    return library ? library->name : "kernel";
  }
  case fb::Operation::Copy:
    return "copy";
  case fb::Operation::CollectiveStart:
    return fb::EnumNameCollectiveKind(op.AsCollectiveStart()->kind);
  case fb::Operation::CollectiveWait:
    return "wait";
  case fb::Operation::Record:
    return "record";
  case fb::Operation::Await:
    return "await";
  case fb::Operation::Call:
  case fb::Operation::NONE:
    break;
  }
  return "command";
}

/// The number of a view's place on a rank.
int64_t placeOf(const fb::PositionT &position, const runtime::Mesh &mesh, int64_t rank) {
  // The axes were verified.
  return runtime::shiftedPosition(*mesh.groupPosition(rank, runtime::axesOf(position.axes)),
                                  position.shift, position.count);
}

template <typename Fn> void forEachView(const fb::OperationUnion &op, Fn body) {
  auto all = [&](const auto &views) {
    for (const auto &view : views)
      body(*view);
  };
  switch (op.type) {
  case fb::Operation::Launch:
    return all(op.AsLaunch()->operands);
  case fb::Operation::Copy:
    body(*op.AsCopy()->source);
    return body(*op.AsCopy()->dest);
  case fb::Operation::CollectiveStart:
    all(op.AsCollectiveStart()->inputs);
    return all(op.AsCollectiveStart()->outputs);
  case fb::Operation::Call:
    return all(op.AsCall()->arguments);
  case fb::Operation::CollectiveWait:
  case fb::Operation::Record:
  case fb::Operation::Await:
  case fb::Operation::NONE:
    return;
  }
}

/// The different ways in which views depend on the rank.
std::vector<const fb::PositionT *> positionsOf(const fb::ProgramT &program) {
  std::vector<const fb::PositionT *> positions;
  auto isKnown = [&](const fb::PositionT &position) {
    return std::any_of(positions.begin(), positions.end(), [&](const fb::PositionT *other) {
      return other->shift == position.shift && other->count == position.count &&
             runtime::axesOf(other->axes) == runtime::axesOf(position.axes);
    });
  };
  for (const auto &procedure : program.procedures)
    for (const auto &stream : procedure->streams)
      for (const auto &command : stream->commands)
        forEachView(command->op, [&](const fb::ViewT &view) {
          if (view.position && !isKnown(*view.position))
            positions.push_back(view.position.get());
        });
  return positions;
}

/// Whether a rank runs a command where its procedure runs.
bool runsOn(const fb::CommandT &command, const runtime::Mesh &mesh, int64_t rank) {
  const std::vector<int64_t> coordinates =
      command.on.empty() ? std::vector<int64_t>() : mesh.coordinates(rank);
  return std::all_of(command.on.begin(), command.on.end(), [&](const auto &named) {
    for (size_t i = 0; i < mesh.axes.size(); ++i)
      if (mesh.axes[i].name == named->axis)
        return std::find(named->coordinates.begin(), named->coordinates.end(), coordinates[i]) !=
               named->coordinates.end();
    return false;
  });
}

/// Whether a rank runs or has them: each command and each entry value that only some ranks do.
std::vector<bool> presenceOn(const fb::ProgramT &program, const runtime::Entry &entry,
                             const runtime::Mesh &mesh, int64_t rank) {
  std::vector<bool> present;
  for (const auto &procedure : program.procedures)
    for (const auto &stream : procedure->streams)
      for (const auto &command : stream->commands)
        if (!command->on.empty())
          present.push_back(runsOn(*command, mesh, rank));
  for (const runtime::Parameter &parameter : entry.parameters)
    present.push_back(parameter.on.contains(mesh, rank));
  for (const auto *values : {&entry.states, &entry.operands, &entry.results})
    for (const runtime::EntryValue &value : *values)
      present.push_back(value.on.contains(mesh, rank));
  return present;
}

class Expander {
public:
  Expander(ExpandedProgram &out, const fb::ProgramT &program, const runtime::Mesh &mesh,
           int64_t rank)
      : out(out), program(program), mesh(mesh), rank(rank) {}

  Status run(const runtime::Entry &entry) {
    auto found = std::find_if(program.entries.begin(), program.entries.end(),
                              [&](const auto &e) { return e->name == entry.name; });
    if (found == program.entries.end())
      return Status::error("the program has no entry '" + entry.name + "'");
    const fb::ProcedureT &root = *program.procedures[(*found)->procedure];
    out.regionBytes = {root.local_bytes, root.symmetric_bytes};
    out.numEvents = root.num_events;
    out.queues.resize(program.queues.size());
    Frame frame;
    frame.procedure = &root;
    frame.place = "@" + root.name;
    auto argument = [&](const char *kind, const auto &value, bool isInput) -> Status {
      Result<runtime::Box> box =
          runtime::localBox(mesh, rank, value.shardedShape(), value.sharding);
      if (!box.ok())
        return Status::error(std::string(kind) + " '" + value.name +
                             "': " + box.status().message());
      MemoryView view;
      view.region = static_cast<uint32_t>(out.regionBytes.size());
      view.buffer = static_cast<uint32_t>(out.buffers.size());
      out.buffers.push_back(
          {std::string(kind) + " '" + value.name + "'", view.region, true, isInput});
      out.regionBytes.push_back(
          value.on.contains(mesh, rank)
              ? static_cast<uint64_t>(numElements(box->sizes) * runtime::byteSize(value.dtype))
              : 0);
      frame.arguments.push_back(std::move(view));
      return {};
    };
    for (const runtime::Parameter &parameter : entry.parameters)
      RETURN_IF_ERROR(argument("parameter", parameter, true));
    for (const runtime::EntryValue &state : entry.states)
      RETURN_IF_ERROR(argument("state", state, true));
    for (const runtime::EntryValue &operand : entry.operands)
      RETURN_IF_ERROR(argument("input", operand, true));
    for (const runtime::EntryValue &result : entry.results)
      RETURN_IF_ERROR(argument("result", result, false));
    walk(frame);
    splitIntoSegments();
    return {};
  }

private:
  struct Frame {
    const fb::ProcedureT *procedure = nullptr;
    std::vector<MemoryView> arguments;
    uint64_t localBase = 0, symmetricBase = 0;
    uint32_t eventBase = 0;
    std::vector<uint32_t> eventArguments; ///< numbers in the run
    std::string place;
    std::vector<uint32_t> buffers; ///< the procedure's buffers in this execution
    uint32_t unnamed = 0;          ///< stands for memory without a buffer in the program

    /// The number in the run of an event that the procedure names.
    uint32_t event(uint32_t number) const {
      return number < procedure->num_events ? eventBase + number
                                            : eventArguments[number - procedure->num_events];
    }
  };

  /// Walks all queues together from call to call, so that a call's buffers are added once.
  void walk(Frame &frame) {
    auto newBuffer = [&](const std::string &what, uint32_t region) {
      out.buffers.push_back({what + " in " + frame.place, region, false, false});
      return static_cast<uint32_t>(out.buffers.size() - 1);
    };
    for (const auto &buffer : frame.procedure->buffers)
      frame.buffers.push_back(newBuffer("buffer '" + buffer->name + "'",
                                        buffer->space == fb::Space::local ? kLocal : kSymmetric));
    frame.unnamed = newBuffer("memory", kLocal);

    std::vector<size_t> next(out.numQueues(), 0);
    const fb::CommandT *call = nullptr;
    do {
      call = nullptr;
      for (Queue queue = 0; queue < out.numQueues(); ++queue) {
        const auto &stream = frame.procedure->streams[queue]->commands;
        size_t &i = next[queue];
        for (; i < stream.size() && stream[i]->op.type != fb::Operation::Call; ++i)
          if (runsOn(*stream[i], mesh, rank))
            add(frame, *stream[i], queue);
        if (i < stream.size())
          call = stream[i++].get();
      }
      if (call && runsOn(*call, mesh, rank))
        enter(frame, *call);
    } while (call);
  }

  void enter(const Frame &caller, const fb::CommandT &command) {
    const fb::CallT &call = *command.op.AsCall();
    Frame callee;
    callee.procedure = program.procedures[call.procedure].get();
    for (const auto &view : call.arguments)
      callee.arguments.push_back(resolve(caller, *view));
    callee.localBase = caller.localBase + call.local_base_bytes;
    callee.symmetricBase = caller.symmetricBase + call.symmetric_base_bytes;
    callee.eventBase = caller.eventBase + call.event_base;
    for (uint32_t event : call.event_arguments)
      callee.eventArguments.push_back(caller.event(event));
    callee.place = "@" + callee.procedure->name;
    if (!command.name.empty() && command.name != callee.procedure->name)
      callee.place += " (" + command.name + ")";
    walk(callee);
  }

  MemoryView resolve(const Frame &frame, const fb::ViewT &view) const {
    MemoryView result;
    switch (view.space) {
    case fb::Space::argument:
      result = frame.arguments[view.index];
      break;
    case fb::Space::local:
      result.region = kLocal;
      result.offset = frame.localBase;
      break;
    case fb::Space::symmetric:
      result.region = kSymmetric;
      result.offset = frame.symmetricBase;
      break;
    }
    if (view.space != fb::Space::argument)
      result.buffer =
          view.buffer < 0 ? frame.unnamed : frame.buffers[static_cast<size_t>(view.buffer)];
    result.offset += view.offset_bytes;
    if (view.position)
      result.offset +=
          static_cast<uint64_t>(placeOf(*view.position, mesh, rank)) * view.position->stride_bytes;
    result.dtype = static_cast<DType>(view.dtype);
    result.shape = view.shape;
    result.strides = view.strides;
    return result;
  }

  void add(const Frame &frame, const fb::CommandT &source, Queue queue) {
    auto &stream = out.queues[queue];
    ProgramCommand command;
    command.op = &source.op;
    command.kind = kindOf(source.op, program);
    command.name = source.name;
    command.place = frame.place;
    command.queue = queue;
    command.queueName = program.queues[queue]->name.c_str();
    command.index = static_cast<uint32_t>(stream.size());
    auto reads = [&](const std::unique_ptr<fb::ViewT> &view) {
      command.reads.push_back({resolve(frame, *view), {}, -1});
    };
    auto writes = [&](const std::unique_ptr<fb::ViewT> &view, int inPlaceOf = -1) {
      command.writes.push_back({resolve(frame, *view), {}, inPlaceOf});
    };
    auto event = [&](uint32_t number, bool waits) {
      command.event = frame.event(number);
      command.waits = waits;
    };
    switch (source.op.type) {
    case fb::Operation::Launch:
      addLaunch(*source.op.AsLaunch(), frame, command);
      break;
    case fb::Operation::Copy:
      reads(source.op.AsCopy()->source);
      writes(source.op.AsCopy()->dest);
      break;
    case fb::Operation::CollectiveStart: {
      const fb::CollectiveStartT &op = *source.op.AsCollectiveStart();
      for (const auto &view : op.inputs)
        reads(view);
      for (size_t i = 0; i < op.outputs.size(); ++i) {
        // Only an all_reduce may write its result to the buffer of its input.
        const bool inPlace =
            op.kind == fb::CollectiveKind::all_reduce && i < op.inputs.size() &&
            resolve(frame, *op.inputs[i]).buffer == resolve(frame, *op.outputs[i]).buffer;
        writes(op.outputs[i], inPlace ? static_cast<int>(i) : -1);
      }
      event(op.done, false);
      command.isCollective = true;
      break;
    }
    case fb::Operation::CollectiveWait:
      event(source.op.AsCollectiveWait()->event, true);
      break;
    case fb::Operation::Record:
      event(source.op.AsRecord()->event, false);
      break;
    case fb::Operation::Await:
      event(source.op.AsAwait()->event, true);
      break;
    case fb::Operation::Call:
    case fb::Operation::NONE:
      break;
    }
    for (Operand &write : command.writes)
      if (write.inPlaceOf >= 0 &&
          !sameMemory(write.view, command.reads[static_cast<size_t>(write.inPlaceOf)].view))
        write.inPlaceOf = -1;
    stream.push_back(std::move(command));
  }

  void addLaunch(const fb::LaunchT &op, const Frame &frame, ProgramCommand &command) {
    const fb::KernelT &kernel = *program.kernels[op.kernel];
    const size_t numInputs = op.operands.size() - kernel.num_outputs;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      MemoryView view = resolve(frame, *op.operands[i]);
      if (i < numInputs) {
        command.reads.push_back({std::move(view), {}, -1});
        continue;
      }
      Operand write{std::move(view), {}, -1};
      for (size_t p = 0; p + 1 < kernel.in_place.size(); p += 2)
        if (kernel.in_place[p + 1] == i &&
            sameMemory(write.view, command.reads[kernel.in_place[p]].view))
          write.inPlaceOf = static_cast<int>(kernel.in_place[p]);
      command.writes.push_back(std::move(write));
    }
    const runtime::LibraryKernel *library = runtime::libraryKernelOf(kernel);
    if (!library)
      return;
    // What an output holds is an input, too.
    for (size_t i = 0; i < command.writes.size(); ++i)
      if (library->reads(library->firstOutput() + i, kernel.library->integers)) {
        command.writes[i].inPlaceOf = static_cast<int>(command.reads.size());
        command.reads.push_back({command.writes[i].view, {}, -1});
      }
  }

  void splitIntoSegments() {
    std::vector<std::set<uint64_t>> bounds(out.regionBytes.size());
    std::vector<std::pair<Operand *, std::vector<std::pair<uint64_t, uint64_t>>>> runs;
    for (auto &queue : out.queues)
      for (ProgramCommand &command : queue)
        for (auto *operands : {&command.reads, &command.writes})
          for (Operand &operand : *operands) {
            runs.emplace_back(&operand, runsOf(operand.view));
            for (auto [begin, end] : runs.back().second)
              bounds[operand.view.region].insert({begin, end});
          }
    std::vector<std::vector<uint64_t>> begins(bounds.size());
    std::vector<uint32_t> first(bounds.size());
    for (uint32_t region = 0; region < bounds.size(); ++region) {
      first[region] = static_cast<uint32_t>(out.segments.size());
      begins[region].assign(bounds[region].begin(), bounds[region].end());
      for (size_t i = 0; i + 1 < begins[region].size(); ++i)
        out.segments.push_back({region, begins[region][i], begins[region][i + 1]});
    }
    for (auto &[operand, ranges] : runs) {
      const uint32_t region = operand->view.region;
      auto number = [&](uint64_t byte) {
        auto at = std::lower_bound(begins[region].begin(), begins[region].end(), byte);
        return first[region] + static_cast<uint32_t>(at - begins[region].begin());
      };
      for (auto [begin, end] : ranges)
        operand->segments.emplace_back(number(begin), number(end));
    }
  }

  ExpandedProgram &out;
  const fb::ProgramT &program;
  const runtime::Mesh &mesh;
  int64_t rank;
};

} // namespace

Result<ProgramRoles> expandProgram(const runtime::Bytes &bytes, const runtime::Manifest &manifest,
                                   const runtime::Entry &entry) {
  RETURN_IF_ERROR(runtime::verifyProgram(bytes, manifest));
  const auto source = std::shared_ptr<const fb::ProgramT>(fb::GetProgram(bytes.data())->UnPack());
  const std::vector<const fb::PositionT *> positions = positionsOf(*source);
  ProgramRoles result;
  // By the places of views, and by what is there.
  std::map<std::pair<std::vector<int64_t>, std::vector<bool>>, size_t> known;
  for (int64_t rank = 0; rank < manifest.mesh.numRanks(); ++rank) {
    std::vector<int64_t> places;
    for (const fb::PositionT *position : positions)
      places.push_back(placeOf(*position, manifest.mesh, rank));
    auto [role, isNew] = known.try_emplace(
        {std::move(places), presenceOn(*source, entry, manifest.mesh, rank)}, result.roles.size());
    result.roleOf.push_back(role->second);
    if (!isNew)
      continue;
    ExpandedProgram &expanded = result.roles.emplace_back();
    expanded.source = source;
    RETURN_IF_ERROR(Expander(expanded, *source, manifest.mesh, rank).run(entry));
  }
  return result;
}

} // namespace braid::interp
