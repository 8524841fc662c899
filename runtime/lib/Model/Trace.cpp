//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The trace of a run as Chrome trace event JSON, of this process's ranks or of all.
//
//===----------------------------------------------------------------------===//
#include "ReportJson.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Files.h"
#include "runtime/lib/Collective/Plan.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

namespace {

using Json = nlohmann::ordered_json;

/// Makes the events of this process's ranks, a few at a time, as their text is much larger than
/// they are.
class TraceEvents {
public:
  /// Times are of the clock of `clock`, from `originNs` of it on. Rows have the host's name, unless
  /// it is empty.
  TraceEvents(const Execution::State &execution, const ClockMap &clock, int64_t originNs,
              const std::string &host)
      : execution(execution), model(*execution.model), clock(clock), originNs(originNs) {
    for (int64_t r : model.local()) {
      const Rank &rank = *model.workers->ranks[r];
      metadata("process_name", r, 0,
               "rank " + std::to_string(r) + (host.empty() ? "" : " (" + host + ")"));
      metadata("process_sort_index", r, 0, {{"sort_index", r}});
      // The compute queue, the other members of its team, then the other queues.
      auto threadOf = [&](Queue queue) {
        return queue == kComputeQueue ? 0 : rank.team.members() - 1 + static_cast<int64_t>(queue);
      };
      for (Queue queue = 0; queue < model.workers->queues.size(); ++queue)
        metadata("thread_name", r, threadOf(queue), model.workers->queues[queue].name);
      for (int64_t member = 1; member < rank.team.members(); ++member)
        metadata("thread_name", r, member, "compute, team member " + std::to_string(member));
      for (Queue queue = 0; queue < model.workers->queues.size(); ++queue)
        for (const TraceSpan &span : rank.trace[queue])
          spans.push_back({r, threadOf(queue), &span});
      for (int64_t member = 1; member < rank.team.members(); ++member)
        for (const TraceSpan &span : rank.team.spans[static_cast<size_t>(member)])
          spans.push_back({r, member, &span});
    }
  }

  /// The next events with commas between them, of about so many bytes; empty at the end.
  std::string next(size_t bytes) {
    std::string text;
    while (text.size() < bytes && (nextRow < rows.size() || nextSpan < spans.size()))
      text += (text.empty() ? "" : ",") +
              (nextRow < rows.size() ? rows[nextRow++] : event(spans[nextSpan++]))
                  .dump(-1, ' ', false, Json::error_handler_t::replace);
    return text;
  }

private:
  struct Span {
    int64_t rank, thread;
    const TraceSpan *span;
  };

  void metadata(const char *what, int64_t process, int64_t thread, Json arguments) {
    rows.push_back({{"ph", "M"},
                    {"name", what},
                    {"pid", process},
                    {"tid", thread},
                    {"args", std::move(arguments)}});
  }
  void metadata(const char *what, int64_t process, int64_t thread, const std::string &text) {
    metadata(what, process, thread, Json{{"name", text}});
  }

  Json event(const Span &at) const {
    const TraceSpan &span = *at.span;
    const auto &command = static_cast<const Command &>(*span.command);
    Json args = {{"in", *command.path}};
    const char *category = "compute";
    std::string name = command.name.empty() ? command.operation : command.name;
    auto *op = std::get_if<CollectiveCommand>(&command.op);
    if (op && span.step >= 0) {
      category = "step";
      const Collective &c = op->collective;
      const Schedule &schedule = c.plan->schedule;
      const ScheduleStep &step = schedule.steps[static_cast<size_t>(span.step)];
      args["collective"] = execution.programs[at.rank].collectives[op->index].identity();
      args["step"] = span.step;
      args["does"] = stepText(schedule, step, c.group->ranks);
      name = runtime::name(step.kind);
    } else if (op) {
      category = "communication";
      args["beside_older_s"] = static_cast<double>(span.besideNs) * 1e-9;
      args["bytes_sent"] = op->collective.bytesSent;
      args["algorithm"] = op->collective.plan ? runtime::name(op->collective.plan->algorithm)
                                              : runtime::name(op->collective.algorithm);
      describe(args, at.rank, op->index);
    } else if (auto *op = std::get_if<CollectiveWaitCommand>(&command.op)) {
      category = "wait";
      name = "wait " + name;
      describe(args, at.rank, op->index);
    } else if (std::holds_alternative<AwaitCommand>(command.op)) {
      category = "wait";
    }
    args["operation"] = command.operation;
    const int64_t beginNs = span.beginNs + clock.offsetAt(span.beginNs) - originNs;
    return {{"ph", "X"},
            {"name", name},
            {"cat", category},
            {"pid", at.rank},
            {"tid", at.thread},
            {"ts", static_cast<double>(beginNs) * 1e-3},
            {"dur", static_cast<double>(span.endNs - span.beginNs) * 1e-3},
            {"args", args}};
  }

  void describe(Json &args, int64_t rank, uint32_t index) const {
    const CollectiveInfo &info = execution.programs[rank].collectives[index];
    args["collective"] = info.identity();
    args["exposed_by_form"] = info.exposedByForm;
    if (info.readInPlace)
      args["read_in_place"] = true;
    addTo(args, model.workers->ranks[rank]->times.collectives[index], model.usesDevice());
  }

