//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One run: enqueues all commands, waits for them, and collects their times.
//
//===----------------------------------------------------------------------===//
#include "Executor.h"
#include "braid/Base/MatmulForm.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Collective/CollectiveParts.h"

#include <cstring>

namespace braid::runtime::cuda {

namespace {

std::string where(const Workers &workers, const Place &place) {
  const RankProgram &program = *workers.ranks[place.rank]->program;
  return "rank " + std::to_string(place.rank) + ": " +
         describe(program.queues[place.queue][place.index]);
}

bool isWait(const Command &command) {
  return std::holds_alternative<AwaitCommand>(command.op) ||
         std::holds_alternative<CollectiveWaitCommand>(command.op);
}

} // namespace

/// Makes a stream wait until the peers of a rank have read its payloads that a command, or a later
/// one, writes to. The end of a run needs no such wait: it is that of all ranks.
Status CudaExecutor::awaitReads(const RankProgram &program, const Command &command,
                                CUstream stream) {
  for (uint32_t read : command.awaitsReads)
    for (int64_t peer : program.reads[read].of->ranks)
      BRAID_CUDA_TRY(*driver, cuStreamWaitEvent, stream, state(peer).readEnds[read].get(), 0);
  return {};
}

Status CudaExecutor::enqueueStep(Workers &workers, size_t number, unsigned recordFlags) {
  const Step &step = steps[number];
  auto mark = [&](const Place &place, bool before) -> Status {
    RankState &rank = state(place.rank);
    const Slot &slot = rank.queues[place.queue].slots[place.index];
    // A graph keeps only the events that times are computed from.
    if ((before || recordFlags == kEventRecordExternal) && !slot.timed)
      return {};
    RETURN_IF_ERROR(rank.device.device->use());
    BRAID_CUDA_TRY(*driver, cuEventRecordWithFlags, (before ? slot.before : slot.after).get(),
                   rank.stream(place.queue), recordFlags);
    return {};
  };
  for (const Place &place : step.places) {
    const RankProgram &program = *workers.ranks[place.rank]->program;
    RETURN_IF_ERROR(state(place.rank).device.device->use());
    RETURN_IF_ERROR(awaitReads(program, program.queues[place.queue][place.index],
                               state(place.rank).stream(place.queue)));
    RETURN_IF_ERROR(mark(place, true));
  }
  if (exchanges[number])
    RETURN_IF_ERROR(exchanges[number]());
  for (const Place &place : step.places) {
    RankState &rank = state(place.rank);
    RETURN_IF_ERROR(rank.device.device->use());
    const CUstream stream = rank.stream(place.queue);
    const Command &command = workers.ranks[place.rank]->program->queues[place.queue][place.index];
    const Slot &slot = rank.queues[place.queue].slots[place.index];
    auto record = [&](uint32_t event) -> Status {
      BRAID_CUDA_TRY(*driver, cuEventRecordWithFlags, rank.events[event].get(), stream,
                     kEventRecordDefault);
      return {};
    };
    auto await = [&](uint32_t event) -> Status {
      BRAID_CUDA_TRY(*driver, cuStreamWaitEvent, stream, rank.events[event].get(), 0);
      return {};
    };
    if (auto *op = std::get_if<CollectiveCommand>(&command.op))
      RETURN_IF_ERROR(record(op->event));
    else if (auto *op = std::get_if<RecordCommand>(&command.op))
      RETURN_IF_ERROR(record(op->event));
    else if (auto *op = std::get_if<AwaitCommand>(&command.op))
      RETURN_IF_ERROR(await(op->event));
    else if (auto *op = std::get_if<CollectiveWaitCommand>(&command.op))
      RETURN_IF_ERROR(await(op->event));
    else if (slot.command)
      RETURN_IF_ERROR(slot.command(stream));
    if (command.endsRead != Command::kNoRead)
      BRAID_CUDA_TRY(*driver, cuEventRecordWithFlags, rank.readEnds[command.endsRead].get(), stream,
                     kEventRecordDefault);
    RETURN_IF_ERROR(mark(place, false));
  }
  return {};
}

Status CudaExecutor::enqueueBegin(RankState &rank, unsigned recordFlags) const {
  RETURN_IF_ERROR(rank.device.device->use());
  for (Queue queue = 0; queue < queues.size(); ++queue) {
    const CUstream stream = rank.stream(queue);
    BRAID_CUDA_TRY(*driver, cuStreamWaitEvent, stream, fork.get(), 0);
    BRAID_CUDA_TRY(*driver, cuEventRecordWithFlags, rank.queues[queue].begin.get(), stream,
                   recordFlags);
    if (rank.device.hasFaults[queue])
      BRAID_CUDA_TRY(*driver, cuMemsetD8Async, address(rank.device.faults + queue), 0,
                     sizeof(library::Fault), stream);
  }
  return {};
}

Status CudaExecutor::enqueueEnd(RankState &rank, unsigned recordFlags) const {
  RETURN_IF_ERROR(rank.device.device->use());
  auto *copies = static_cast<library::Fault *>(rank.faultCopies.get());
  for (Queue queue = 0; queue < queues.size(); ++queue) {
    const CUstream stream = rank.stream(queue);
    if (rank.device.hasFaults[queue])
      BRAID_CUDA_TRY(*driver, cuMemcpyAsync, address(copies + queue),
                     address(rank.device.faults + queue), sizeof(library::Fault), stream);
    BRAID_CUDA_TRY(*driver, cuEventRecordWithFlags, rank.queues[queue].end.get(), stream,
                   recordFlags);
  }
  return {};
}

Status CudaExecutor::enqueueAll(Workers &workers, unsigned recordFlags) {
  RETURN_IF_ERROR(devices[0]->use());
  BRAID_CUDA_TRY(*driver, cuEventRecordWithFlags, fork.get(), control.get(), kEventRecordDefault);
  for (size_t r = 0; r < ranks.size(); ++r)
    RETURN_IF_ERROR(ofRank(r, enqueueBegin(ranks[r], recordFlags)));
  for (size_t step = 0; step < steps.size(); ++step)
    if (Status status = enqueueStep(workers, step, recordFlags); !status.ok())
      return Status::error(where(workers, steps[step].places.front()) + ": " + status.message(),
                           status.code());
  for (size_t r = 0; r < ranks.size(); ++r)
    RETURN_IF_ERROR(ofRank(r, enqueueEnd(ranks[r], recordFlags)));
  return {};
}

/// Makes the stream that all others were forked from wait for them, as a capture requires.
Status CudaExecutor::joinStreams() {
  for (RankState &rank : ranks)
    for (const QueueStream &queue : rank.queues) {
      ASSIGN_OR_RETURN(Event join, createEvent(rank.device.device, false));
      BRAID_CUDA_TRY(*driver, cuEventRecordWithFlags, join.get(), queue.stream.get(),
                     kEventRecordDefault);
      RETURN_IF_ERROR(devices[0]->use());
      BRAID_CUDA_TRY(*driver, cuStreamWaitEvent, control.get(), join.get(), 0);
    }
  return {};
}

Status CudaExecutor::capture(Workers &workers) {
  RETURN_IF_ERROR(devices[0]->use());
  BRAID_CUDA_TRY(*driver, cuStreamBeginCapture_v2, control.get(), kCaptureThreadLocal);
  Status status = enqueueAll(workers, kEventRecordExternal);
  if (status.ok())
    status = joinStreams();
  // The capture is ended after a failure too.
  CUgraph captured = nullptr;
  auto end = [&]() -> Status {
    RETURN_IF_ERROR(devices[0]->use());
    BRAID_CUDA_TRY(*driver, cuStreamEndCapture, control.get(), &captured);
    return {};
  };
  const Status ended = end();
  const Graph owned = captured ? Graph(devices[0], captured, driver->cuGraphDestroy) : Graph();
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(ended);
  CUgraphExec instance;
  BRAID_CUDA_TRY(*driver, cuGraphInstantiateWithFlags, &instance, captured, 0);
  graph = GraphExec(devices[0], instance, driver->cuGraphExecDestroy);
  return {};
}

Status CudaExecutor::start(Workers &workers) {
  // The first use of a kernel may load code, which a capture forbids.
  if (!useGraph || !warm)
    return enqueueAll(workers, kEventRecordDefault);
  if (!graph)
    RETURN_IF_ERROR(capture(workers));
  RETURN_IF_ERROR(devices[0]->use());
  BRAID_CUDA_TRY(*driver, cuGraphLaunch, graph.get(), control.get());
  BRAID_CUDA_TRY(*driver, cuEventRecordWithFlags, graphEnd.get(), control.get(),
                 kEventRecordDefault);
  return {};
}

/// Counts commands that have ended since the last poll; returns whether there were any.
bool CudaExecutor::advance(Workers &workers, Status &failure) {
  bool moved = false;
  for (size_t r = 0; r < ranks.size() && failure.ok(); ++r) {
    RankState &rank = ranks[r];
    failure = rank.device.device->use();
    for (Queue queue = 0; queue < queues.size() && failure.ok(); ++queue) {
      const auto &commands = workers.ranks[static_cast<int64_t>(r)]->program->queues[queue];
      QueueState &self = workers.control.queue(static_cast<int64_t>(r), queue);
      QueueStream &own = rank.queues[queue];
      size_t &done = own.done;
      const size_t before = done;
      while (done <= commands.size()) { // size() stands for the queue's end
        const bool last = done == commands.size();
        const Slot *slot = last ? nullptr : &own.slots[done];
        const CUresult result = driver->cuEventQuery(slot ? slot->after.get() : own.end.get());
        if (result == kNotReady)
          break;
        failure = driver->check(result, "cuEventQuery");
        if (!failure.ok()) {
          const std::string at = last ? "the end of its queue" : describe(commands[done]);
          failure = ofRank(
              r, Status::error("at or before " + at + ": " + failure.message(), failure.code()));
          break;
        }
        ++done;
      }
      if (done == before)
        continue;
      moved = true;
      self.progress.fetch_add(done - before, std::memory_order_relaxed);
      const Command *at = done < commands.size() ? &commands[done] : nullptr;
      self.at.store(at, std::memory_order_relaxed);
      self.since.store(nowNs(), std::memory_order_relaxed);
      self.waiting.store(at && isWait(*at) ? Waiting::event : Waiting::nothing,
                         std::memory_order_relaxed);
    }
  }
  return moved;
}

Status CudaExecutor::checkGroups() const {
  for (const auto &[key, group] : groups)
    if (Status status = group->check(); !status.ok())
      return Status::error("ranks " + shapeString(key.members) + ": " + status.message(),
                           status.code());
  return {};
}

Status CudaExecutor::watch(Workers &workers) {
  RunControl &control = workers.control;
  RunControl::Watch watched;
  for (int64_t idle = 0;;) {
    Status failure;
    const bool moved = advance(workers, failure);
    RETURN_IF_ERROR(failure);
    bool ended = true;
    for (size_t r = 0; r < ranks.size(); ++r)
      for (Queue queue = 0; queue < queues.size(); ++queue)
        ended &= ranks[r].queues[queue].done >
                 workers.ranks[static_cast<int64_t>(r)]->program->queues[queue].size();
    if (ended)
      return {};
    RETURN_IF_ERROR(checkGroups());
    if (!control.poll(watched))
      return control.failure();
    idle = moved ? 0 : idle + 1;
    pause(idle);
  }
}

Status CudaExecutor::checkFaults(const Workers &workers) const {
  for (size_t r = 0; r < ranks.size(); ++r)
    for (Queue queue = 0; queue < queues.size(); ++queue) {
      if (!ranks[r].device.hasFaults[queue])
        continue;
      library::Fault fault;
      std::memcpy(&fault, static_cast<const library::Fault *>(ranks[r].faultCopies.get()) + queue,
                  sizeof fault);
      if (fault.command == 0)
        continue;
      const Command &command = workers.ranks[static_cast<int64_t>(r)]
                                   ->program->queues[queue][commandOfFault(fault.command) - 1];
      if (auto *op = std::get_if<CollectiveCommand>(&command.op))
        return ofRank(r, countError(op->collective, fault.value, fault.position));
      if (auto *op = std::get_if<DeviceLaunchCommand>(&command.op))
        return ofRank(r, payloadError(*op, fault).within(describe(command)));
      const auto &call = std::get<LibraryArguments>(command.op);
      const std::string at = std::to_string(fault.value) + " at position " +
                             std::to_string(fault.position) + " is outside of [0, ";
      if (std::strcmp(call.kernel->name, "matmul") == 0)
        return ofRank(r, Status::error(describe(command) + ": count " + at +
                                           std::to_string(MatmulForm::of(call)->m) + "]",
                                       Code::invalid));
      if (std::strcmp(call.kernel->name, "append") == 0)
        return ofRank(r, appendError(call, fault.value, fault.position).within(describe(command)));
      if (CudaCodec::has(call.kernel->name))
        return ofRank(r, payloadError(call, fault).within(describe(command)));
      return ofRank(r, Status::error(describe(command) + ": id " + at +
                                         std::to_string(resolveGather(call, 1)->limit) + ")",
                                     Code::invalid)); // the ids are an input
    }
  return {};
}

Result<int64_t> CudaExecutor::timeOf(const RankState &rank, const Event &event,
                                     int64_t beginNs) const {
  float ms = 0;
  BRAID_CUDA_TRY(*driver, cuEventElapsedTime, &ms, rank.queues[kComputeQueue].begin.get(),
                 event.get());
  return beginNs + static_cast<int64_t>(static_cast<double>(ms) * 1e6);
}

/// Times of a device count from the begin of its rank's compute queue, which is taken as the begin
/// of the run. A collective is hidden while the compute stream runs commands that compute; the
/// device does not report whether it moves bytes meanwhile, or waits for a peer.
Status CudaExecutor::collectTimes(Workers &workers) {
  const int64_t origin = workers.runBeginNs;
  for (size_t r = 0; r < ranks.size(); ++r) {
    RankState &state = ranks[r];
    Rank &rank = *workers.ranks[static_cast<int64_t>(r)];
    RETURN_IF_ERROR(state.device.device->use());
    std::vector<Interval> computing; // the compute queue comes first
    for (Queue queue = 0; queue < queues.size(); ++queue)
      for (size_t i = 0; i < state.queues[queue].slots.size(); ++i) {
        const Slot &slot = state.queues[queue].slots[i];
        if (!slot.timed)
          continue;
        Interval span;
        ASSIGN_OR_RETURN(span.beginNs, timeOf(state, slot.before, origin));
        ASSIGN_OR_RETURN(span.endNs, timeOf(state, slot.after, origin));
        const Command &command = rank.program->queues[queue][i];
        const int64_t length = span.endNs - span.beginNs;
        if (command.mayOverlap)
          computing.push_back(span);
        if (auto *op = std::get_if<CollectiveWaitCommand>(&command.op);
            op && queue == kComputeQueue)
          rank.times.addExposed(op->index, length);
        if (auto *op = std::get_if<CollectiveCommand>(&command.op)) {
          const bool byForm = rank.program->collectives[op->index].exposedByForm;
          rank.times.add(op->index, length, byForm ? 0 : coveredNs(span, computing), 0);
        }
        if (trace)
          rank.trace[queue].push_back({&command, span.beginNs, span.endNs});
      }
    rank.times.sum();
  }
  return {};
}

/// Events inside a graph keep the state of the previous run until they are reached, so only the end
/// of the graph is polled.
Status CudaExecutor::watchGraph(Workers &workers) {
  const int64_t limit = workers.control.limit(), begin = nowNs();
  for (int64_t idle = 0;; ++idle) {
    const CUresult result = driver->cuEventQuery(graphEnd.get());
    if (result != kNotReady)
      return driver->check(result, "cuEventQuery");
    RETURN_IF_ERROR(checkGroups());
    if (limit > 0 && nowNs() - begin >= limit)
      return Status::error("the graph of a run has not ended within " + seconds(limit) +
                               " (without --cuda-graph the message names the command)",
                           Code::rankFailed);
    pause(idle);
  }
}

void CudaExecutor::giveUp() {
  for (const DevicePtr &device : devices)
    device->lost = true;
  for (auto &group : groups)
    group.second->lost = true;
}

Status CudaExecutor::run(Workers &workers, size_t entry) {
  if (workers.lost)
    return Status::error("the model cannot run again: a rank did not return from an earlier run",
                         Code::rankFailed);
  select(entry);
  workers.control.begin();
  for (size_t r = 0; r < ranks.size(); ++r) {
    Rank &rank = *workers.ranks[static_cast<int64_t>(r)];
    rank.times.clear(rank.program->collectives.size());
    for (Queue queue = 0; queue < queues.size(); ++queue) {
      rank.trace[queue].clear();
      ranks[r].queues[queue].done = 0;
      const auto &commands = rank.program->queues[queue];
      workers.control.queue(static_cast<int64_t>(r), queue)
          .at.store(commands.empty() ? nullptr : &commands[0], std::memory_order_relaxed);
    }
  }
  workers.runBeginNs = nowNs();
  Status status = start(workers);
  if (status.ok())
    status = useGraph && warm ? watchGraph(workers) : watch(workers);
  workers.runEndNs = nowNs();
  if (!status.ok()) {
    // Enqueued commands may never end, and after a fault no call of the context works.
    workers.lost = true;
    giveUp();
    return status;
  }
  warm = true;
  RETURN_IF_ERROR(checkFaults(workers));
  return collectTimes(workers);
}

} // namespace braid::runtime::cuda
