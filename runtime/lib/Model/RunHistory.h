//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a session remembers of its runs, in memory that does not grow with their number.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_MODEL_RUNHISTORY_H
#define BRAID_MODEL_RUNHISTORY_H

#include "runtime/lib/Executor/Executor.h"

namespace braid::runtime {

struct RunRecord {
  uint64_t number = 0; ///< of the run, from 0
  int64_t ns = 0;
  PerRank<RankTimes> ranks;
};

class RunHistory {
public:
  /// The number of runs whose times are kept; times of collectives are kept for fewer runs where
  /// there are many collectives.
  static constexpr size_t kTimes = 4096, kDetailBytes = size_t(1) << 20;

  void add(int64_t ns, const PerRank<std::unique_ptr<Rank>> &ranks);
  void clear() { runs = 0; }

  uint64_t count() const { return runs; }
  int64_t leastNs() const { return runs == 0 ? 0 : least; }
  /// The times of the runs that are kept, the oldest first.
  std::vector<int64_t> times() const;
  /// The run of median time among those whose collectives are kept; null when there is none.
  const RunRecord *typical() const;
  /// The run of this number or, where its collectives are not kept, the one of the closest number;
  /// null when there is none.
  const RunRecord *closest(uint64_t number) const;

private:
  uint64_t runs = 0;
  int64_t least = 0;
  std::vector<int64_t> ring;
  std::vector<RunRecord> details;
};

/// The q-th quantile of some numbers, 0 <= q <= 1, interpolated linearly; 0 for no numbers.
double quantile(std::vector<int64_t> numbers, double q);

} // namespace braid::runtime
#endif // BRAID_MODEL_RUNHISTORY_H
