//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_LASTLEVELCACHE_H
#define BRAID_BASE_LASTLEVELCACHE_H

#include <cstdint>

namespace braid::runtime {

/// Bytes of this host's last-level cache; 0 where the system does not tell. A virtual machine may
/// tell of that of a whole socket, of which it has a part.
int64_t lastLevelCacheBytes();

} // namespace braid::runtime
#endif // BRAID_BASE_LASTLEVELCACHE_H
