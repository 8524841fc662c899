//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/LastLevelCache.h"

#include <algorithm>
#include <unistd.h>

namespace braid::runtime {

int64_t lastLevelCacheBytes() {
  // A virtual machine asks its hypervisor each time.
  static const int64_t bytes = std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE));
  return bytes;
}

} // namespace braid::runtime
