//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How far cores are from each other. Those that share a cache pass a cache line on in some tens
// of nanoseconds, others take several times as long, and with that all collectives of ranks on
// them. The cores of a virtual machine may be either in turn: its host moves them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_COREDISTANCE_H
#define BRAID_SYNC_COREDISTANCE_H

#include "Cores.h"

#include <optional>

namespace braid::runtime {

/// The seconds in which a cache line comes from a core to the next one of a ring, when each
/// writes it in turn: the mean over the ring, of the fastest of ten spans of 50 rounds, or of as
/// many spans as 20 ms allow. Starts a thread on each core of `ranks`, which are two at least and
/// have one thread each, and ends them.
double coreToCoreSeconds(const Pinning &ranks);

/// Keeps measurements of ranks with a core each to times when these are as near to each other as
/// they usually are.
class CoreWatch {
public:
  /// `usual` is what is known of the seconds from core to core; without it, the least so far is.
  /// It spends at most `seconds` on waiting and on what is to be measured again.
  CoreWatch(Pinning ranks, std::optional<double> usual, double seconds);

  /// Whether two such times are of the same places of cores: one is at most twice the other.
  /// From core to core a line takes 24 to 42 ns where they share a cache, and 160 ns or more where
  /// they do not (a virtual machine on an EPYC of Zen 4).
  static bool areAlike(double one, double other);

  /// Waits until the cores are as near as usual. Returns at once if there is no time left for that.
  void await();
  /// Whether what was done since await() counts: the cores are still as near, or there is no time
  /// left to do it again. It took so many seconds.
  bool counts(double seconds);
  /// From core to core, about the last measurement.
  double last() const { return lastSeconds; }

private:
  bool isUsual();

  Pinning ranks;
  std::optional<double> usual;
  bool isKnown;
  double secondsLeft, lastSeconds = 0;
};

} // namespace braid::runtime
#endif // BRAID_SYNC_COREDISTANCE_H
