//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What reports and traces share, and how those of several processes become one.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_MODEL_REPORTJSON_H
#define BRAID_MODEL_REPORTJSON_H

#include "ModelState.h"

#include <nlohmann/json.hpp>

namespace braid::runtime {

inline double inSeconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

/// A device does not report how long its ranks waited for each other inside a collective.
void addTo(nlohmann::ordered_json &json, const CommunicationTimes &times, bool onDevice);

/// As files have it.
std::string textOf(const nlohmann::ordered_json &report);

/// A process of a job, as its report and its trace name it.
struct ProcessInfo {
  std::string host;
  int64_t process = 0; ///< its number on the host
  ClockMap clock;
  Communicator::StartCost start;
};
/// Its fields host, process, start_s, start_processor_s, clock_offset_s (at this time of its
/// clock), clock_error_s and clock_drift_s.
void addTo(nlohmann::ordered_json &json, const ProcessInfo &process, int64_t atNs);

/// The report of a job, made of those of its processes, which are by rank and have the fields of a
/// ProcessInfo.
nlohmann::ordered_json mergeReports(std::vector<nlohmann::ordered_json> reports);

} // namespace braid::runtime
#endif // BRAID_MODEL_REPORTJSON_H
