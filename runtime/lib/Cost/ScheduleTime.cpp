//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Cost/ScheduleTime.h"

#include "Interpolation.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <queue>
#include <set>

namespace braid::cost {

using runtime::Schedule;
using runtime::ScheduleAlgorithm;
using runtime::ScheduleRequest;
using runtime::ScheduleStep;
using runtime::StepKind;
using runtime::StepSource;

Result<Network> networkOf(const Machine &machine, const std::string &transport, int64_t ranks) {
  const Transport *found = machine.findTransport(transport, ranks);
  if (!found)
    return Status::error("the machine file has no transport ", runtime::inQuotes(transport), " of ",
                         ranks, " ranks");
  Network network;
  network.startSeconds = found->startSeconds;
  network.messageSeconds = found->messageSeconds;
  network.transfers = found->transfers;
  return network;
}

namespace {

class Simulation {
public:
  Simulation(const ScheduleRequest &request, const Network &network,
             std::vector<Schedule> schedules)
      : request(request), network(network), schedules(std::move(schedules)) {
    double bytes = 0; // of input and output
    for (const runtime::ScheduleValue &value : request.values)
      bytes += static_cast<double>(value.partBytes) *
               static_cast<double>(request.inputParts() + request.outputParts());
    const double transfer = bytes / static_cast<double>(request.ranks + 1);
    std::vector<std::pair<double, double>> copies, reductions;
    for (const TransferPoint &point : network.transfers) {
      copies.emplace_back(point.bytes, point.copySeconds);
      reductions.emplace_back(point.bytes, point.reduceSeconds);
    }
    if (transfer > 0) {
      copySecondsPerByte = secondsAt(copies, transfer) / transfer;
      reduceSecondsPerByte = secondsAt(reductions, transfer) / transfer;
    }
  }

  Result<CollectiveTime> run() {
    ranks.resize(schedules.size());
    for (size_t r = 0; r < ranks.size(); ++r)
      begin(r);
    for (now = network.startSeconds; settle(); advance()) {
    }
    CollectiveTime time;
    for (const Rank &rank : ranks) {
      if (rank.done != rank.waits.size())
        return Status::error("the schedules do not end");
      time.rankSeconds.push_back(rank.end);
      time.seconds = std::max(time.seconds, rank.end);
    }
    return time;
  }

private:
  /// Of a message: sender, receiver, number.
  using Message = std::tuple<size_t, size_t, uint32_t>;

  struct Rank {
    std::vector<uint32_t> waits;               ///< by step: what it still waits for
    std::vector<std::vector<uint32_t>> behind; ///< by step: those that are after it
    std::set<uint32_t> ready;                  ///< by number
    std::optional<uint32_t> running;
    size_t done = 0;
    double end = 0;
  };
  /// The messages from one rank to one of another host; the first is on its way.
  struct Flow {
    std::deque<std::pair<Message, double>> messages; ///< with the bytes that are left
  };
  struct Event {
    double time;
    enum Kind { stepEnds, messageArrives } kind;
    size_t rank;
    uint32_t step;
    Message message;
    bool operator>(const Event &o) const { return time > o.time; }
  };

  void begin(size_t r) {
    Rank &rank = ranks[r];
    const Schedule &schedule = schedules[r];
    rank.waits.resize(schedule.steps.size());
    rank.behind.resize(schedule.steps.size());
    rank.end = network.startSeconds;
    for (uint32_t s = 0; s < schedule.steps.size(); ++s) {
      const ScheduleStep &step = schedule.steps[s];
      for (uint32_t before : schedule.dependenciesOf(step))
        rank.behind[before].push_back(s);
      rank.waits[s] = step.numDependencies;
      for (const StepSource &source : schedule.sourcesOf(step))
        if (source.isMessage()) {
          ++rank.waits[s];
          takers[{static_cast<size_t>(source.peer), r, source.message}] = s;
        }
      if (step.kind == StepKind::send)
        senders[{r, static_cast<size_t>(step.peer), step.message}] = s;
      if (rank.waits[s] == 0)
        rank.ready.insert(s);
    }
  }

  bool isDirect(size_t a, size_t b) const {
    return request.topology.sameHost(static_cast<int64_t>(a), static_cast<int64_t>(b));
  }

  void unblock(size_t r, uint32_t step) {
    if (--ranks[r].waits[step] == 0)
      ranks[r].ready.insert(step);
  }

  void finish(size_t r, uint32_t step) {
    Rank &rank = ranks[r];
    ++rank.done;
    rank.end = std::max(rank.end, now);
    for (uint32_t next : rank.behind[step])
      unblock(r, next);
    // A send within the host is done when its message was read.
    for (const StepSource &source : schedules[r].sourcesOf(schedules[r].steps[step]))
      if (source.isMessage() && isDirect(static_cast<size_t>(source.peer), r))
        finish(static_cast<size_t>(source.peer),
               senders.at({static_cast<size_t>(source.peer), r, source.message}));
  }

  /// Starts all that can start now. False when nothing is under way any more.
  bool settle() {
    for (bool more = true; more;) {
      more = false;
      for (size_t r = 0; r < ranks.size(); ++r) {
        Rank &rank = ranks[r];
        for (auto next = rank.ready.begin(); next != rank.ready.end();) {
          const ScheduleStep &step = schedules[r].steps[*next];
          const uint32_t number = *next;
          if (step.kind == StepKind::send) {
            next = rank.ready.erase(next);
            send(r, number, step);
            more = true;
          } else if (!rank.running) {
            next = rank.ready.erase(next);
            rank.running = number;
            events.push({now + secondsOf(r, step), Event::stepEnds, r, number, {}});
          } else {
            ++next;
          }
        }
      }
    }
    return !events.empty() || !flows.empty();
  }

