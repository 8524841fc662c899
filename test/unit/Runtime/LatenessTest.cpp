//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Net/Lateness.h"
#include "ProcessTesting.h"

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::testing;

namespace {

TEST(Lateness, IsAPartOfTheTimeThatIsLeft) {
  constexpr int64_t kBytes = 1000;
  Lateness lateness;
  lateness.begin();
  EXPECT_EQ(lateness.latenessNs(100 * kBytes), 0);
  const int64_t before = nowNs();
  lateness.note(kBytes);
  const int64_t after = nowNs();
  EXPECT_EQ(lateness.latenessNs(100 * kBytes), 0);
  sleepFor(0.01);
  for (int i = 1; i < 49; ++i)
    lateness.note(kBytes);
  // 49 messages took the time since the first one.
  const int64_t least = (nowNs() - after) / 49;
  lateness.note(kBytes);
  const int64_t of50 = lateness.latenessNs(100 * kBytes), ofOne = lateness.latenessNs(51 * kBytes);
  // At most the time of 256 KiB.
  const int64_t ofMany = lateness.latenessNs(kBytes << 20);
  const int64_t most = (nowNs() - before) / 49 + 1;
  EXPECT_GE(of50, least * 49 / 4);
  EXPECT_LE(of50, most * 49 / 4 + 1);
  // Of the last one it is a part of what all 51 take.
  EXPECT_GE(ofOne, least * 51 / 512);
  EXPECT_LE(ofOne, most * 51 / 512 + 1);
  EXPECT_GE(ofMany, least * 262);
  EXPECT_LE(ofMany, most * 263);
  EXPECT_EQ(lateness.latenessNs(50 * kBytes), 0);
  lateness.begin();
  EXPECT_EQ(lateness.latenessNs(100 * kBytes), 0);
}

TEST(Lateness, OfTheLastOfFewMessagesIsASmallPartOfIt) {
  constexpr int64_t kBytes = 1 << 18;
  Lateness lateness;
  lateness.begin();
  const int64_t before = nowNs();
  lateness.note(kBytes);
  const int64_t after = nowNs();
  sleepFor(0.01);
  lateness.note(kBytes);
  const int64_t least = (nowNs() - after) / 2;
  lateness.note(kBytes);
  const int64_t ofLast = lateness.latenessNs(4 * kBytes), ofTwo = lateness.latenessNs(5 * kBytes);
  const int64_t most = (nowNs() - before) / 2 + 1;
  EXPECT_GE(ofLast, least / 16);
  EXPECT_LE(ofLast, most / 16 + 1);
  EXPECT_GE(ofTwo, least / 4);
  EXPECT_LE(ofTwo, most / 4 + 1);
}

TEST(Lateness, OfTheFirstMessagesIsThatOfTheFastestLongRowBefore) {
  constexpr int64_t kMessage = 1 << 20, kAll = 32 * kMessage;
  Lateness lateness;
  // A row of two messages, the second of which takes so long at least; the most that it can take.
  auto takeRow = [&](int64_t bytes, double seconds) {
    lateness.begin();
    const int64_t before = nowNs();
    lateness.note(bytes);
    sleepFor(seconds);
    lateness.note(bytes);
    return nowNs() - before;
  };
  takeRow(kMessage / 2, 0.01); // too short to tell
  lateness.begin();
  EXPECT_EQ(lateness.latenessNs(kAll), 0);
  takeRow(kMessage, 0.1);
  const int64_t most = takeRow(kMessage, 0.02);
  takeRow(kMessage, 0.1);
  lateness.begin();
  const int64_t ofNone = lateness.latenessNs(kAll);
  EXPECT_GE(ofNone, 20000000 / 4);
  EXPECT_LE(ofNone, most / 4 + 1);
  lateness.note(kMessage);
  EXPECT_EQ(lateness.latenessNs(kAll), ofNone);
  // Where little is left, a part of the time of all.
  EXPECT_LE(lateness.latenessNs(kMessage + 4096), (most + most / 256) / 512 + 1);
}

} // namespace
