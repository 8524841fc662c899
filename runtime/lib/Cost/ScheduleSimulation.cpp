//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ScheduleSimulation.h"

#include "Interpolation.h"
#include "braid/Cost/LinkBurst.h"

#include <algorithm>
#include <limits>

namespace braid::cost {

using runtime::Piece;
using runtime::ScheduleRequest;
using runtime::ScheduleValue;
using runtime::StepKind;

ScheduleSimulation::ScheduleSimulation(const ScheduleRequest &request, const Network &network,
                                       const std::vector<Schedule> &schedules, size_t last)
    : request(request), network(network), schedules(schedules), last(last),
      ranks(schedules.size()) {
  double bytes = 0; // of a rank's input and output
  for (const ScheduleValue &value : request.values)
    bytes += static_cast<double>(value.partBytes) *
             static_cast<double>(request.inputParts() + request.outputParts());
  auto perByte = [&](double TransferPoint::*seconds) {
    std::vector<std::pair<double, double>> points;
    for (const TransferPoint &point : network.transfers)
      points.emplace_back(static_cast<double>(point.bytes), point.*seconds);
    return bytes > 0 ? secondsAt(points, bytes) / bytes : 0;
  };
  copySecondsPerByte = perByte(&TransferPoint::copySeconds);
  receiveSecondsPerByte = perByte(&TransferPoint::receiveSeconds);
  reduceSecondsPerByte = perByte(&TransferPoint::reduceSeconds);
  sharedSecondsPerByte = perByte(&TransferPoint::sharedSeconds);
  for (size_t r = 0; r < ranks.size(); ++r)
    ++hosts[hostOf(r)].ranks;
  for (auto &[number, host] : hosts) {
    host.sharesCores = network.cores > 0 && host.ranks > network.cores;
    host.freeCores = network.cores;
  }
  inTurn = hosts.size() == 1;
}

Result<CollectiveTime> ScheduleSimulation::run() {
  for (size_t r = 0; r < ranks.size(); ++r)
    begin(r);
  now = network.startSeconds;
  // Where ranks share cores, the others have done what needs no message when the last one comes.
  if (Host &host = hosts[hostOf(last)]; host.sharesCores) {
    for (size_t r = 0; r < ranks.size(); ++r)
      while (r != last && hostOf(r) == hostOf(last) && doesAlone(r)) {
      }
    // Their messages are there.
    while (!events.empty()) {
      const Event event = events.top();
      events.pop();
      process(event);
    }
    ranks[last].hasCore = true;
    --host.freeCores;
  }
  for (; settle(); advance()) {
  }
  CollectiveTime time;
  for (const Rank &rank : ranks) {
    if (!rank.ended)
      return Status::error("the schedules do not end");
    time.rankSeconds.push_back(rank.end);
    time.seconds = std::max(time.seconds, time.rankSeconds.back());
  }
  for (size_t r = 0; r < ranks.size(); ++r)
    time.hostBytesSent.push_back(hosts.at(hostOf(r)).bytesSent);
  return time;
}

void ScheduleSimulation::begin(size_t r) {
  Rank &rank = ranks[r];
  const Schedule &schedule = schedules[r];
  rank.waits.resize(schedule.steps.size());
  rank.behind.resize(schedule.steps.size());
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
    if (step.kind == StepKind::send) {
      senders[{r, static_cast<size_t>(step.peer), step.message}] = s;
      if (isDirect(r, static_cast<size_t>(step.peer)))
        add(rank.shared, step.piece);
      else
        rank.sendsToHosts = true;
    }
    if (rank.waits[s] == 0)
      rank.ready.insert(s);
  }
}

void ScheduleSimulation::add(Ranges &all, const Piece &piece) {
  std::map<int64_t, int64_t> &ranges = all[{piece.space, piece.value}];
  int64_t begin = piece.offset, end = piece.end();
  // Those that touch it become one with it.
  auto at = ranges.upper_bound(begin);
  if (at != ranges.begin() && std::prev(at)->second >= begin)
    --at;
  while (at != ranges.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = ranges.erase(at);
  }
  ranges[begin] = end;
}

bool ScheduleSimulation::overlaps(const Ranges &all, const Piece &piece) {
  auto ranges = all.find({piece.space, piece.value});
  if (ranges == all.end())
    return false;
  auto at = ranges->second.lower_bound(piece.end());
  return at != ranges->second.begin() && std::prev(at)->second > piece.offset;
}

void ScheduleSimulation::unblock(size_t r, uint32_t step) {
  if (--ranks[r].waits[step] == 0)
    ranks[r].ready.insert(step);
}

