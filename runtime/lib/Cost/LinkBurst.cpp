//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Cost/LinkBurst.h"

#include "Interpolation.h"

#include <algorithm>
#include <cmath>

namespace braid::cost {

/// Bytes that are fewer than all of the table take as long as its first ones.
static double secondsOf(const std::vector<MessagePoint> &points, double bytes) {
  std::vector<std::pair<double, double>> seconds;
  for (const MessagePoint &point : points)
    seconds.emplace_back(static_cast<double>(point.bytes), point.seconds);
  return secondsAt(seconds, std::max(bytes, seconds.front().first));
}

/// What a message takes longer than the latency.
static double movingSeconds(const Link &link, double bytes) {
  return std::max(0.0, secondsOf(link.messages, bytes) - link.latencySeconds);
}

double exchangeLatency(const Link &link, double bytes) {
  if (link.exchanges.empty())
    return link.latencySeconds;
  bytes = std::min(bytes, static_cast<double>(link.exchanges.back().bytes));
  const double moving =
      link.messages.empty() ? bytes / link.bytesPerSecond : movingSeconds(link, bytes);
  return std::max(link.latencySeconds, secondsOf(link.exchanges, bytes) - moving);
}

double burstBytes(const Link &link) {
  // A bandwidth is no more exact than this, which of long messages is as much as a burst.
  constexpr double kExact = 0.003;
  double most = 0;
  for (const MessagePoint &point : link.messages) {
    const auto bytes = static_cast<double>(point.bytes);
    most = std::max(most, (1 - kExact) * bytes - movingSeconds(link, bytes) * link.bytesPerSecond);
  }
  return most;
}

double burstGain(const Link &link, double bytes) {
  if (link.messages.empty() || bytes <= 0)
    return 0;
  return std::max(0.0, bytes / link.bytesPerSecond - movingSeconds(link, bytes));
}

double LinkBurst::pass(const Link &its, double bytes, double now, double seconds) {
  link = &its;
  const double atBegin = leftAt(now);
  seconds -= std::min(seconds, burstGain(its, std::min(bytes, atBegin)));
  left = std::max(0.0, atBegin - bytes + its.bytesPerSecond * seconds);
  time = std::max(time, now + seconds);
  return seconds;
}

double LinkBurst::leftAt(double now) const {
  return link ? std::min(burstBytes(*link), left + link->bytesPerSecond * std::max(0.0, now - time))
              : 0;
}

bool LinkBurst::beginRun(double endOfLast) {
  const double before = leftAtBegin;
  leftAtBegin = left = leftAt(endOfLast);
  time = 0;
  return link && std::abs(left - before) > 0.01 * burstBytes(*link);
}

} // namespace braid::cost