  const Execution::State &execution;
  const Model::State &model;
  const ClockMap clock;
  const int64_t originNs;
  std::vector<Json> rows;
  std::vector<Span> spans;
  size_t nextRow = 0, nextSpan = 0;
};

constexpr char kHead[] = R"({"displayTimeUnit":"ms",)", kEvents[] = R"("traceEvents":[)",
               kTail[] = "]}\n";

/// What rank 0 knows of a process before its events come.
struct RunOfProcess {
  int64_t beginNs = 0; ///< of rank 0's clock
  ClockMap clock;
  int64_t process = 0;
  Communicator::StartCost start;
  char host[256] = {};
};

} // namespace

Status Execution::State::checkTrace() const {
  if (!model->options().trace)
    return Status::error("a trace expects a world that was created with tracing on");
  if (!hasRun || model->lastRun != this)
    return Status::error("a trace expects that the last run of the model was one of this entry and "
                         "has succeeded");
  return {};
}

Result<std::string> Execution::trace() const {
  RETURN_IF_ERROR(state.checkTrace());
  TraceEvents events(state, {}, state.model->workers->runBeginNs, "");
  return std::string(kHead) + kEvents + events.next(SIZE_MAX) + kTail;
}

Result<std::vector<Execution::Span>> Execution::spans() const {
  RETURN_IF_ERROR(state.checkTrace());
  const Model::State &model = *state.model;
  auto since = [&](int64_t ns) {
    return static_cast<double>(ns - model.workers->runBeginNs) * 1e-9;
  };
  std::vector<Span> spans;
  for (int64_t r : model.local())
    for (const std::vector<TraceSpan> &queue : model.workers->ranks[r]->trace)
      for (const TraceSpan &span : queue) {
        if (span.step >= 0)
          continue;
        const auto &command = static_cast<const Command &>(*span.command);
        Span &made = spans.emplace_back();
        made.rank = r;
        made.operation = command.operation;
        made.beginSeconds = since(span.beginNs);
        made.endSeconds = since(span.endNs);
        if (auto *op = std::get_if<CollectiveCommand>(&command.op))
          made.collective = state.programs[r].collectives[op->index].identity();
      }
  return spans;
}

Status Execution::writeTrace(const std::string &path) const {
  const Status ready = state.checkTrace();
  Communicator *communicator = state.model->communicator();
  if (!communicator) {
    RETURN_IF_ERROR(ready);
    ASSIGN_OR_RETURN(const std::string text, trace());
    return writeFile(path, {{text.data(), text.size()}});
  }
  const int64_t beginNs = state.model->workers->runBeginNs;
  ASSIGN_OR_RETURN(const ClockMap clock, communicator->measureClock());
  const ProcessInfo self = state.model->processInfo(clock);
  RunOfProcess own{beginNs + clock.offsetAt(beginNs), clock, self.process, self.start, {}};
  std::strncpy(own.host, self.host.c_str(), sizeof own.host - 1);
  // It stands for the first of its ranks; the others give nothing.
  std::vector<size_t> bytes(static_cast<size_t>(state.model->numRanks()), sizeof own);
  std::vector<std::byte> mine(sizeof own * static_cast<size_t>(communicator->local().count));
  std::memcpy(mine.data(), &own, sizeof own);
  ASSIGN_OR_RETURN(const std::vector<Contribution> all,
                   communicator->gather(std::move(mine), bytes));
  Json processes = Json::array();
  int64_t originNs = own.beginNs;
  for (const Contribution &given : all) {
    RunOfProcess its;
    std::memcpy(&its, given.bytes.data(), sizeof its);
    its.host[sizeof its.host - 1] = 0;
    // Times before the first one would be negative, which not all viewers show.
    originNs = std::min(originNs, its.beginNs);
    Json process = {{"ranks", Json::array()}};
    for (int64_t rank : given.ranks)
      process["ranks"].push_back(rank);
    addTo(process, ProcessInfo{its.host, its.process, its.clock, its.start},
          its.beginNs - its.clock.last.offsetNs);
    processes.push_back(std::move(process));
  }
  RETURN_IF_ERROR(communicator->broadcast(&originNs, sizeof originNs));

  std::optional<TraceEvents> events;
  auto next = [&]() -> Result<std::string> {
    RETURN_IF_ERROR(ready);
    if (!events)
      events.emplace(state, clock, originNs, self.host);
    // An event has some hundred bytes.
    return events->next(Communicator::kMaxPieceBytes / 4);
  };
  FileWriter file;
  bool isFirst = true;
  auto take = [&](RankRange, const std::string &piece) -> Status {
    if (std::exchange(isFirst, false)) {
      RETURN_IF_ERROR(file.create(path));
      RETURN_IF_ERROR(file.append(std::string(kHead) + R"("metadata":{"processes":)" +
                                  processes.dump(-1, ' ', false, Json::error_handler_t::replace) +
                                  "}," + kEvents + piece));
      return {};
    }
    return file.append("," + piece);
  };
  RETURN_IF_ERROR(communicator->collect(next, take));
  if (!communicator->hasRankZero())
    return {};
  RETURN_IF_ERROR(file.append(kTail));
  return file.commit();
}

} // namespace braid::runtime
