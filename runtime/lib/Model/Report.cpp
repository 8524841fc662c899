//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The report of an execution as JSON.
//
//===----------------------------------------------------------------------===//
#include "ReportJson.h"
#include "braid/Cost/ScheduleChoice.h"
#include "runtime/lib/Kernels/CpuFeatures.h"

#include <algorithm>
#include <map>
#include <set>

namespace braid::runtime {

using Json = nlohmann::ordered_json;

void addTo(nlohmann::ordered_json &json, const CommunicationTimes &times, bool onDevice) {
  json["comm_s"] = inSeconds(times.communicationNs);
  json["hidden_comm_s"] = inSeconds(times.hiddenNs);
  json["exposed_comm_s"] = inSeconds(times.exposedNs);
  json["peer_wait_s"] = onDevice ? Json() : Json(inSeconds(times.peerWaitNs));
}

static bool isReplicated(const Parameter &p) {
  return p.on.isAll() && std::all_of(p.sharding.dims.begin(), p.sharding.dims.end(),
                                     [](const auto &axes) { return axes.empty(); });
}

/// Which chunks, and why this algorithm.
static Json choiceOf(const CollectiveInfo &info) {
  const cost::ChosenSchedule &chosen = *info.chosen;
  const bool timed = !chosen.considered.empty();
  const bool byTime =
      timed && chosen.considered.front().seconds <= (1 - cost::kWorthwhile) * chosen.ruleSeconds;
  Json json = {{"chunk_bytes", info.chunkBytes}, {"chosen_by", byTime ? "time" : "rule"}};
  if (timed)
    json["rule_predicted_s"] = chosen.ruleSeconds;
  else
    json["why_by_rule"] = chosen.whyByRule;
  for (const cost::AlgorithmTime &one : chosen.considered)
    json["considered"].push_back({{"algorithm", name(one.algorithm)},
                                  {"chunk_bytes", one.chunkBytes},
                                  {"predicted_s", one.seconds}});
  return json;
}

std::vector<EncodingErrors *> Execution::State::encodingErrors() const {
  std::vector<EncodingErrors *> all;
  for (int64_t r : programs.ranks())
    for (const auto &queue : programs[r].queues)
      for (const Command &command : queue)
        if (auto *library = std::get_if<LibraryCommand>(&command.op))
          if (EncodingErrors *errors = (*library)->errors())
            all.push_back(errors);
  return all;
}

/// Over all ranks and runs, by collective and half. JSON has null for an infinity or a NaN.
static Json errorsOf(const std::vector<EncodingErrors *> &all) {
  std::map<std::pair<std::string, bool>, EncodingErrors> sums;
  std::vector<const EncodingErrors *> order; // in which collectives first occur
  for (const EncodingErrors *errors : all) {
    auto [sum, isNew] = sums.try_emplace({errors->identity, errors->gather}, *errors);
    if (isNew) {
      order.push_back(&sum->second);
      continue;
    }
    sum->second.squares += errors->squares;
    sum->second.errorSquares += errors->errorSquares;
  }
  Json json = Json::array();
  for (const EncodingErrors *sum : order) {
    json.push_back({{"identity", sum->identity},
                    {"half", sum->gather ? "gather" : "reduce"},
                    {"squares", sum->squares},
                    {"error_squares", sum->errorSquares}});
  }
  return json;
}

nlohmann::ordered_json Execution::State::report(std::optional<uint64_t> number) const {
  const Model::State &m = *model;
  const Manifest &manifest = m.bundle->manifest();
  // The times of collectives come from one run, the one of median time, and the totals from one
  // rank, the most exposed one: separate medians and maxima of each number would not add up.
  const RankRange local = programs.ranks();
  RunRecord none;
  none.ranks = PerRank<RankTimes>(local);
  for (int64_t r : local)
    none.ranks[r].clear(programs[r].collectives.size());
  const RunRecord *kept = number ? runs.closest(*number) : runs.typical();
  const RunRecord &typical = kept ? *kept : none;
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
    Json json = {{"rank", r}, {"commands", commands}, {"comm_run_s", inSeconds(typical.ns)}};
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
                   {"exposed_by_form", info.exposedByForm},
                   {"algorithm", info.algorithm}};
      if (info.readInPlace)
        json["read_in_place"] = true;
      if (info.chosen)
        json.update(choiceOf(info));
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
                 {"spin_s", inSeconds(m.workers->control.spins().idle.ns)},
                 {"runs", runs.count()},
                 {"median_run_s", quantile(times, 0.5) * 1e-9},
                 {"p99_run_s", quantile(times, 0.99) * 1e-9},
                 {"min_run_s", inSeconds(runs.leastNs())},
                 {"run_s", runTimes},
                 {"bytes_sent_per_rank", bytesSent}};
  if (m.device)
    report["machine"]["gpus"] = m.device->deviceNames();
  report["comm_of_rank"] = mostExposed;
  report["comm_run_s"] = inSeconds(typical.ns);
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
  if (const std::vector<EncodingErrors *> errors = encodingErrors();
      !errors.empty() && !m.processes)
    report["encoding_errors"] = errorsOf(errors);
  if (prediction)
    report["prediction"] =
        prediction->figures().json(quantile(times, 0.5) * 1e-9, inSeconds(runs.leastNs()));
  return report;
}

} // namespace braid::runtime
