//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandTimes.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Cost/ScheduleChoice.h"
#include "braid/Program/Program.h"
#include "runtime/lib/Collective/CollectiveParts.h"
#include "runtime/lib/Sync/Cores.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace braid::runtime {

namespace fb = braid::program;

// Ranks of "ucx" on one host reach each other as those of "shm".
CommandTimes::CommandTimes(const cost::Machine &machine, const std::string &itsTransport,
                           RankRange local, int64_t ranksOfHost, int64_t threads)
    : machine(machine), transport(itsTransport == "ucx" ? "shm" : itsTransport), local(local),
      operations(machine, {std::max<int64_t>(1, std::min(ranksOfHost * threads,
                                                         static_cast<int64_t>(usableCores()))),
                           threads}) {
  for (const cost::Interference &beside : machine.interference)
    if (beside.transport == transport && beside.ranks == ranksOfHost)
      (beside.kind == "matmul" ? ofMatmul : ofMemory) = {beside.computeSlowdown,
                                                         beside.communicationSlowdown};
}

CommandTimes::Slowdown CommandTimes::slowdown(const Command &command,
                                              const Collective &collective) const {
  const bool multiplies = std::strcmp(command.operation, "matmul") == 0 ||
                          std::strcmp(command.operation, "attention") == 0;
  Slowdown slow = multiplies ? ofMatmul : ofMemory;
  // What a link takes of processors is the same for all that computes.
  if (const cost::Link *link = linkUse(collective).link) {
    slow.compute = std::max(slow.compute, link->computeSlowdown.value_or(1));
    slow.communication = std::max(slow.communication, link->communicationSlowdown.value_or(1));
  }
  return slow;
}

size_t CommandTimes::localRanks(const ProcessGroup &group) const {
  return static_cast<size_t>(std::count_if(group.ranks.begin(), group.ranks.end(),
                                           [&](int64_t rank) { return local.contains(rank); }));
}

static double viewBytes(const fb::ViewT &view) {
  auto bytes = static_cast<double>(byteSize(static_cast<DType>(view.dtype)));
  for (int64_t size : view.shape)
    bytes *= static_cast<double>(size);
  return bytes;
}

double CommandTimes::bytesOf(const fb::LaunchT &launch) {
  double bytes = 0;
  for (const auto &operand : launch.operands)
    bytes += viewBytes(*operand);
  return bytes;
}

Result<double> CommandTimes::ofKernel(const fb::KernelT &kernel, const fb::LaunchT &launch,
                                      const Mesh &mesh) const {
  cost::RowWork work;
  for (const auto &operation : kernel.row_work)
    work.emplace_back(operation->operation, static_cast<double>(operation->count));
  double read = 0, written = 0;
  for (size_t i = 0; i < launch.operands.size(); ++i)
    (i + kernel.num_outputs < launch.operands.size() ? read : written) +=
        viewBytes(*launch.operands[i]);
  std::vector<LibraryCall> codecs;
  for (const auto &codec : kernel.codecs) {
    auto typeOf = [&](size_t operand) {
      const fb::ViewT &view = *launch.operands[operand];
      return OperandType{static_cast<DType>(view.dtype), view.shape, view.strides};
    };
    std::optional<OperandType> own;
    if (codec->own >= 0)
      own = typeOf(static_cast<size_t>(codec->own));
    ASSIGN_OR_RETURN(const int64_t parts, mesh.numShards(axesOf(codec->codec->axes)));
    codecs.push_back(codecCall(*codec, launch.rows, typeOf(codec->operand), std::move(own), parts));
  }
  return operations.ofRows(work, static_cast<double>(launch.rows), read, written, codecs);
}

Result<double> CommandTimes::ofCopy(const Tensor &source) const {
  return operations.ofCopy(static_cast<double>(source.numElements() * byteSize(source.dtype)));
}

