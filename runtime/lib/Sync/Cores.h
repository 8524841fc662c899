//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Assigns threads to cores.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_CORES_H
#define BRAID_SYNC_CORES_H

#include "braid/Base/Status.h"

#include <cstdint>
#include <vector>

namespace braid::runtime {

/// The cores that the calling thread may use, in increasing order; empty where the system does not
/// report them.
std::vector<int> allowedCores();

/// A core for each thread that computes. The thread that communicates for a rank has the choice of
/// the rank's.
class Pinning {
public:
  /// Nothing is pinned.
  Pinning() = default;
  /// The first cores of those allowed. Fails when there are too few.
  static Result<Pinning> create(int64_t ranks, int64_t threadsPerRank);

  /// Pins the calling thread to the core of a member of a rank's team.
  void pinMember(int64_t rank, int64_t member) const;
  /// Pins the calling thread to all cores of a rank.
  void pinRank(int64_t rank) const;
  const std::vector<int> &cores() const { return all; }

private:
  void pin(int64_t first, int64_t count) const;

  std::vector<int> all; ///< threadsPerRank for each rank
  int64_t threads = 1;
};

} // namespace braid::runtime
#endif // BRAID_SYNC_CORES_H
