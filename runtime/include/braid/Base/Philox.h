//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011. Header only: the interpreter's dropout and kernels use the
// same function.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_PHILOX_H
#define BRAID_BASE_PHILOX_H

#include <array>
#include <cstdint>

namespace braid::runtime {

inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                          std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53) * counter[0], b = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

} // namespace braid::runtime
#endif // BRAID_BASE_PHILOX_H