ScheduleRequest CommandTimes::plannedRequest(const Collective &c) {
  ScheduleRequest request = requestOf(c);
  if (c.chosen) {
    request.algorithm = c.chosen->algorithm;
    request.chunkBytes = c.chosen->chunkBytes;
  }
  if (c.readInPlace)
    request = cost::readInPlace(std::move(request));
  return request;
}

Result<const cost::Network *> CommandTimes::networkFor(const Collective &c) const {
  const auto ranks = static_cast<int64_t>(c.group->ranks.size());
  std::vector<int64_t> hosts;
  for (int64_t position = 0; position < ranks; ++position)
    hosts.push_back(c.group->topology.placeOf(position).host);
  auto found = networks.find(hosts);
  if (found == networks.end()) {
    ASSIGN_OR_RETURN(cost::Network network,
                     cost::networkOf(machine, transport, ranks, c.group->topology));
    found = networks.emplace(std::move(hosts), std::move(network)).first;
  }
  return &found->second;
}

double CommandTimes::coldSeconds(const Collective &c, double usedBytes) const {
  if (isPointToPoint(c.kind) || c.group->ranks.size() == 1)
    return 0;
  const Result<const cost::Network *> network = networkFor(c);
  if (!network.ok())
    return 0;
  // What wrote the input is part of what was measured: it used as much for the source.
  const ScheduleRequest request = plannedRequest(c);
  double input = 0;
  for (const ScheduleValue &value : request.values)
    input += static_cast<double>(value.partBytes * request.inputParts());
  return cost::coldSeconds(request, **network, std::max(0.0, usedBytes - 2 * input));
}

Result<double> CommandTimes::ofCollective(const Collective &c) const {
  if (c.group->ranks.size() == 1)
    return 0.0;
  ASSIGN_OR_RETURN(const cost::CollectiveTime *time, timeOf(c));
  return time->rankSeconds[static_cast<size_t>(c.position)];
}

CommandTimes::LinkUse CommandTimes::linkUse(const Collective &c) const {
  if (c.group->ranks.size() == 1)
    return {};
  const Result<const cost::Network *> network = networkFor(c);
  const Result<const cost::CollectiveTime *> time = timeOf(c);
  if (!network.ok() || !time.ok())
    return {};
  const double bytes = (*time)->hostBytesSent[static_cast<size_t>(c.position)];
  return bytes > 0 ? LinkUse{&(*network)->between, bytes} : LinkUse();
}

Result<const cost::CollectiveTime *> CommandTimes::timeOf(const Collective &c) const {
  const ScheduleRequest request = plannedRequest(c);
  auto found = std::find_if(known.begin(), known.end(),
                            [&](const auto &one) { return one.first == request; });
  if (found == known.end()) {
    ASSIGN_OR_RETURN(const cost::Network *network, networkFor(c));
    ASSIGN_OR_RETURN(cost::CollectiveTime time, cost::timeOf(request, *network));
    found = known.emplace(known.end(), request, std::move(time));
  }
  return &found->second;
}

namespace {

class Run {
public:
  Run(const std::vector<const RankProgram *> &programs, const CommandTimes &times,
      cost::LinkBurst &burst)
      : programs(programs), times(times), burst(burst), ranks(programs.size()) {}

