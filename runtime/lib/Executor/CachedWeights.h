//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What products find in the caches of what runs before have used.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXECUTOR_CACHEDWEIGHTS_H
#define BRAID_EXECUTOR_CACHEDWEIGHTS_H

#include "CommandTimes.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace braid::runtime {

/// A run follows one like it, so a product's weights were last used as many bytes ago as a run of
/// the rank uses. A right side that the run has computed was used just before.
class CachedWeights {
public:
  void noteUse(const std::byte *begin, size_t bytes);
  /// Of a call that is a queue's next command. `readsWeights`: whether the right side of a product
  /// is an argument of the entry.
  void noteUse(const LibraryArguments &call, Queue queue, size_t command, bool readsWeights);
  /// Takes from the estimates, by queue and command, what is saved.
  void shorten(std::vector<std::vector<RankProgram::Estimate>> &estimates,
               const CommandTimes &times) const;

private:
  struct Product {
    Queue queue;
    size_t command;
    LibraryCall call;
    bool readsWeights;
  };
  /// Of all ranges, each byte counted once.
  size_t usedBytes() const;

  std::vector<std::pair<uintptr_t, uintptr_t>> ranges; ///< [begin, end)
  std::vector<Product> products;
};

} // namespace braid::runtime
#endif // BRAID_EXECUTOR_CACHEDWEIGHTS_H
