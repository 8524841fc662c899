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

static bool isWhole(const Parameter &p) {
  return std::all_of(p.sharding.dims.begin(), p.sharding.dims.end(),
                     [](const auto &axes) { return axes.empty(); });
}

std::string Session::State::report() const {
  const Manifest &manifest = bundle->manifest;
  // Median over runs of a quantity of one rank.
  auto median = [&](size_t rank, auto get) {
    std::vector<int64_t> samples;
    for (const RunRecord &run : runs)
      samples.push_back(get(run.ranks[rank]));
    return medianSeconds(samples);
  };
  auto hidden = [](int64_t communication, int64_t exposed) {
    return std::max<int64_t>(0, communication - exposed);
  };

  Json perRank = Json::array();
  double exposed = 0, hiddenMax = 0, communication = 0;
  int64_t bytesSent = 0;
  for (size_t r = 0; r < workers->ranks.size(); ++r) {
    const Rank &rank = *workers->ranks[r];
    double e = median(r, [](const RankTimes &t) { return t.exposedNs; });
    double c = median(r, [](const RankTimes &t) { return t.communicationNs; });
    double h =
        median(r, [&](const RankTimes &t) { return hidden(t.communicationNs, t.exposedNs); });
    exposed = std::max(exposed, e);
    communication = std::max(communication, c);
    hiddenMax = std::max(hiddenMax, h);
    bytesSent = std::max(bytesSent, rank.program.bytesSent);
    int64_t parameterBytes = 0, valueBytes = 0;
    for (size_t i = 0; i < values[r].size(); ++i)
      (i < entry->parameters.size() ? parameterBytes : valueBytes) +=
          static_cast<int64_t>(values[r][i].bytes);
    perRank.push_back({{"rank", r},
                       {"comm_s", c},
                       {"exposed_comm_s", e},
                       {"hidden_comm_s", h},
                       {"bytes_sent", rank.program.bytesSent},
                       {"parameter_bytes", parameterBytes},
                       {"input_output_bytes", valueBytes},
                       {"local_arena_bytes", localBytes},
                       {"symmetric_arena_bytes", symmetricBytes}});
  }

  Json collectives = Json::array();
  const std::vector<RoleInfo> &roles = workers->ranks[0]->program.roles;
  for (size_t i = 0; i < roles.size(); ++i) {
    double e = 0, c = 0, h = 0;
    int64_t sent = 0; // of the rank that sends most
    for (size_t r = 0; r < workers->ranks.size(); ++r) {
      sent = std::max(sent, workers->ranks[r]->program.roles[i].bytesSent);
      e = std::max(e, median(r, [&](const RankTimes &t) { return t.roleExposedNs[i]; }));
      c = std::max(c, median(r, [&](const RankTimes &t) { return t.roleCommunicationNs[i]; }));
      h = std::max(h, median(r, [&](const RankTimes &t) {
                     return hidden(t.roleCommunicationNs[i], t.roleExposedNs[i]);
                   }));
    }
    collectives.push_back({{"role", roles[i].role},
                           {"kind", roles[i].kind},
                           {"count_per_run", roles[i].count},
                           {"bytes_sent_per_rank", sent},
                           {"comm_s", c},
                           {"exposed_comm_s", e},
                           {"hidden_comm_s", h}});
  }

  int64_t memory = 0;
  for (const auto &rank : values)
    for (const LocalValue &value : rank)
      memory += static_cast<int64_t>(value.bound ? value.bytes : value.owned.bytes());
  for (const AlignedBuffer &arena : localArenas)
    memory += static_cast<int64_t>(arena.bytes());
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
                 {"transport", transport->name()},
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
                 {"bytes_sent_per_rank", bytesSent},
                 {"comm_s", communication},
                 {"exposed_comm_s", exposed},
                 {"hidden_comm_s", hiddenMax},
                 {"peak_memory_bytes", memory},
                 {"process_peak_memory_bytes",
                  processPeakMemory() + (processes ? processes->peakMemory() : 0)},
                 {"parameters", entry->parameters.size()},
                 {"replicated_parameters", wholeParameters},
                 {"collectives", collectives},
                 {"per_rank", perRank}};
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
