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

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

namespace braid::runtime {

using Json = nlohmann::ordered_json;

static double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const size_t half = numbers.size() / 2;
  return numbers.size() % 2 != 0 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

Json PredictionFigures::json(double medianRunSeconds, double leastRunSeconds) const {
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

Json PredictionFigures::raw() const {
  return {{"machine", machine},
          {"measured_at", measuredAt},
          {"missing", notEstimated},
          {"warning", warning},
          {"run_s", runSeconds},
          {"calls", rawOf(calls)},
          {"operations", rawOf(operations)},
          {"collectives", rawOf(collectives)}};
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

PredictionFigures PredictionFigures::merged(const std::vector<Json> &raw) {
  PredictionFigures result;
  for (const Json &one : raw) {
    for (const auto &[field, text] : {std::pair("machine", &result.machine),
                                      {"measured_at", &result.measuredAt},
                                      {"missing", &result.notEstimated},
                                      {"warning", &result.warning}})
      if (text->empty())
        *text = one.at(field).get<std::string>();
    result.runSeconds = std::max(result.runSeconds, one.at("run_s").get<double>());
    auto longer = [](double a, double b) { return std::max(a, b); };
    auto shorter = [](double a, double b) { return std::min(a, b); };
    addTo(result.calls, one.at("calls"), longer);
    addTo(result.operations, one.at("operations"), std::plus<double>());
    addTo(result.collectives, one.at("collectives"), shorter);
  }
  const auto processes = static_cast<double>(raw.size());
  for (auto &[identity, seconds] : result.operations.predicted) {
    seconds /= processes;
    for (double &sample : result.operations.samples[identity])
      sample /= processes;
  }
  return result;
}

} // namespace braid::runtime
