//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The report and the trace of an execution as JSON.
//
//===----------------------------------------------------------------------===//
#include "ModelState.h"
#include "runtime/lib/Kernels/CpuFeatures.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace braid::runtime {

using Json = nlohmann::ordered_json;

static double inSeconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

/// A device does not report how long its ranks waited for each other inside a collective.
static void addTo(Json &json, const CommunicationTimes &times, bool onDevice) {
  json["comm_s"] = inSeconds(times.communicationNs);
  json["hidden_comm_s"] = inSeconds(times.hiddenNs);
  json["exposed_comm_s"] = inSeconds(times.exposedNs);
  json["peer_wait_s"] = onDevice ? Json() : Json(inSeconds(times.peerWaitNs));
}

static bool isReplicated(const Parameter &p) {
  return p.on.isAll() && std::all_of(p.sharding.dims.begin(), p.sharding.dims.end(),
                                     [](const auto &axes) { return axes.empty(); });
}

std::string Execution::State::report() const {
  const Model::State &m = *model;
  const Manifest &manifest = m.bundle->manifest();
  // The times of collectives come from one run, the one of median time, and the totals from one
  // rank, the most exposed one: separate medians and maxima of each number would not add up.
  const RankRange local = programs.ranks();
  RunRecord none;
  none.ranks = PerRank<RankTimes>(local);
  for (int64_t r : local)
    none.ranks[r].clear(programs[r].collectives.size());
  const RunRecord &typical = runs.typical() ? *runs.typical() : none;
  int64_t mostExposed = local.first;
  for (int64_t r : local)
    if (typical.ranks[r].total.exposedNs > typical.ranks[mostExposed].total.exposedNs)
      mostExposed = r;

  Json perRank = Json::array();
  int64_t bytesSent = 0;
  for (int64_t r : local) {
    bytesSent = std::max(bytesSent, programs[r].bytesSent);
    int64_t parameterBytes = 0, stateBytes = 0, valueBytes = 0, symmetricValueBytes = 0;
    for (size_t a = 0; a < arguments.size(); ++a) {
      const auto bytes = static_cast<int64_t>(value(r, a).bytes);
      (a < stateIndex(0) ? parameterBytes : a < operandIndex(0) ? stateBytes : valueBytes) += bytes;
      symmetricValueBytes += value(r, a).symmetricOffset ? bytes : 0;
    }
    int64_t commands = 0;
    for (const auto &queue : programs[r].queues)
      commands += static_cast<int64_t>(queue.size());
    Json json = {{"rank", r}, {"commands", commands}};
    addTo(json, typical.ranks[r].total, m.usesDevice());
    json.update({{"bytes_sent", programs[r].bytesSent},
                 {"parameter_bytes", parameterBytes},
                 {"state_bytes", stateBytes},
                 {"input_output_bytes", valueBytes},
                 {"local_arena_bytes", m.localBytes},
                 {"symmetric_arena_bytes", m.program->procedures[rootProcedure]->symmetric_bytes},
                 {"symmetric_value_bytes", symmetricValueBytes}});
    perRank.push_back(std::move(json));
  }

  // Where ranks run different commands, a collective's times are those of a rank that runs it.
  Json collectives = Json::array();
  std::set<std::string> listed;
  std::vector<int64_t> order{mostExposed};
  for (int64_t r : local)
    if (r != mostExposed)
      order.push_back(r);
  const auto collectivesOf = [&](int64_t r) -> const std::vector<CollectiveInfo> & {
    return programs[r].collectives;
  };
  std::map<std::string, int64_t> mostSent; // of the rank that sends most, by identity
  for (int64_t r : local)
    for (const CollectiveInfo &info : collectivesOf(r)) {
      int64_t &most = mostSent[info.identity()];
      most = std::max(most, info.bytesSent);
    }
  for (int64_t r : order)
    for (size_t i = 0; i < collectivesOf(r).size(); ++i) {
      const CollectiveInfo &info = collectivesOf(r)[i];
      const std::string identity = info.identity();
      if (!listed.insert(identity).second)
        continue;
      Json json = {{"identity", identity},
                   {"calls", info.calls},
                   {"name", info.name},
                   {"kind", info.kind},
                   {"bytes_sent_per_rank", mostSent[identity]},
                   {"exposed_by_form", info.exposedByForm}};
      addTo(json, typical.ranks[r].collectives[i], m.usesDevice());
      collectives.push_back(std::move(json));
    }

  int64_t memory = 0;
  for (const auto &rank : m.values)
    for (const ValueMemory &value : rank)
      if (!value.symmetricOffset) // else it is part of the transport's memory
        memory += static_cast<int64_t>(value.bytes);
  for (const HostMemory &arena : m.localArenas)
    memory += static_cast<int64_t>(arena.bytes());
  if (m.device)
    memory = m.device->memoryBytes();
  else
    memory += static_cast<int64_t>(m.transport->heap(local.first).stride) * local.count;

  Json copied = Json::array();
  for (size_t a = stateIndex(0); a < arguments.size(); ++a) {
    int64_t bytes = 0;
    for (int64_t r : local)
      bytes += value(r, a).isCopied() ? static_cast<int64_t>(value(r, a).bytes) : 0;
    if (bytes != 0)
      copied.push_back({{"value", describeArgument(a)},
                        {"bytes", bytes},
                        {"reason", "a collective uses it in place, in symmetric memory"}});
  }

  int64_t replicated =
      std::count_if(entry->parameters.begin(), entry->parameters.end(), isReplicated);
  const std::vector<int64_t> times = runs.times();
  Json runTimes = Json::array();
  for (int64_t ns : times)
    runTimes.push_back(inSeconds(ns));
  Json mesh = Json::object();
  for (const Mesh::Axis &axis : manifest.mesh.axes)
    mesh[axis.name] = axis.size;
  Json report = {{"model", manifest.modelName},
                 {"entry", entry->name},
                 {"producer", manifest.producer},
                 {"mesh", mesh},
                 {"ranks", m.numRanks()},
                 {"threads_per_rank", m.options().threadsPerRank},
                 {"transport", m.ranksTransport().name()},
                 {"machine",
                  {{"cpu_model", hostCpuModel()},
                   {"cores", std::thread::hardware_concurrency()},
                   {"usable_cores", usableCores()},
                   {"kernel_isa", m.kernelIsa},
                   {"library_isa", m.workers->kernels.isa}}},
                 {"spin_s", inSeconds(m.workers->control.spinNs())},
                 {"runs", runs.count()},
                 {"median_run_s", quantile(times, 0.5) * 1e-9},
                 {"p99_run_s", quantile(times, 0.99) * 1e-9},
                 {"min_run_s", inSeconds(runs.leastNs())},
                 {"run_s", runTimes},
                 {"bytes_sent_per_rank", bytesSent}};
  if (m.device)
    report["machine"]["gpus"] = m.device->deviceNames();
  report["comm_of_rank"] = mostExposed;
  addTo(report, typical.ranks[mostExposed].total, m.usesDevice());
  report.update({{"peak_memory_bytes", memory},
                 {"huge_page_bytes",
                  hugePageBytes("self") + (m.processes ? m.processes->hugePageBytes() : 0)},
                 {"pinned_cores", m.workers->pinning.cores()},
                 {"process_peak_memory_bytes",
                  processPeakMemory() + (m.processes ? m.processes->peakMemory() : 0)},
                 {"bound_values_copied", copied},
                 {"parameters", entry->parameters.size()},
                 {"replicated_parameters", replicated},
                 {"collectives", collectives},
                 {"per_rank", perRank}});
  if (prediction)
    report["prediction"] = prediction->json(quantile(times, 0.5) * 1e-9, inSeconds(runs.leastNs()));
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string Execution::State::traceJson() const {
  Json events = Json::array();
  auto metadata = [&](const char *what, int64_t process, int64_t thread, const std::string &text) {
    events.push_back({{"ph", "M"},
                      {"name", what},
                      {"pid", process},
                      {"tid", thread},
                      {"args", {{"name", text}}}});
  };
  auto describe = [&](Json &args, int64_t process, uint32_t index) {
    const CollectiveInfo &info = programs[process].collectives[index];
    args["collective"] = info.identity();
    args["exposed_by_form"] = info.exposedByForm;
    addTo(args, model->workers->ranks[process]->times.collectives[index], model->usesDevice());
  };
  auto add = [&](int64_t process, int64_t thread, const TraceSpan &span) {
    const auto &command = static_cast<const Command &>(*span.command);
    Json args = {{"in", *command.path}};
    const char *category = "compute";
    std::string name = command.name.empty() ? command.operation : command.name;
    if (auto *op = std::get_if<CollectiveCommand>(&command.op)) {
      category = "communication";
      args["bytes_sent"] = op->collective.bytesSent;
      args["algorithm"] = runtime::name(op->collective.algorithm);
      describe(args, process, op->index);
    } else if (auto *op = std::get_if<CollectiveWaitCommand>(&command.op)) {
      category = "wait";
      name = "wait " + name;
      describe(args, process, op->index);
    } else if (std::holds_alternative<AwaitCommand>(command.op)) {
      category = "wait";
    }
    args["operation"] = command.operation;
    events.push_back({{"ph", "X"},
                      {"name", name},
                      {"cat", category},
                      {"pid", process},
                      {"tid", thread},
                      {"ts", static_cast<double>(span.beginNs - model->workers->runBeginNs) * 1e-3},
                      {"dur", static_cast<double>(span.endNs - span.beginNs) * 1e-3},
                      {"args", args}});
  };
  for (int64_t r : model->local()) {
    const Rank &rank = *model->workers->ranks[r];
    metadata("process_name", r, 0, "rank " + std::to_string(r));
    // The compute queue, the other members of its team, then the other queues.
    auto threadOf = [&](Queue queue) {
      return queue == kComputeQueue ? 0 : rank.team.members() - 1 + static_cast<int64_t>(queue);
    };
    for (Queue queue = 0; queue < model->workers->queues.size(); ++queue)
      metadata("thread_name", r, threadOf(queue), model->workers->queues[queue].name);
    for (int64_t member = 1; member < rank.team.members(); ++member)
      metadata("thread_name", r, member, "compute, team member " + std::to_string(member));
    for (Queue queue = 0; queue < model->workers->queues.size(); ++queue)
      for (const TraceSpan &span : rank.trace[queue])
        add(r, threadOf(queue), span);
    for (int64_t member = 1; member < rank.team.members(); ++member)
      for (const TraceSpan &span : rank.team.spans[static_cast<size_t>(member)])
        add(r, member, span);
  }
  Json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace braid::runtime