  Result<std::vector<std::vector<std::vector<CommandSpan>>>> run() {
    for (size_t r = 0; r < ranks.size(); ++r) {
      ranks[r].queues.resize(programs[r]->queues.size());
      ranks[r].events.resize(programs[r]->numEvents);
      for (const RankProgram::Estimate &one : programs[r]->estimates[kComputeQueue])
        ranks[r].runBytes += one.usedBytes;
    }
    while (true) {
      for (bool more = true; more;) {
        more = false;
        for (size_t r = 0; r < ranks.size(); ++r)
          for (Queue q = 0; q < ranks[r].queues.size(); ++q)
            more |= begin(r, q);
      }
      if (!advance())
        break;
    }
    std::vector<std::vector<std::vector<CommandSpan>>> spans(ranks.size());
    for (size_t r = 0; r < ranks.size(); ++r)
      for (Queue q = 0; q < ranks[r].queues.size(); ++q) {
        if (ranks[r].queues[q].next != programs[r]->queues[q].size())
          return Status::error("the program does not end on paper");
        spans[r].push_back(std::move(ranks[r].queues[q].spans));
      }
    return spans;
  }
  double end() const { return now; }

private:
  struct QueueState {
    size_t next = 0; ///< command
    bool running = false, arrived = false;
    double left = 0; ///< of what runs, as if alone
    std::vector<CommandSpan> spans;
  };
  struct RankState {
    std::vector<QueueState> queues;
    std::vector<bool> events;
    double usedBytes = 0, runBytes = 0;  ///< by the compute queue, so far and in all
    std::map<uint64_t, double> lastUses; ///< of outputs by their offset: usedBytes then
  };
  /// Ranks of a group that have arrived at its next collective.
  struct Meeting {
    std::vector<std::pair<size_t, Queue>> members;
  };

  double estimate(size_t r, Queue q) const {
    return programs[r]->estimates[q][ranks[r].queues[q].next].seconds;
  }

  /// Starts or passes the next command of a queue; false when it cannot.
  bool begin(size_t r, Queue q) {
    QueueState &state = ranks[r].queues[q];
    if (state.running || state.arrived || state.next == programs[r]->queues[q].size())
      return false;
    const Command &command = programs[r]->queues[q][state.next];
    auto isSet = [&](uint32_t event) { return bool(ranks[r].events[event]); };
    if (auto *await = std::get_if<AwaitCommand>(&command.op); await && !isSet(await->event))
      return begun(state, command);
    if (auto *wait = std::get_if<CollectiveWaitCommand>(&command.op); wait && !isSet(wait->event))
      return begun(state, command);
    begun(state, command);
    if (auto *record = std::get_if<RecordCommand>(&command.op))
      ranks[r].events[record->event] = true;
    if (auto *op = std::get_if<CollectiveCommand>(&command.op)) {
      arrive(r, q, op->collective);
      return true;
    }
    state.left = estimate(r, q);
    ranks[r].usedBytes += programs[r]->estimates[q][state.next].usedBytes;
    state.running = true;
    if (state.left == 0)
      finish(r, q);
    return true;
  }

  /// Notes when the queue came to its next command; false.
  bool begun(QueueState &state, const Command &command) const {
    if (state.spans.size() == state.next) {
      auto *op = std::get_if<CollectiveCommand>(&command.op);
      state.spans.push_back({&command, op ? static_cast<int64_t>(op->index) : -1, now, now});
    }
    return false;
  }

  void arrive(size_t r, Queue q, const Collective &c) {
    QueueState &state = ranks[r].queues[q];
    state.arrived = true;
    if (isPointToPoint(c.kind)) { // its peer's side is not awaited on paper
      start(r, q, passedAtOnce(r, q, c));
      return;
    }
    Meeting &meeting = meetings[c.group];
    meeting.members.emplace_back(r, q);
    if (meeting.members.size() < times.localRanks(*c.group))
      return;
    const Meeting all = std::move(meeting);
    meetings.erase(c.group);
    const double gain = passedAtOnce(r, q, c);
    for (const auto &[rank, queue] : all.members)
      start(rank, queue, gain);
  }

  /// How many seconds less the collective takes as the host's link was idle before.
  double passedAtOnce(size_t r, Queue q, const Collective &c) {
    const CommandTimes::LinkUse use = times.linkUse(c);
    return use.link ? estimate(r, q) - burst.pass(*use.link, use.bytes, now, estimate(r, q)) : 0;
  }

