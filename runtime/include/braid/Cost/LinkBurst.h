//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A link that is shaped by a token bucket, as those of clouds and of test hosts are, passes some
// bytes at once if it has been idle: as many as its bandwidth would have passed meanwhile, up to a
// burst. By the messages of a measured link (Link::messages), each of which found it idle.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_LINKBURST_H
#define BRAID_COST_LINKBURST_H

#include "braid/Cost/Machine.h"

namespace braid::cost {

/// What goes by from the end of a message over a link, when its last byte has left, to that of its
/// receive, if both hosts send one to the other at the same time, in seconds: what such an exchange
/// (Link::exchanges) takes longer than a message takes to move. Longer messages than all of the
/// table have the latency of its last one.
double exchangeLatency(const Link &link, double bytes);
/// The bytes of a burst; 0 for a link that has none, or no measured messages.
double burstBytes(const Link &link);
/// How much less time `bytes` take over a link that has been idle for long than over one that has
/// just passed many, in seconds.
double burstGain(const Link &link, double bytes);

/// What the link of a host would pass at once, while one collective follows the other. At first it
/// has been busy for long.
class LinkBurst {
public:
  /// What remains of the `seconds` that a collective takes over a busy link. It begins at the time
  /// `now`, and the host sends `bytes` in it. Always of the same link.
  double pass(const Link &link, double bytes, double now, double seconds);
  /// The next run begins, at the time 0, when this one ends. False if it begins, but for 1 % of a
  /// burst, with as many bytes as this one did.
  bool beginRun(double endOfLast);

private:
  double leftAt(double now) const;

  const Link *link = nullptr; ///< null: none was used
  double left = 0, time = 0;  ///< so many bytes then
  double leftAtBegin = 0;
};

} // namespace braid::cost
#endif // BRAID_COST_LINKBURST_H
