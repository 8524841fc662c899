//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Memory of tensors and payloads whose surroundings must not change, and calls of the CPU's codec,
// for tests of kernels that encode and decode.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_TARGET_CUDA_CODECMEMORY_H
#define BRAID_TEST_UNIT_TARGET_CUDA_CODECMEMORY_H

#include "braid/Base/StatusMacros.h"
#include "test/unit/Runtime/CodecTesting.h"

namespace braid::runtime::testing {

/// The same call by the CPU's codec. Its error is the one of a command without a name.
inline Status runOnCpu(const LibraryArguments &a) {
  CpuResources resources;
  resources.threads = 1;
  ASSIGN_OR_RETURN(const LibraryCommand command, resolveLibrary(a, resources));
  Bench bench(1, vectorKernels());
  command->run(Command(), bench.context);
  return bench.control.failed() ? bench.control.failure() : Status();
}
inline std::string ofCpu(const std::string &message) {
  return "rank 0: " + describe(Command()) + ": " + message;
}

/// Bytes at an address that is `over` beyond a multiple of 64. Those around them must not change.
class GuardedBytes {
public:
  GuardedBytes(size_t size, size_t over) : memory(size + 192, 0xEE) {
    const size_t misaligned = reinterpret_cast<uintptr_t>(memory.data()) % 64;
    begin = 64 + (64 - misaligned) % 64 + over;
  }
  uint8_t *data() { return memory.data() + begin; }
  std::byte *bytes() { return reinterpret_cast<std::byte *>(data()); }
  /// Where the same bytes are in both, with what surrounds them.
  std::vector<uint8_t> all() const {
    return {memory.begin() + static_cast<std::ptrdiff_t>(begin) - 64, memory.end() - 64};
  }

private:
  std::vector<uint8_t> memory;
  size_t begin;
};

inline std::string differenceOf(const GuardedBytes &got, const GuardedBytes &expected) {
  const std::vector<uint8_t> a = got.all(), b = expected.all();
  size_t count = std::min(a.size(), b.size());
  for (size_t i = 0; i < count; ++i)
    if (a[i] != b[i])
      return "byte " + std::to_string(static_cast<int64_t>(i) - 64) + " is " +
             std::to_string(a[i]) + " instead of " + std::to_string(b[i]);
  return {};
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_TARGET_CUDA_CODECMEMORY_H
