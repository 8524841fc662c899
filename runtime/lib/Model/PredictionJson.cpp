//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What was predicted beside what was measured, as reports have it, and how those of the processes
// of a job become one.
//
//===----------------------------------------------------------------------===//
#include "Prediction.h"
#include "runtime/lib/Base/Median.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

namespace braid::runtime {

using Json = nlohmann::ordered_json;

/// Makes samples of how ranks met.
static void condense(PredictionFigures &figures) {
  for (const auto &[identity, runs] : std::exchange(figures.meetings, {}))
    for (const Meetings &ofRun : runs)
      figures.take(identity, ofRun);
}

Json PredictionFigures::json(double medianRunSeconds, double leastRunSeconds) const {
  if (!meetings.empty()) { // of a process alone
    PredictionFigures condensed = *this;
    condense(condensed);
    return condensed.json(medianRunSeconds, leastRunSeconds);
  }
  Json result = {{"machine", machine}};
  if (!measuredAt.empty())
    result["machine_measured_at"] = measuredAt;
  if (!warning.empty())
    result["warning"] = warning;
  if (!notEstimated.empty()) {
    result["missing"] = notEstimated;
    return result;
  }
  auto error = [](double predicted, double measured) {
    return measured > 0 ? Json(predicted / measured - 1) : Json();
  };
  auto compared = [&](double predicted, double middle, double least) {
    return Json{{"predicted_s", predicted},
                {"measured_s", middle},
                {"error", error(predicted, middle)},
                {"least_measured_s", least},
                {"error_of_least", error(predicted, least)}};
  };
  auto list = [&](const std::string &name, const Part &part) {
    Json entries = Json::array();
    std::map<std::string, std::vector<double>> errors; // by field
    for (const std::string &identity : part.order) {
      auto sample = part.samples.find(identity);
      if (sample == part.samples.end() || sample->second.empty())
        continue;
      Json entry = {{"identity", identity}};
      entry.update(compared(part.predicted.at(identity), median(sample->second),
                            *std::min_element(sample->second.begin(), sample->second.end())));
      for (const char *field : {"error", "error_of_least"})
        if (entry[field].is_number())
          errors[field].push_back(std::abs(entry[field].get<double>()));
      entries.push_back(std::move(entry));
    }
    result[name] = std::move(entries);
    for (const auto &[field, ofField] : errors) {
      result["median_" + field + "_of_" + name] = median(ofField);
      result["largest_" + field + "_of_" + name] =
          *std::max_element(ofField.begin(), ofField.end());
    }
  };
  result["run"] = compared(runSeconds, medianRunSeconds, leastRunSeconds);
  list("calls", calls);
  list("operations", operations);
  list("collectives", collectives);
  for (Json &entry : result["collectives"]) {
    const auto samples = awakeSamples.find(entry["identity"].get<std::string>());
    const bool any = samples != awakeSamples.end();
    entry["runs_awake"] = any ? samples->second.size() : 0;
    entry["measured_awake_s"] = any ? Json(median(samples->second)) : Json();
    entry["error_awake"] =
        any ? error(entry["predicted_s"].get<double>(), median(samples->second)) : Json();
  }
  return result;
}

/// A part's times by identity, in the order of the program.
static Json rawOf(const PredictionFigures::Part &part) {
  Json entries = Json::array();
  for (const std::string &identity : part.order) {
    const auto samples = part.samples.find(identity);
    entries.push_back({identity, part.predicted.at(identity),
                       samples == part.samples.end() ? std::vector<double>() : samples->second});
  }
  return entries;
}

/// A run's meetings as lists of numbers: group, first and last arrival, the time that ranks spin,
/// and ends, all in ns.
static Json rawOf(const Meetings &meetings, const ClockMap &clock) {
  Json entries = Json::array();
  auto ofRankZero = [&](int64_t ns) { return ns + clock.offsetAt(ns); };
  for (const Meeting &one : meetings) {
    Json entry = {one.group, ofRankZero(one.firstArrivalNs), ofRankZero(one.lastArrivalNs),
                  one.spinNs};
    for (int64_t end : one.endsNs)
      entry.push_back(ofRankZero(end));
    entries.push_back(std::move(entry));
  }
  return entries;
}

static Meeting meetingOf(const Json &raw) {
  const auto numbers = raw.get<std::vector<int64_t>>();
  Meeting one;
  one.group = raw.at(0).get<int64_t>();
  one.firstArrivalNs = raw.at(1).get<int64_t>();
  one.lastArrivalNs = raw.at(2).get<int64_t>();
  one.spinNs = raw.at(3).get<int64_t>();
  one.endsNs.assign(numbers.begin() + 4, numbers.end());
  return one;
}

Json PredictionFigures::raw(const ClockMap &clock) const {
  Json met = Json::object();
  for (const auto &[identity, runs] : meetings)
    for (const Meetings &ofRun : runs)
      met[identity].push_back(rawOf(ofRun, clock));
  return {{"machine", machine},
          {"measured_at", measuredAt},
          {"missing", notEstimated},
          {"warning", warning},
          {"ranks", ranks},
          {"run_s", runSeconds},
          {"calls", rawOf(calls)},
          {"operations", rawOf(operations)},
          {"collectives", rawOf(collectives)},
          {"meetings", met}};
}

/// Adds a process's part, of which there were `before` others.
template <typename Combine>
static void addTo(PredictionFigures::Part &part, const Json &raw, Combine combine) {
  for (const Json &entry : raw) {
    const auto identity = entry.at(0).get<std::string>();
    const auto predicted = entry.at(1).get<double>();
    auto samples = entry.at(2).get<std::vector<double>>();
    if (part.predicted.emplace(identity, predicted).second) {
      part.order.push_back(identity);
      part.samples[identity] = std::move(samples);
      continue;
    }
    part.predicted[identity] = combine(part.predicted[identity], predicted);
    std::vector<double> &all = part.samples[identity];
    all.resize(std::min(all.size(), samples.size()));
    for (size_t run = 0; run < all.size(); ++run)
      all[run] = combine(all[run], samples[run]);
  }
}

/// Adds how the ranks of a process met, to the runs that all have.
static void addTo(std::map<std::string, std::vector<Meetings>> &meetings, const Json &raw) {
  for (const auto &[identity, runs] : raw.items()) {
    auto [all, isNew] = meetings.emplace(identity, std::vector<Meetings>(runs.size()));
    all->second.resize(std::min(all->second.size(), runs.size()));
    for (size_t run = 0; run < all->second.size(); ++run)
      for (const Json &one : runs[run])
        join(all->second[run], meetingOf(one));
  }
}

PredictionFigures PredictionFigures::merged(const std::vector<Json> &raw) {
  PredictionFigures result;
  std::map<std::string, int64_t> ranksOf; // by identity
  for (const Json &one : raw) {
    for (const auto &[field, text] : {std::pair("machine", &result.machine),
                                      {"measured_at", &result.measuredAt},
                                      {"missing", &result.notEstimated},
                                      {"warning", &result.warning}})
      if (text->empty())
        *text = one.at(field).get<std::string>();
    result.runSeconds = std::max(result.runSeconds, one.at("run_s").get<double>());
    const auto ranks = one.at("ranks").get<int64_t>();
    auto longer = [](double a, double b) { return std::max(a, b); };
    auto shorter = [](double a, double b) { return std::min(a, b); };
    addTo(result.calls, one.at("calls"), longer);
    addTo(result.operations, one.at("operations"), std::plus<double>());
    addTo(result.meetings, one.at("meetings"));
    for (const Json &entry : one.at("collectives")) {
      const auto identity = entry.at(0).get<std::string>();
      if (!one.at("meetings").contains(identity)) {
        addTo(result.collectives, Json::array({entry}), shorter);
        continue;
      }
      const auto predicted = entry.at(1).get<double>();
      if (result.collectives.predicted.emplace(identity, 0).second)
        result.collectives.order.push_back(identity);
      result.collectives.predicted[identity] += predicted * static_cast<double>(ranks);
      ranksOf[identity] += ranks;
    }
  }
  for (const auto &[identity, count] : ranksOf)
    result.collectives.predicted[identity] /= static_cast<double>(count);
  condense(result);
  const auto processes = static_cast<double>(raw.size());
  for (auto &[identity, seconds] : result.operations.predicted) {
    seconds /= processes;
    for (double &sample : result.operations.samples[identity])
      sample /= processes;
  }
  return result;
}

} // namespace braid::runtime
