//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Processes of one host that share arenas.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_ARENATESTING_H
#define BRAID_TEST_UNIT_RUNTIME_ARENATESTING_H

#include "ProcessTesting.h"
#include "runtime/lib/Net/ArenaExchange.h"

namespace braid::runtime::net::testing {

using braid::runtime::testing::Board;

/// Keys are of one start, so a test that runs beside another has its own.
inline ArenaOptions optionsOf(const Board &board, int64_t rank, std::vector<int64_t> ranks,
                              double limit = 20) {
  ArenaOptions options;
  options.key = board.path("key");
  options.rank = rank;
  options.ranks = std::move(ranks);
  options.timeLimitSeconds = limit;
  return options;
}

inline std::string text(const Status &status) { return status.ok() ? "done" : status.message(); }

} // namespace braid::runtime::net::testing
#endif // BRAID_TEST_UNIT_RUNTIME_ARENATESTING_H