void ScheduleSimulation::finish(size_t r, uint32_t step) {
  Rank &rank = ranks[r];
  ++rank.done;
  for (uint32_t next : rank.behind[step])
    unblock(r, next);
  // A send within the host is done when its rank sees that the message was read.
  for (const StepSource &source : schedules[r].sourcesOf(schedules[r].steps[step]))
    if (const auto sender = static_cast<size_t>(source.peer);
        source.isMessage() && isDirect(sender, r)) {
      const uint32_t number = senders.at({sender, r, source.message});
      add(ranks[sender].taken, schedules[sender].steps[number].piece);
      events.push({now + messageSeconds(sender), Event::messageTaken, sender, number, {}});
    }
}

// A rank that shares its core takes the time when it goes on.
double ScheduleSimulation::messageSeconds(size_t r) const {
  return hosts.at(hostOf(r)).sharesCores ? 0 : network.messageSeconds;
}

double ScheduleSimulation::latencyTo(size_t r, const Message &message) const {
  const Link &link = network.between;
  if (!ranks[r].sendsToHosts)
    return link.latencySeconds;
  const ScheduleStep &step = schedules[std::get<0>(message)].steps[senders.at(message)];
  return exchangeLatency(link, static_cast<double>(step.piece.bytes));
}

/// The step that the rank takes next, if it can; behind the last one, its end.
std::optional<uint32_t> ScheduleSimulation::runnable(const Rank &rank) const {
  const auto steps = static_cast<uint32_t>(rank.waits.size());
  if (rank.done == steps)
    return steps;
  if (inTurn)
    return rank.next < steps && rank.waits[rank.next] == 0 ? std::optional(rank.next)
                                                           : std::nullopt;
  return rank.ready.empty() ? std::nullopt : std::optional(*rank.ready.begin());
}

/// Does the rank's next step at once, if it is a send or needs no message.
bool ScheduleSimulation::doesAlone(size_t r) {
  const std::optional<uint32_t> number = runnable(ranks[r]);
  if (!number || *number == schedules[r].steps.size())
    return false;
  const ScheduleStep &step = schedules[r].steps[*number];
  for (const StepSource &source : schedules[r].sourcesOf(step))
    if (source.isMessage())
      return false;
  if (step.kind == StepKind::send) {
    take(r, *number);
  } else {
    ranks[r].ready.erase(*number);
    ranks[r].next = *number + 1;
    finish(r, *number);
  }
  return true;
}

void ScheduleSimulation::takeCore(size_t r) {
  --hosts[hostOf(r)].freeCores;
  ranks[r].hasCore = ranks[r].switches = true;
  events.push({now + network.messageSeconds, Event::coreSwitched, r, 0, {}});
}

void ScheduleSimulation::leaveCore(size_t r) {
  Host &host = hosts[hostOf(r)];
  ranks[r].hasCore = false;
  ++host.freeCores;
  if (host.waiting.empty())
    return;
  const size_t next = host.waiting.front();
  host.waiting.pop_front();
  ranks[next].queued = false;
  takeCore(next);
}

/// Does what the rank can do now; false when it can do nothing.
bool ScheduleSimulation::goOn(size_t r) {
  Rank &rank = ranks[r];
  if (rank.ended || rank.switches || rank.running || rank.queued)
    return false;
  const std::optional<uint32_t> number = runnable(rank);
  if (!number) {
    if (!rank.hasCore)
      return false;
    leaveCore(r);
    return true;
  }
  if (hosts[hostOf(r)].sharesCores && !rank.hasCore) {
    if (Host &host = hosts[hostOf(r)]; host.freeCores == 0) {
      host.waiting.push_back(r);
      rank.queued = true;
    } else {
      takeCore(r);
    }
    return true;
  }
  const Schedule &schedule = schedules[r];
  if (*number == schedule.steps.size()) {
    rank.ended = true;
    rank.end = now;
    if (rank.hasCore)
      leaveCore(r);
    return true;
  }
  take(r, *number);
  return true;
}

/// Does a send, or begins another step.
void ScheduleSimulation::take(size_t r, uint32_t number) {
  Rank &rank = ranks[r];
  rank.ready.erase(number);
  rank.next = number + 1;
  const ScheduleStep &step = schedules[r].steps[number];
  if (step.kind == StepKind::send) {
    send(r, number, step);
  } else {
    rank.running = number;
    events.push({now + secondsOf(r, step), Event::stepEnds, r, number, {}});
  }
}

/// Starts all that can start now. False when nothing is under way any more.
bool ScheduleSimulation::settle() {
  for (bool more = true; more;) {
    more = false;
    for (size_t r = 0; r < ranks.size(); ++r)
      while (goOn(r))
        more = true;
  }
  return !events.empty() || !flows.empty();
}