  void start(size_t r, Queue q, double gain) {
    QueueState &state = ranks[r].queues[q];
    state.arrived = false;
    state.running = true;
    // From here on it moves bytes.
    state.spans.back().begin = now;
    state.left = std::max(0.0, estimate(r, q) - gain);
    const Collective &c =
        std::get<CollectiveCommand>(programs[r]->queues[q][state.next].op).collective;
    if (isPointToPoint(c.kind))
      return;
    // The outputs of the first ones were used in the run before.
    RankState &rank = ranks[r];
    const auto last =
        rank.lastUses.emplace(c.values.front().output.offset, rank.usedBytes - rank.runBytes).first;
    state.left += times.coldSeconds(c, rank.usedBytes - last->second);
    last->second = rank.usedBytes;
  }

  void finish(size_t r, Queue q) {
    QueueState &state = ranks[r].queues[q];
    state.running = false;
    state.spans[state.next].end = now;
    if (auto *op = std::get_if<CollectiveCommand>(&programs[r]->queues[q][state.next].op))
      ranks[r].events[op->event] = true;
    ++state.next;
  }

  /// How many times as long what runs on a queue takes now.
  double slowdown(size_t r, Queue q) const {
    const std::vector<QueueState> &queues = ranks[r].queues;
    const QueueState &computes = queues[kComputeQueue];
    if (!computes.running)
      return 1;
    const Command &command = programs[r]->queues[kComputeQueue][computes.next];
    double most = 1; // beside all that communicates
    for (Queue other = kComputeQueue + 1; other < queues.size(); ++other) {
      if (!queues[other].running || (q != kComputeQueue && q != other))
        continue;
      const auto *op =
          std::get_if<CollectiveCommand>(&programs[r]->queues[other][queues[other].next].op);
      if (!op)
        continue;
      const CommandTimes::Slowdown slow = times.slowdown(command, op->collective);
      most = std::max(most, q == kComputeQueue ? slow.compute : slow.communication);
    }
    return most;
  }

  /// To the end of the next command; false when nothing runs.
  bool advance() {
    double step = std::numeric_limits<double>::infinity();
    auto eachRunning = [&](auto body) {
      for (size_t r = 0; r < ranks.size(); ++r)
        for (Queue q = 0; q < ranks[r].queues.size(); ++q)
          if (ranks[r].queues[q].running)
            body(r, q, ranks[r].queues[q]);
    };
    eachRunning([&](size_t r, Queue q, QueueState &state) {
      step = std::min(step, state.left * slowdown(r, q));
    });
    if (!std::isfinite(step))
      return false;
    std::vector<std::pair<size_t, Queue>> done;
    std::vector<double> after;
    eachRunning([&](size_t r, Queue q, QueueState &state) {
      const double slow = slowdown(r, q);
      after.push_back(state.left * slow <= step ? 0 : state.left - step / slow);
      if (after.back() <= 0)
        done.emplace_back(r, q);
    });
    size_t i = 0;
    eachRunning([&](size_t, Queue, QueueState &state) { state.left = after[i++]; });
    now += step;
    for (const auto &[r, q] : done)
      finish(r, q);
    return true;
  }

  const std::vector<const RankProgram *> &programs;
  const CommandTimes &times;
  cost::LinkBurst &burst;
  std::vector<RankState> ranks;
  std::map<const ProcessGroup *, Meeting> meetings;
  double now = 0;
};

} // namespace

Result<std::vector<std::vector<std::vector<CommandSpan>>>>
simulate(const std::vector<const RankProgram *> &programs, const CommandTimes &times) {
  // Each run begins with what the one before has left, which soon is as it stays.
  constexpr int kMostRuns = 32;
  cost::LinkBurst burst;
  for (int i = 1;; ++i) {
    Run run(programs, times, burst);
    auto course = run.run();
    if (!course.ok() || !burst.beginRun(run.end()) || i == kMostRuns)
      return course;
  }
}

} // namespace braid::runtime
