//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How late whoever waits for a row of messages may learn that one of them has come. A thread that
// is woken by every packet takes much of the processor for that (test/benchmark/README.md).
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_LATENESS_H
#define BRAID_NET_LATENESS_H

#include "runtime/lib/Sync/Counter.h"

#include <algorithm>

namespace braid::runtime::net {

/// Of messages that are under way together, so that the next ones move while one is not looked at.
/// One row of messages may follow the other; those between the same ranks take like times.
class Lateness {
public:
  void begin() {
    // Only long rows tell how fast a link is: a short one may pass in what it lets through at once.
    if (bytes - bytesOfFirst >= kTelling)
      nsOfByteBefore = nsOfByteBefore > 0 ? std::min(nsOfByteBefore, nsOfByte) : nsOfByte;
    bytes = bytesOfFirst = bytesOfLast = 0;
  }
  /// One more is done, of so many bytes.
  void note(int64_t bytesOfMessage) {
    const int64_t now = nowNs();
    if (bytes == 0) {
      firstNs = now;
      bytesOfFirst = bytesOfMessage;
    }
    bytes += bytesOfMessage;
    bytesOfLast = bytesOfMessage;
    if (bytes > bytesOfFirst)
      nsOfByte = static_cast<double>(now - firstNs) / static_cast<double>(bytes - bytesOfFirst);
  }
  /// In ns, when they have so many bytes in all: a part of the time that the others take, as those
  /// that are done have taken it since the first one, and at most that of as many bytes as the
  /// kernel keeps in any case, so that no link idles. With the last message it is a smaller part of
  /// what that takes, or of what all take, so that the end is hardly late. As long as fewer than
  /// two are done, the fastest row before tells how long they take; 0 if there is none.
  int64_t latenessNs(int64_t bytesOfAll) const {
    constexpr double kPart = 4, kPartOfLast = 16, kPartOfAll = 512, kKept = 256 << 10;
    if (bytes >= bytesOfAll)
      return 0;
    const auto all = static_cast<double>(bytesOfAll), left = all - static_cast<double>(bytes);
    const double each = bytes > bytesOfFirst ? nsOfByte : nsOfByteBefore;
    const double before = left - static_cast<double>(bytesOfLast);
    const double part = std::max({before / kPart, left / kPartOfLast, all / kPartOfAll});
    return static_cast<int64_t>(each * std::min(part, kKept));
  }

private:
  static constexpr int64_t kTelling = 1 << 20;
  int64_t bytes = 0, bytesOfFirst = 0, bytesOfLast = 0, firstNs = 0;
  double nsOfByte = 0;       ///< of those behind the first one
  double nsOfByteBefore = 0; ///< of the fastest row before that tells; 0: none
};

} // namespace braid::runtime::net
#endif // BRAID_NET_LATENESS_H
