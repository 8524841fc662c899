//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Follows the schedules of all ranks of a collective, event by event.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_SCHEDULESIMULATION_H
#define BRAID_COST_SCHEDULESIMULATION_H

#include "braid/Cost/ScheduleTime.h"

#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

namespace braid::cost {

class ScheduleSimulation {
public:
  /// `schedules` by position. All arguments must outlive the simulation. `last`: the rank that
  /// comes last, where ranks share cores.
  ScheduleSimulation(const runtime::ScheduleRequest &request, const Network &network,
                     const std::vector<runtime::Schedule> &schedules, size_t last);
  Result<CollectiveTime> run();

private:
  using Schedule = runtime::Schedule;
  using ScheduleStep = runtime::ScheduleStep;
  using StepSource = runtime::StepSource;
  /// Of a message: sender, receiver, number.
  using Message = std::tuple<size_t, size_t, uint32_t>;

  /// Disjoint [begin, end) by space and value.
  using Ranges = std::map<std::pair<runtime::Space, uint32_t>, std::map<int64_t, int64_t>>;

  struct Rank {
    std::vector<uint32_t> waits;               ///< by step: what it still waits for
    std::vector<std::vector<uint32_t>> behind; ///< by step: those that are after it
    std::set<uint32_t> ready;                  ///< by number
    uint32_t next = 0;                         ///< where steps are taken in turn
    std::optional<uint32_t> running;
    bool ended = false;
    size_t done = 0;
    double end = 0;
    bool hasCore = false, switches = false, queued = false;
    bool sendsToHosts = false;
    Ranges shared, taken; ///< what peers of its host read of its memory, and what they have read
  };
  /// The cores of a host whose ranks share them.
  struct Host {
    int64_t ranks = 0, freeCores = 0;
    std::deque<size_t> waiting; ///< ranks that could go on
    bool sharesCores = false;
    double bytesSent = 0; ///< to other hosts
  };
  /// The messages from one rank to one of another host; the first is on its way.
  struct Flow {
    std::deque<std::pair<Message, double>> messages; ///< with the bytes that are left
  };
  struct Event {
    double time;
    enum Kind { stepEnds, messageArrives, messageTaken, coreSwitched } kind;
    size_t rank;
    uint32_t step;
    Message message;
    bool operator>(const Event &o) const { return time > o.time; }
  };

  void begin(size_t r);
  static void add(Ranges &all, const runtime::Piece &piece);
  static bool overlaps(const Ranges &all, const runtime::Piece &piece);
  int64_t hostOf(size_t r) const { return request.topology.placeOf(static_cast<int64_t>(r)).host; }
  bool isDirect(size_t a, size_t b) const { return hostOf(a) == hostOf(b); }
  void unblock(size_t r, uint32_t step);
  void finish(size_t r, uint32_t step);
  bool settle();
  bool goOn(size_t r);
  void take(size_t r, uint32_t number);
  bool doesAlone(size_t r);
  std::optional<uint32_t> runnable(const Rank &rank) const;
  void takeCore(size_t r);
  void leaveCore(size_t r);
  void send(size_t r, uint32_t number, const ScheduleStep &step);
  /// From the last byte of a message that leaves its host until it has arrived.
  double latencyTo(size_t r, const Message &message) const;
  /// Within a host, seconds until a rank sees what another has done.
  double messageSeconds(size_t r) const;
  void process(const Event &event);
  double secondsOf(size_t r, const ScheduleStep &step) const;
  std::map<std::pair<size_t, size_t>, double> rates() const;
  void advance();

  const runtime::ScheduleRequest &request;
  const Network &network;
  const std::vector<Schedule> &schedules;
  const size_t last;
  bool inTurn = true;
  double copySecondsPerByte = 0, receiveSecondsPerByte = 0, reduceSecondsPerByte = 0,
         sharedSecondsPerByte = 0;
  std::vector<Rank> ranks;
  std::map<int64_t, Host> hosts;
  std::map<Message, uint32_t> takers, senders; ///< steps
  std::map<std::pair<size_t, size_t>, Flow> flows;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  double now = 0;
};

} // namespace braid::cost
#endif // BRAID_COST_SCHEDULESIMULATION_H
