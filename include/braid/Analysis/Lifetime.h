//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_ANALYSIS_LIFETIME_H
#define BRAID_ANALYSIS_LIFETIME_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace braid {

/// The time in which some commands run, in numbers of ended commands of each queue: `first` have
/// ended when the first of them begins, and they are all done once `last` have ended.
struct Lifetime {
  std::vector<int64_t> first, last;

  /// Of no commands: before and after every other one.
  explicit Lifetime(size_t queues)
      : first(queues, std::numeric_limits<int64_t>::max()), last(queues, 0) {}
  Lifetime(std::vector<int64_t> first, std::vector<int64_t> last)
      : first(std::move(first)), last(std::move(last)) {}

  void extend(const Lifetime &other) {
    for (size_t queue = 0; queue < first.size(); ++queue) {
      first[queue] = std::min(first[queue], other.first[queue]);
      last[queue] = std::max(last[queue], other.last[queue]);
    }
  }
  bool endsBefore(const Lifetime &other) const {
    for (size_t queue = 0; queue < last.size(); ++queue)
      if (last[queue] > other.first[queue])
        return false;
    return true;
  }
};

} // namespace braid
#endif // BRAID_ANALYSIS_LIFETIME_H