void ScheduleSimulation::send(size_t r, uint32_t number, const ScheduleStep &step) {
  const auto peer = static_cast<size_t>(step.peer);
  const Message message{r, peer, step.message};
  if (isDirect(r, peer)) {
    events.push({now + messageSeconds(r), Event::messageArrives, r, number, message});
    return;
  }
  const auto bytes = static_cast<double>(step.piece.bytes);
  flows[{r, peer}].messages.emplace_back(message, bytes);
  hosts.at(hostOf(r)).bytesSent += bytes;
}

double ScheduleSimulation::secondsOf(size_t r, const ScheduleStep &step) const {
  const runtime::Items<StepSource> sources = schedules[r].sourcesOf(step);
  double perByte = copySecondsPerByte;
  if (step.kind == StepKind::reduce)
    perByte = reduceSecondsPerByte * std::max(0.0, step.numSources - 1.0);
  if (step.kind == StepKind::receive) {
    if (!isDirect(static_cast<size_t>(sources[0].peer), r))
      return 0; // the link has put it there
    perByte = receiveSecondsPerByte;
  }
  // A peer has the bytes that it reads in its cache, or takes half of them meanwhile.
  const Rank &rank = ranks[r];
  double shared = overlaps(rank.shared, step.piece) ? 1 : 0;
  for (const StepSource &source : sources)
    if (!source.isMessage() && overlaps(rank.shared, source.piece))
      shared = std::max(shared, overlaps(rank.taken, source.piece) ? 1 : 0.5);
  perByte += shared * sharedSecondsPerByte;
  // Those of a transport are of ranks that all are at work at the same time.
  const Host &host = hosts.at(hostOf(r));
  const double part =
      host.sharesCores ? static_cast<double>(network.cores) / static_cast<double>(host.ranks) : 1;
  return part * perByte * static_cast<double>(step.piece.bytes);
}

/// Bytes per second of each flow: equal shares of the cards of both hosts, and no more than one
/// flow gets.
std::map<std::pair<size_t, size_t>, double> ScheduleSimulation::rates() const {
  const Link &link = network.between;
  std::map<int64_t, double> sending, receiving;
  for (const auto &[pair, flow] : flows) {
    ++sending[hostOf(pair.first)];
    ++receiving[hostOf(pair.second)];
  }
  const double ofHost = link.hostBytesPerSecond.value_or(link.bytesPerSecond);
  const double bothWays = std::min(1.0, link.bothWaysBytesPerSecond.value_or(link.bytesPerSecond) /
                                            link.bytesPerSecond);
  auto card = [&](int64_t host) {
    return ofHost * (sending.count(host) > 0 && receiving.count(host) > 0 ? bothWays : 1);
  };
  std::map<std::pair<size_t, size_t>, double> result;
  for (const auto &[pair, flow] : flows) {
    const int64_t from = hostOf(pair.first), to = hostOf(pair.second);
    result[pair] =
        std::min({link.bytesPerSecond, card(from) / sending[from], card(to) / receiving[to]});
  }
  return result;
}

/// Goes on to the next event.
void ScheduleSimulation::advance() {
  const auto rate = rates();
  double next = events.empty() ? std::numeric_limits<double>::infinity() : events.top().time;
  auto first = flows.end(); // the flow whose message has left before
  for (auto flow = flows.begin(); flow != flows.end(); ++flow)
    if (const double end = now + flow->second.messages.front().second / rate.at(flow->first);
        end < next) {
      next = end;
      first = flow;
    }
  for (auto &[pair, flow] : flows)
    flow.messages.front().second =
        std::max(0.0, flow.messages.front().second - (next - now) * rate.at(pair));
  now = next;
  if (first != flows.end()) {
    // The bytes of a message have left; it arrives the latency later.
    const Message message = first->second.messages.front().first;
    events.push({now + latencyTo(std::get<1>(message), message), Event::messageArrives,
                 std::get<0>(message), senders.at(message), message});
    first->second.messages.pop_front();
    if (first->second.messages.empty())
      flows.erase(first);
    return;
  }
  // What happens at the same time.
  while (!events.empty() && events.top().time <= now * (1 + 1e-12)) {
    const Event event = events.top();
    events.pop();
    process(event);
  }
}

void ScheduleSimulation::process(const Event &event) {
  switch (event.kind) {
  case Event::stepEnds:
    ranks[event.rank].running.reset();
    finish(event.rank, event.step);
    break;
  case Event::messageTaken:
    finish(event.rank, event.step);
    break;
  case Event::coreSwitched:
    ranks[event.rank].switches = false;
    break;
  case Event::messageArrives: {
    const auto &[sender, receiver, number] = event.message;
    if (!isDirect(sender, receiver))
      finish(sender, event.step);
    if (auto taker = takers.find(event.message); taker != takers.end())
      unblock(receiver, taker->second);
    break;
  }
  }
}

} // namespace braid::cost
