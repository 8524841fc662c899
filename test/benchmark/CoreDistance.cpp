//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How far the cores of ranks are from each other at the moment, a line of JSON; with what is usual,
// it waits until they are as near. For benchmarks that compare figures of several moments.
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Sync/CoreDistance.h"

#include <cstdio>
#include <cstdlib>

using namespace braid::runtime;

int main(int argc, char **argv) {
  const long ranks = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 0;
  const double usual = argc > 2 ? std::strtod(argv[2], nullptr) : 0;
  const double most = argc > 3 ? std::strtod(argv[3], nullptr) : 0;
  if (argc == 3 || argc > 4 || ranks < 2 || (argc > 2 && !(usual > 0 && most >= 0))) {
    std::fprintf(stderr, "usage: BraidCoreDistance RANKS [USUAL_SECONDS MOST_SECONDS_TO_WAIT]\n");
    return 1;
  }
  if (allowedCores().size() < static_cast<size_t>(ranks)) {
    std::fprintf(stderr, "core distance: error: %ld ranks expect as many cores, got %zu\n", ranks,
                 allowedCores().size());
    return 1;
  }
  Result<Pinning> pinning = Pinning::create(ranks, 1);
  if (!pinning.ok()) {
    std::fprintf(stderr, "core distance: error: %s\n", pinning.status().message().c_str());
    return 1;
  }
  double seconds = 0;
  if (argc > 2) {
    CoreWatch watch(std::move(*pinning), usual, most);
    watch.await();
    seconds = watch.last();
  } else {
    seconds = coreToCoreSeconds(*pinning);
  }
  std::printf("{\"core_to_core_seconds\":%.3g,\"is_usual\":%s}\n", seconds,
              argc <= 2 || CoreWatch::areAlike(seconds, usual) ? "true" : "false");
  return 0;
}
