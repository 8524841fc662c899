//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The report and the trace of a session as JSON.
//
//===----------------------------------------------------------------------===//
#include "CpuFeatures.h"
#include "SessionState.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace braid::runtime {

using Json = nlohmann::ordered_json;

static double medianSeconds(std::vector<int64_t> ns) {
  if (ns.empty())
    return 0;
  std::sort(ns.begin(), ns.end());
  size_t half = ns.size() / 2;
  double median = ns.size() % 2
                      ? static_cast<double>(ns[half])
                      : (static_cast<double>(ns[half - 1]) + static_cast<double>(ns[half])) / 2;
  return median * 1e-9;
}

static void addTo(Json &json, const CommunicationTimes &times) {
  auto seconds = [](int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  json["comm_s"] = seconds(times.communicationNs);
  json["exposed_comm_s"] = seconds(times.exposedNs());
  json["hidden_comm_s"] = seconds(times.hiddenNs);
  json["comm_wait_s"] = seconds(times.waitingNs);
}

static bool isWhole(const Parameter &p) {
  return std::all_of(p.sharding.dims.begin(), p.sharding.dims.end(),
                     [](const auto &axes) { return axes.empty(); });
}

std::string Session::State::report() const {
  const Manifest &manifest = bundle->manifest;
  // What collectives took is told of one run, the one of median time, and above the ranks of one
  // rank, the one most exposed: medians and maxima of each number for itself would not add up.
  const size_t count = workers->ranks.size();
  RunRecord typical{0, std::vector<RankTimes>(count)};
  for (RankTimes &times : typical.ranks)
    times.roles.resize(workers->ranks[0]->program.roles.size());
  if (!runs.empty()) {
    std::vector<const RunRecord *> order;
    for (const RunRecord &run : runs)
      order.push_back(&run);
    auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
    std::nth_element(order.begin(), middle, order.end(),
                     [](const RunRecord *a, const RunRecord *b) { return a->ns < b->ns; });
    typical = **middle;
  }
  const size_t mostExposed =
      static_cast<size_t>(std::max_element(typical.ranks.begin(), typical.ranks.end(),
                                           [](const RankTimes &a, const RankTimes &b) {
                                             return a.total.exposedNs() < b.total.exposedNs();
                                           }) -
                          typical.ranks.begin());

  Json perRank = Json::array();
  int64_t bytesSent = 0;
  for (size_t r = 0; r < count; ++r) {
    const Rank &rank = *workers->ranks[r];
    bytesSent = std::max(bytesSent, rank.program.bytesSent);
    int64_t parameterBytes = 0, valueBytes = 0;
    for (size_t i = 0; i < values[r].size(); ++i)
      (i < entry->parameters.size() ? parameterBytes : valueBytes) +=
          static_cast<int64_t>(values[r][i].bytes);
    Json json = {{"rank", r}};
    addTo(json, typical.ranks[r].total);
    json.update({{"bytes_sent", rank.program.bytesSent},
                 {"parameter_bytes", parameterBytes},
                 {"input_output_bytes", valueBytes},
                 {"local_arena_bytes", localBytes},
                 {"symmetric_arena_bytes", symmetricBytes}});
    perRank.push_back(std::move(json));
  }

  Json collectives = Json::array();
  const std::vector<RoleInfo> &roles = workers->ranks[0]->program.roles;
  for (size_t i = 0; i < roles.size(); ++i) {
    int64_t sent = 0; // of the rank that sends most
    for (const auto &rank : workers->ranks)
      sent = std::max(sent, rank->program.roles[i].bytesSent);
    Json json = {{"role", roles[i].role},
                 {"kind", roles[i].kind},
                 {"count_per_run", roles[i].count},
                 {"bytes_sent_per_rank", sent}};
    addTo(json, typical.ranks[mostExposed].roles[i]);
    collectives.push_back(std::move(json));
  }

  int64_t memory = 0;
  for (const auto &rank : values)
    for (const LocalValue &value : rank)
      memory += static_cast<int64_t>(value.bound ? value.bytes : value.owned.bytes());
  for (const AlignedBuffer &arena : localArenas)
    memory += static_cast<int64_t>(arena.bytes());
  if (device)
    memory = device->memoryBytes();
  else
    memory += static_cast<int64_t>(transport->heap(0).stride) * numRanks();

  int64_t wholeParameters =
      std::count_if(entry->parameters.begin(), entry->parameters.end(), isWhole);
  std::vector<int64_t> times;
  Json runTimes = Json::array();
  for (const RunRecord &run : runs) {
    times.push_back(run.ns);
    runTimes.push_back(static_cast<double>(run.ns) * 1e-9);
  }
  Json mesh = Json::object();
  for (const Mesh::Axis &axis : manifest.mesh.axes)
    mesh[axis.name] = axis.size;
  Json report = {{"model", manifest.modelName},
                 {"entry", entry->name},
                 {"producer", manifest.producer},
                 {"mesh", mesh},
                 {"ranks", numRanks()},
                 {"threads_per_rank", options.threadsPerRank},
                 {"transport", meeting().name()},
                 {"machine",
                  {{"cpu_model", hostCpuModel()},
                   {"cores", std::thread::hardware_concurrency()},
                   {"kernel_isa", kernelIsa},
                   {"library_isa", workers->kernels.isa}}},
                 {"runs", runs.size()},
                 {"median_run_s", medianSeconds(times)},
                 {"min_run_s",
                  times.empty()
                      ? 0.0
                      : static_cast<double>(*std::min_element(times.begin(), times.end())) * 1e-9},
                 {"run_s", runTimes},
                 {"bytes_sent_per_rank", bytesSent}};
  if (device)
    report["machine"]["gpus"] = device->deviceNames();
  report["comm_of_rank"] = mostExposed;
  addTo(report, typical.ranks[mostExposed].total);
  report.update({{"peak_memory_bytes", memory},
                 {"process_peak_memory_bytes",
                  processPeakMemory() + (processes ? processes->peakMemory() : 0)},
                 {"parameters", entry->parameters.size()},
                 {"replicated_parameters", wholeParameters},
                 {"collectives", collectives},
                 {"per_rank", perRank}});
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string Session::State::traceJson() const {
  Json events = Json::array();
  auto metadata = [&](const char *what, size_t process, int64_t thread, const std::string &text) {
    events.push_back({{"ph", "M"},
                      {"name", what},
                      {"pid", process},
                      {"tid", thread},
                      {"args", {{"name", text}}}});
  };
  // When each rank's compute queue computed.
  std::vector<std::vector<Interval>> busy(workers->ranks.size());
  for (size_t r = 0; r < workers->ranks.size(); ++r)
    for (const TraceSpan &span : workers->ranks[r]->trace[0])
      if (!std::holds_alternative<CollectiveWaitCommand>(span.command->op) &&
          !std::holds_alternative<AwaitCommand>(span.command->op))
        busy[r].push_back({span.beginNs, span.endNs});
  auto add = [&](size_t process, int64_t thread, const TraceSpan &span) {
    const Command &command = *span.command;
    Json args = {{"in", *command.path}};
    const char *category = "compute";
    std::string name = command.name.empty() ? command.operation : command.name;
    if (auto *op = std::get_if<CollectiveCommand>(&command.op)) {
      category = "communication";
      args["bytes_sent"] = op->collective.bytesSent;
      args["role"] = op->collective.role;
      args["algorithm"] = runtime::name(op->collective.algorithm);
      const int64_t hidden = coveredNs({span.beginNs, span.endNs}, busy[process]);
      args["exposed_s"] = static_cast<double>(span.endNs - span.beginNs - hidden) * 1e-9;
      args["hidden_s"] = static_cast<double>(hidden) * 1e-9;
    } else if (auto *op = std::get_if<CollectiveWaitCommand>(&command.op)) {
      category = "wait";
      name = "wait " + name;
      args["role"] = workers->ranks[process]->program.roles[op->roleIndex].role;
    } else if (std::holds_alternative<AwaitCommand>(command.op)) {
      category = "wait";
    }
    args["operation"] = command.operation;
    events.push_back({{"ph", "X"},
                      {"name", name},
                      {"cat", category},
                      {"pid", process},
                      {"tid", thread},
                      {"ts", static_cast<double>(span.beginNs - workers->runBeginNs) * 1e-3},
                      {"dur", static_cast<double>(span.endNs - span.beginNs) * 1e-3},
                      {"args", args}});
  };
  for (size_t r = 0; r < workers->ranks.size(); ++r) {
    const Rank &rank = *workers->ranks[r];
    metadata("process_name", r, 0, "rank " + std::to_string(r));
    metadata("thread_name", r, 0, "compute");
    const int64_t communication = rank.team.members();
    metadata("thread_name", r, communication, "communication");
    for (int64_t member = 1; member < rank.team.members(); ++member)
      metadata("thread_name", r, member, "compute, team member " + std::to_string(member));
    for (const TraceSpan &span : rank.trace[0])
      add(r, 0, span);
    for (const TraceSpan &span : rank.trace[1])
      add(r, communication, span);
    for (int64_t member = 1; member < rank.team.members(); ++member)
      for (const TraceSpan &span : rank.team.spans[static_cast<size_t>(member)])
        add(r, member, span);
  }
  Json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace braid::runtime
