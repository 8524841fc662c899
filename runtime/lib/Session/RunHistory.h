//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a session remembers of its runs: as much after a million of them as after some thousands.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SESSION_RUNHISTORY_H
#define BRAID_SESSION_RUNHISTORY_H

#include "runtime/lib/Executor/Executor.h"

namespace braid::runtime {

struct RunRecord {
  int64_t ns = 0;
  std::vector<RankTimes> ranks;
};

class RunHistory {
public:
  /// Runs whose times are kept; of collectives those of fewer runs, if there are many.
  static constexpr size_t kTimes = 4096, kDetailBytes = size_t(1) << 20;

  void add(int64_t ns, const std::vector<std::unique_ptr<Rank>> &ranks);
  void clear() { runs = 0; }

  uint64_t count() const { return runs; }
  int64_t leastNs() const { return runs == 0 ? 0 : least; }
  /// Of the runs that are kept, the oldest first.
  std::vector<int64_t> times() const;
  /// The run of median time among those whose collectives are kept; null when there is none.
  const RunRecord *typical() const;

private:
  uint64_t runs = 0;
  int64_t least = 0;
  std::vector<int64_t> ring;
  std::vector<RunRecord> details;
};

/// The q-th quantile of some numbers, 0 <= q <= 1, between two of them where it falls there; 0 of
/// none.
double quantile(std::vector<int64_t> numbers, double q);

} // namespace braid::runtime
#endif // BRAID_SESSION_RUNHISTORY_H
