//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Cost/LinkBurst.h"

#include "Testing.h"

#include <gtest/gtest.h>

using namespace braid::cost;

namespace {

/// 100 MB/s, and 50 kB at once that pass at 1 GB/s: of a longer message the rest waits.
Link shaped() {
  Link link;
  link.latencySeconds = 1e-5;
  link.bytesPerSecond = 1e8;
  for (const int64_t bytes : {1000, 10000, 50000, 100000, 1000000, 64000000}) {
    const double waits = std::max(0.0, static_cast<double>(bytes) - 5e4) / 1e8;
    const double passes = std::min(5e4, static_cast<double>(bytes)) / 1e9;
    link.messages.push_back({bytes, 1e-5 + passes + waits});
  }
  return link;
}

/// What a collective takes that sends in one step, over a link that is busy.
double busySeconds(const Link &link, double bytes) {
  return link.latencySeconds + bytes / link.bytesPerSecond;
}

} // namespace

TEST(LinkBurst, OfMeasuredMessages) {
  const Link link = shaped();
  // 50 kB take 50 us, in which 5 kB would have passed; and so exact is a bandwidth.
  EXPECT_NEAR(burstBytes(link), 45000, 0.003 * 100000);
  EXPECT_NEAR(burstGain(link, 1e4), 1e-4 - 1e-5, 1e-12);
  EXPECT_NEAR(burstGain(link, 5e4), 5e-4 - 5e-5, 1e-12);
  EXPECT_NEAR(burstGain(link, 1e6), 5e-4 - 5e-5, 1e-12);
  EXPECT_EQ(burstGain(link, 0), 0);
  // A link that passes all bytes at the same rate has none, nor one whose messages are slower.
  Link plain = shaped();
  for (MessagePoint &point : plain.messages)
    point.seconds = 1e-5 + static_cast<double>(point.bytes) / 1e8;
  EXPECT_EQ(burstBytes(plain), 0);
  EXPECT_NEAR(burstGain(plain, 1e6), 0, 1e-12);
  for (MessagePoint &point : plain.messages)
    point.seconds *= 2;
  EXPECT_EQ(burstBytes(plain), 0);
  EXPECT_EQ(burstGain(plain, 1e6), 0);
  plain.messages.clear();
  EXPECT_EQ(burstBytes(plain), 0);
  EXPECT_EQ(burstGain(plain, 1e6), 0);
}

// What a message of an exchange arrives later than its last byte has left.
TEST(LinkBurst, LatencyOfExchanges) {
  Link link = shaped();
  EXPECT_EQ(exchangeLatency(link, 8), 1e-5); // none was measured
  link.exchanges = {{8, 2e-5}, {1000, 2.1e-5}, {10000, 8e-5}};
  EXPECT_NEAR(exchangeLatency(link, 1), 2e-5 - 1e-6, 1e-12); // as the shortest message takes
  EXPECT_NEAR(exchangeLatency(link, 1000), 2e-5, 1e-12);
  EXPECT_NEAR(exchangeLatency(link, 10000), 7e-5, 1e-12);
  EXPECT_NEAR(exchangeLatency(link, 5500), (2.1e-5 + 8e-5) / 2 - 5.5e-6, 1e-12);
  EXPECT_NEAR(exchangeLatency(link, 1e6), 7e-5, 1e-12); // that of the longest
  link.exchanges = {{8, 9e-6}};                         // never less than that of a message
  EXPECT_EQ(exchangeLatency(link, 8), 1e-5);
  link.messages.clear();
  link.exchanges = {{1000, 3e-5}};
  EXPECT_NEAR(exchangeLatency(link, 1000), 2e-5, 1e-12); // what 1000 bytes take longer
}

// Where a processor takes longer for an exchange than the link for its bytes, that bounds a chain.
TEST(LinkBurst, AChainIsNoFasterThanAProcessor) {
  Link link = shaped();
  link.exchanges = {{8, 2e-5}, {2000, 3e-5}, {10000, 5e-5}};
  for (const double bytes : {2000.0, 10000.0}) {
    LinkBurst burst;
    double now = 0, last = 0;
    for (int i = 0; i < 300; ++i) {
      last =
          burst.pass(link, bytes, now, bytes / link.bytesPerSecond + exchangeLatency(link, bytes));
      now += last;
    }
    const double expected = std::max(bytes / link.bytesPerSecond, bytes == 2000 ? 3e-5 : 5e-5);
    EXPECT_NEAR(last, expected, 1e-3 * expected) << bytes;
  }
}

// One collective behind the other takes what the bandwidth takes, and no latency besides: the link
// passes the bytes of the next one while the last bytes of this one arrive.
TEST(LinkBurst, AChainIsAsFastAsTheBandwidth) {
  const Link link = shaped();
  LinkBurst burst;
  double now = 0, last = 0;
  for (int i = 0; i < 100; ++i) {
    last = burst.pass(link, 1e4, now, busySeconds(link, 1e4));
    now += last;
  }
  EXPECT_NEAR(last, 1e4 / link.bytesPerSecond, 1e-3 * last);
  // Those that send little take as long as over an idle link: the latency passes more.
  for (int i = 0; i < 100; ++i) {
    last = burst.pass(link, 1000, now, busySeconds(link, 1000));
    now += last;
  }
  EXPECT_NEAR(last, link.messages[0].seconds, 1e-12);
}

TEST(LinkBurst, GrowsWhileTheLinkIsIdle) {
  const Link link = shaped();
  const double busy = busySeconds(link, 1e5);
  LinkBurst burst;
  EXPECT_EQ(burst.pass(link, 1e5, 0, busy), busy);
  // 0.2 ms later as many bytes pass at once as the bandwidth passes meanwhile, and in the latency.
  const double some = burst.pass(link, 1e5, busy + 2e-4, busy);
  EXPECT_NEAR(some, busy - burstGain(link, 2.1e4), 1e-9);
  // After long, a burst and no more.
  EXPECT_NEAR(burst.pass(link, 1e5, 10, busy), busy - burstGain(link, burstBytes(link)), 1e-12);
}

TEST(LinkBurst, RunsFollowEachOther) {
  const Link link = shaped();
  const double busy = busySeconds(link, 1e5);
  LinkBurst burst;
  // No link was used.
  EXPECT_FALSE(burst.beginRun(1));
  // A run that computes for 0.1 ms behind its collective leaves 10 kB and those of the latency; the
  // next ones more, as the collective is shorter then, until all is as it stays.
  double took = 0;
  int runs = 1;
  for (;; ++runs) {
    took = burst.pass(link, 1e5, 0, busy);
    if (!burst.beginRun(took + 1e-4))
      break;
    ASSERT_LT(runs, 20);
  }
  EXPECT_GT(runs, 1);
  const double left = (took + 1e-4) * link.bytesPerSecond;
  EXPECT_NEAR(left, 1e5, 0.01 * 1e5); // what a run sends
}
