//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lets a test do something to the process of a rank at a schedule point. Part of braid-run in
// builds with schedule points, where variables turn it on:
//
//   BRAID_POINTS_FILE=PATH
//     At its end rank R writes to PATH.R which points it has passed: lines LANE|STEP|COUNT.
//   BRAID_PAUSE_AT=RANK|LANE|STEP|TIMES|PATH
//     When a thread of this lane of the rank comes to the step, having been there so many times,
//     the file PATH is made, which says how many runs the rank has begun. The thread goes on when
//     the file is gone, or after a minute; the other threads go on meanwhile.
//   BRAID_STOP_AT=RANK|LANE|STEP|TIMES|PATH
//     The same, but the process stops (SIGSTOP) as soon as the file is there.
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Sync/SchedulePoint.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

namespace {

using braid::runtime::SchedulePoint;

struct Moment {
  std::string rank, step, path;
  int64_t lane = 0;
  int times = -1; ///< -1: never
};

Moment momentOf(const char *given) {
  Moment moment;
  std::string lane, times;
  std::istringstream words(given ? given : "");
  if (std::getline(words, moment.rank, '|') && std::getline(words, lane, '|') &&
      std::getline(words, moment.step, '|') && std::getline(words, times, '|') &&
      std::getline(words, moment.path)) {
    moment.lane = std::atoll(lane.c_str());
    moment.times = std::atoi(times.c_str());
  }
  return moment;
}

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

/// Of this process. Its threads use it until the last of them ends, so nothing destroys it.
struct Points {
  const std::string rank = variable("BRAID_RANK"), recordAt = variable("BRAID_POINTS_FILE");
  const bool stops = std::getenv("BRAID_STOP_AT");
  const Moment moment = momentOf(std::getenv(stops ? "BRAID_STOP_AT" : "BRAID_PAUSE_AT"));
  std::mutex mutex;
  std::map<std::pair<int64_t, std::string>, int> passed; ///< how many times, by lane and step
  int runsBegun = 0;
};
Points *points = nullptr;

void pauseWith(int runsBegun) {
  const std::string &path = points->moment.path, unfinished = path + ".new";
  std::ofstream(unfinished) << runsBegun << "\n";
  std::rename(unfinished.c_str(), path.c_str());
  if (points->stops) {
    std::raise(SIGSTOP);
    return;
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (access(path.c_str(), F_OK) == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void pass(const SchedulePoint &at) {
  int before = 0, runsBegun = 0;
  {
    const std::lock_guard<std::mutex> lock(points->mutex);
    before = points->passed[{at.lane, at.step}]++;
    points->runsBegun += std::strcmp(at.step, "begins a run") == 0 ? 1 : 0;
    runsBegun = points->runsBegun;
  }
  const Moment &moment = points->moment;
  if (before == moment.times && at.lane == moment.lane && moment.step == at.step &&
      moment.rank == points->rank)
    pauseWith(runsBegun);
}

void record() {
  const std::lock_guard<std::mutex> lock(points->mutex);
  std::ofstream file(points->recordAt + "." + points->rank);
  for (const auto &[at, count] : points->passed)
    file << at.first << "|" << at.second << "|" << count << "\n";
}

[[maybe_unused]] const bool isOn = [] {
  auto own = new Points;
  points = own;
  if (own->rank.empty() || (own->recordAt.empty() && own->moment.times < 0))
    return false;
  braid::runtime::scheduleHook.store(pass);
  if (!own->recordAt.empty())
    std::atexit(record);
  return true;
}();

} // namespace
