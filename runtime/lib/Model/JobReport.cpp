//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One report of all processes of a job.
//
//===----------------------------------------------------------------------===//
#include "Prediction.h"
#include "ReportJson.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Data/Json.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>
#include <map>
#include <unistd.h>

namespace braid::runtime {

using OrderedJson = nlohmann::ordered_json;

/// The longest report of a process.
constexpr size_t kMaxReportBytes = size_t(64) << 20;

std::string textOf(const OrderedJson &report) {
  return report.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

void addTo(OrderedJson &json, const ProcessInfo &process, int64_t atNs) {
  json["host"] = process.host;
  json["process"] = process.process;
  json["start_s"] = process.start.seconds;
  json["start_processor_s"] = process.start.processorSeconds;
  json["clock_offset_s"] = inSeconds(process.clock.offsetAt(atNs));
  json["clock_error_s"] = inSeconds(process.clock.errorNs());
  json["clock_drift_s"] = inSeconds(process.clock.last.offsetNs - process.clock.first.offsetNs);
}

namespace {

/// Of a report: what is of its process, and stays apart.
constexpr const char *kOfProcess[] = {"host",
                                      "process",
                                      "start_s",
                                      "start_processor_s",
                                      "clock_offset_s",
                                      "clock_error_s",
                                      "clock_drift_s",
                                      "median_run_s",
                                      "min_run_s",
                                      "peak_memory_bytes",
                                      "process_peak_memory_bytes",
                                      "huge_page_bytes",
                                      "pinned_cores",
                                      "machine"};
/// What a job needs is what its processes need together.
constexpr const char *kSums[] = {"peak_memory_bytes", "process_peak_memory_bytes",
                                 "huge_page_bytes"};
/// Of the rank that is exposed most.
constexpr const char *kOfOneRank[] = {"comm_of_rank",  "comm_run_s",     "comm_s",
                                      "hidden_comm_s", "exposed_comm_s", "peer_wait_s"};

/// Collectives by identity: those of the first report that has them, with the bytes of the rank
/// that sends most.
OrderedJson mergeCollectives(const std::vector<const OrderedJson *> &reports) {
  OrderedJson merged = OrderedJson::array();
  std::map<std::string, size_t> places;
  for (const OrderedJson *report : reports)
    for (const OrderedJson &one : report->at("collectives")) {
      const auto [place, isNew] = places.emplace(one.at("identity"), merged.size());
      if (isNew) {
        merged.push_back(one);
        continue;
      }
      OrderedJson &bytes = merged[place->second]["bytes_sent_per_rank"];
      bytes = std::max(bytes.get<int64_t>(), one.at("bytes_sent_per_rank").get<int64_t>());
    }
  return merged;
}

OrderedJson mergeCopied(const std::vector<OrderedJson> &reports) {
  OrderedJson merged = OrderedJson::array();
  for (const OrderedJson &report : reports)
    for (const OrderedJson &one : report.at("bound_values_copied")) {
      auto same = std::find_if(merged.begin(), merged.end(), [&](const OrderedJson &other) {
        return other.at("value") == one.at("value");
      });
      if (same == merged.end())
        merged.push_back(one);
      else
        (*same)["bytes"] = same->at("bytes").get<int64_t>() + one.at("bytes").get<int64_t>();
    }
  return merged;
}

} // namespace

OrderedJson mergeReports(std::vector<OrderedJson> reports) {
  OrderedJson merged = reports.front();
  for (const char *field : {"host", "process", "start_s", "start_processor_s", "clock_offset_s",
                            "clock_error_s", "clock_drift_s"})
    merged.erase(field);
  for (const char *field : kSums) {
    int64_t sum = 0;
    for (const OrderedJson &report : reports)
      sum += report.at(field).get<int64_t>();
    merged[field] = sum;
  }
  const auto mostExposed =
      std::max_element(reports.begin(), reports.end(), [](const auto &a, const auto &b) {
        return a.at("exposed_comm_s") < b.at("exposed_comm_s");
      });
  for (const char *field : kOfOneRank)
    merged[field] = mostExposed->at(field);
  std::vector<const OrderedJson *> inOrder{&*mostExposed};
  for (const OrderedJson &report : reports)
    inOrder.push_back(&report);
  merged["collectives"] = mergeCollectives(inOrder);
  merged["bound_values_copied"] = mergeCopied(reports);
  OrderedJson perRank = OrderedJson::array(), processes = OrderedJson::array();
  OrderedJson cores = OrderedJson::array();
  std::vector<OrderedJson> predictions;
  int64_t bytesSent = 0;
  for (OrderedJson &report : reports) {
    if (report.contains("prediction"))
      predictions.push_back(report.at("prediction"));
    bytesSent = std::max(bytesSent, report.at("bytes_sent_per_rank").get<int64_t>());
    cores.insert(cores.end(), report.at("pinned_cores").begin(), report.at("pinned_cores").end());
    OrderedJson process = {{"ranks", OrderedJson::array()}};
    for (OrderedJson &rank : report["per_rank"]) {
      process["ranks"].push_back(rank.at("rank"));
      for (const char *field : {"host", "clock_offset_s", "clock_error_s"})
        rank[field] = report.at(field);
      perRank.push_back(std::move(rank));
    }
    for (const char *field : kOfProcess)
      process[field] = report.at(field);
    processes.push_back(std::move(process));
  }
  if (!predictions.empty())
    merged["prediction"] = PredictionFigures::merged(predictions)
                               .json(merged.at("median_run_s"), merged.at("min_run_s"));
  merged["bytes_sent_per_rank"] = bytesSent;
  merged["pinned_cores"] = cores;
  merged["per_rank"] = perRank;
  merged["processes"] = processes;
  return merged;
}

ProcessInfo Model::State::processInfo(const ClockMap &clock) const {
  return {communicator()->host(), getpid(), clock, communicator()->startCost()};
}

Result<std::string> Execution::gatherReport() const {
  Communicator *communicator = state.model->communicator();
  if (!communicator)
    return report();
  ASSIGN_OR_RETURN(const ClockMap clock, communicator->measureClock());
  // The same run in all processes: those of median time in each would not add up.
  const RunRecord *typical = state.runs.typical();
  uint64_t number = typical ? typical->number : 0;
  RETURN_IF_ERROR(communicator->broadcast(&number, sizeof(number)));
  OrderedJson own = state.report(number);
  addTo(own, state.model->processInfo(clock), nowNs());
  if (state.prediction)
    own["prediction"] = state.prediction->figures().raw(clock);
  const std::string text = own.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  size_t given = 0;
  auto next = [&]() -> Result<std::string> {
    if (text.size() > kMaxReportBytes)
      return Status::error("the report expects at most ", kMaxReportBytes, " bytes, got ",
                           text.size());
    std::string piece = text.substr(given, Communicator::kMaxPieceBytes);
    given += piece.size();
    return piece;
  };
  std::map<int64_t, std::string> texts; // by first rank
  auto take = [&](RankRange ranks, const std::string &piece) -> Status {
    std::string &its = texts[ranks.first];
    its += piece;
    return its.size() <= kMaxReportBytes
               ? Status()
               : Status::error("the report of rank ", ranks.first, " expects at most ",
                               kMaxReportBytes, " bytes");
  };
  RETURN_IF_ERROR(communicator->collect(next, take));
  if (!communicator->hasRankZero())
    return std::string();
  std::vector<OrderedJson> reports;
  try {
    for (const auto &[rank, its] : texts) {
      RETURN_IF_ERROR(parseJson(its.data(), its.data() + its.size())
                          .status()
                          .within("the report of rank " + std::to_string(rank)));
      reports.push_back(OrderedJson::parse(its));
    }
    return textOf(mergeReports(std::move(reports)));
  } catch (const OrderedJson::exception &e) { // a process with other fields
    return Status::error("the reports of the processes do not fit together: ", e.what());
  }
}

} // namespace braid::runtime