  void send(size_t r, uint32_t number, const ScheduleStep &step) {
    const Message message{r, static_cast<size_t>(step.peer), step.message};
    if (isDirect(r, static_cast<size_t>(step.peer)))
      events.push({now + network.messageSeconds, Event::messageArrives, r, number, message});
    else
      flows[{r, static_cast<size_t>(step.peer)}].messages.emplace_back(
          message, static_cast<double>(step.piece.bytes));
  }

  double secondsOf(size_t r, const ScheduleStep &step) const {
    const auto bytes = static_cast<double>(step.piece.bytes);
    if (step.kind == StepKind::reduce)
      return bytes * reduceSecondsPerByte * std::max(0.0, step.numSources - 1.0);
    if (step.kind == StepKind::receive) {
      const StepSource &source = schedules[r].sourcesOf(step)[0];
      if (!isDirect(static_cast<size_t>(source.peer), r))
        return 0; // the link has put it there
    }
    return bytes * copySecondsPerByte;
  }

  /// Bytes per second of each flow: equal shares of the cards of both hosts.
  std::map<std::pair<size_t, size_t>, double> rates() const {
    std::map<int64_t, double> sending, receiving;
    auto host = [&](size_t r) { return request.topology.placeOf(static_cast<int64_t>(r)).host; };
    for (const auto &[pair, flow] : flows) {
      ++sending[host(pair.first)];
      ++receiving[host(pair.second)];
    }
    std::map<std::pair<size_t, size_t>, double> result;
    for (const auto &[pair, flow] : flows)
      result[pair] = network.between.bytesPerSecond /
                     std::max(sending[host(pair.first)], receiving[host(pair.second)]);
    return result;
  }

  /// Goes on to the next event.
  void advance() {
    const auto rate = rates();
    double next = events.empty() ? std::numeric_limits<double>::infinity() : events.top().time;
    auto secondsLeft = [&](const auto &entry) {
      return entry.second.messages.front().second / rate.at(entry.first);
    };
    const auto *first =
        static_cast<const std::pair<const std::pair<size_t, size_t>, Flow> *>(nullptr);
    for (const auto &entry : flows)
      if (now + secondsLeft(entry) < next) {
        next = now + secondsLeft(entry);
        first = &entry;
      }
    for (auto &[pair, flow] : flows)
      flow.messages.front().second =
          std::max(0.0, flow.messages.front().second - (next - now) * rate.at(pair));
    now = next;
    if (first) {
      // The bytes of a message have left; it arrives the latency later.
      auto flow = flows.find(first->first);
      const Message message = flow->second.messages.front().first;
      events.push({now + network.between.latencySeconds, Event::messageArrives,
                   std::get<0>(message), senders.at(message), message});
      flow->second.messages.pop_front();
      if (flow->second.messages.empty())
        flows.erase(flow);
      return;
    }
    const Event event = events.top();
    events.pop();
    if (event.kind == Event::stepEnds) {
      ranks[event.rank].running.reset();
      finish(event.rank, event.step);
      return;
    }
    const auto &[sender, receiver, number] = event.message;
    if (!isDirect(sender, receiver))
      finish(sender, event.step);
    if (auto taker = takers.find(event.message); taker != takers.end())
      unblock(receiver, taker->second);
  }

  const ScheduleRequest &request;
  const Network &network;
  const std::vector<Schedule> schedules;
  double copySecondsPerByte = 0, reduceSecondsPerByte = 0;
  std::vector<Rank> ranks;
  std::map<Message, uint32_t> takers, senders; ///< steps
  std::map<std::pair<size_t, size_t>, Flow> flows;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  double now = 0;
};

} // namespace

Result<CollectiveTime> timeOf(const ScheduleRequest &request, const Network &network) {
  std::vector<Schedule> schedules;
  for (int64_t position = 0; position < request.ranks; ++position) {
    ASSIGN_OR_RETURN(Schedule schedule, makeSchedule(request, position));
    schedules.push_back(std::move(schedule));
  }
  for (int64_t r = 1; r < request.ranks; ++r)
    if (!request.topology.sameHost(0, r) && network.between.bytesPerSecond <= 0)
      return Status::error("the machine file has no link between hosts");
  return Simulation(request, network, std::move(schedules)).run();
}

Result<ScheduleAlgorithm> fastestAlgorithm(const ScheduleRequest &request, const Network &network,
                                           const std::vector<ScheduleAlgorithm> &among) {
  std::optional<ScheduleAlgorithm> best;
  double least = 0;
  for (ScheduleAlgorithm algorithm : among) {
    if (!runtime::checkAlgorithm(algorithm, request.kind, request.ranks).ok())
      continue;
    ScheduleRequest with = request;
    with.algorithm = algorithm;
    ASSIGN_OR_RETURN(const CollectiveTime time, timeOf(with, network));
    if (!best || time.seconds < least) {
      best = algorithm;
      least = time.seconds;
    }
  }
  if (!best)
    return Status::error("no algorithm applies to ", runtime::name(request.kind), " of ",
                         request.ranks, " ranks");
  return *best;
}

} // namespace braid::cost
