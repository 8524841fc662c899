//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs that end by their time limit, also on busy machines.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_LIMITTESTING_H
#define BRAID_TEST_UNIT_RUNTIME_LIMITTESTING_H

#include "Session.h"

#include <chrono>
#include <gmock/gmock.h>
#include <string>

namespace braid::runtime::testing {

inline constexpr double kFirstLimit = 0.3, kLastLimit = 15; ///< in seconds

/// Expects that `attempt(limit)`, a run that waits in vain, fails with a message that matches. On a
/// busy machine other ranks may exceed a short limit too, and the message then correctly names
/// those; so the limit grows until the machine cannot be the cause.
template <typename Attempt>
void expectRankFailed(const ::testing::Matcher<const std::string &> &message, Attempt attempt) {
  for (double limit = kFirstLimit;; limit *= 4) {
    Status failure = attempt(limit);
    const bool asExpected =
        failure.code() == Code::rankFailed && message.Matches(failure.message());
    if (!asExpected && limit < kLastLimit)
      continue;
    EXPECT_EQ(failure.code(), Code::rankFailed);
    EXPECT_THAT(failure.message(), message);
    return;
  }
}

/// Expects that `attempt(limit)`, in which no rank is delayed on purpose, succeeds, if necessary
/// with a longer limit.
template <typename Attempt> void expectOk(Attempt attempt) {
  Status status;
  for (double limit = kFirstLimit; limit < 4 * kLastLimit; limit *= 4)
    if ((status = attempt(limit)).ok())
      return;
  ADD_FAILURE() << status.message();
}

/// Like expectRankFailed, for each of `runs` runs of one session that `make(limit)` creates.
template <typename Make>
void expectRunsFail(const ::testing::Matcher<const std::string &> &message, int runs, Make make) {
  expectRankFailed(message, [&](double limit) {
    Result<std::unique_ptr<Session>> session = make(limit);
    Status failure = session.status();
    for (int i = 0; i < runs && session.ok(); ++i) {
      auto begin = std::chrono::steady_clock::now();
      failure = (*session)->run();
      std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      if (!message.Matches(failure.message()))
        break;
      EXPECT_GE(waited.count(), limit);
      EXPECT_LT(waited.count(), limit + 30);
    }
    return failure;
  });
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_LIMITTESTING_H
