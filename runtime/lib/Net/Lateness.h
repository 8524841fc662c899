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
class Lateness {
public:
  void begin() { bytes = bytesOfFirst = 0; }
  /// One more is done, of so many bytes.
  void note(int64_t bytesOfMessage) {
    if (bytes == 0) {
      firstNs = nowNs();
      bytesOfFirst = bytesOfMessage;
    }
    bytes += bytesOfMessage;
  }
  /// In ns, when they have so many bytes in all: a part of the time that the others take, as those
  /// that are done have taken it since the first one, and at most that of as many bytes as the
  /// kernel keeps in any case, so that no link idles. With the last message it is a part of what
  /// that takes, so that the end is hardly late. 0 as long as fewer than two are done.
  int64_t latenessNs(int64_t bytesOfAll) const {
    constexpr double kPart = 16, kKept = 256 << 10;
    if (bytes <= bytesOfFirst || bytes >= bytesOfAll)
      return 0;
    const double nsOfByte =
        static_cast<double>(nowNs() - firstNs) / static_cast<double>(bytes - bytesOfFirst);
    const double left = static_cast<double>(bytesOfAll - bytes);
    return static_cast<int64_t>(nsOfByte * std::min(left / kPart, kKept));
  }

private:
  int64_t bytes = 0, bytesOfFirst = 0, firstNs = 0;
};

} // namespace braid::runtime::net
#endif // BRAID_NET_LATENESS_H
