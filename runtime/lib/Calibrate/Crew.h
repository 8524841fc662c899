//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Repeats a piece of work on several cores at the same time and measures it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CALIBRATE_CREW_H
#define BRAID_CALIBRATE_CREW_H

#include "braid/Base/Status.h"
#include "runtime/lib/Sync/CoreDistance.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace braid::runtime {

/// What one core repeats.
class Work {
public:
  virtual ~Work() = default;
  virtual void prepare() {} ///< before each repetition, not measured
  virtual void run() = 0;
};

struct Timing {
  /// Of a repetition: of each core the mean over the faster half of spans of a millisecond, or of
  /// one repetition where that is longer, and of these the mean over the cores. The least of many
  /// short repetitions would be less than what a model needs for its many.
  double seconds = 0;
};

/// How often work is repeated: as long as the time lasts, within these bounds.
struct Repetitions {
  double seconds = 0;
  int least = 1, most = 2000;
};

/// Some threads, each on a core of its own with memory of its own.
class Crew {
public:
  /// Uses the first `members` of the cores that this process may use. Several work while they are
  /// as near to each other as `coreToCore` says (CoreDistance.h), or as they ever were: those that
  /// share a cache also share its way to memory.
  static Result<std::unique_ptr<Crew>> create(int64_t members, size_t memoryBytes,
                                              std::optional<double> coreToCore = std::nullopt);

  int64_t members() const { return static_cast<int64_t>(memory.size()); }
  /// `make` makes the work of a member, in its thread, with its memory. Each member repeats its
  /// work until all have measured theirs, so that all cores are busy meanwhile. The first
  /// repetition does not count.
  using Make = std::function<Result<std::unique_ptr<Work>>(std::byte *memory)>;
  Result<Timing> measure(const Make &make, const Repetitions &repetitions);
  /// By how much the median of each of these was longer than the least, as a part of it: the median
  /// over all that was measured so often. Tells how quiet the host is.
  double spread() const;
  /// Times of one thing; less than three tell nothing.
  void addToSpread(const std::vector<double> &times);

private:
  /// Waits for them, some 50 times a second.
  void awaitCores();

  Pinning pinning;
  std::vector<HostMemory> memory;
  std::optional<CoreWatch> watch; ///< of several members
  std::chrono::steady_clock::time_point watchedAt;
  std::vector<double> spreads; ///< of each measurement
};

} // namespace braid::runtime
#endif // BRAID_CALIBRATE_CREW_H
