//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sums that go around the caches have the bits of others, and write nothing else. Sources lie at
// any address.
//
//===----------------------------------------------------------------------===//
#include "LibraryCallsTesting.h"

#include <cstring>
#include <random>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr int kKinds = 3; // sum, max, min

/// Numbers of every size below 2; the bits of a NaN are any.
std::vector<std::byte> numbers(DType dtype, size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count * static_cast<size_t>(byteSize(dtype)));
  for (std::byte &byte : bytes)
    byte = static_cast<std::byte>(random());
  // The upper half of the exponents is left out.
  const auto size = static_cast<size_t>(byteSize(dtype));
  for (size_t last = size - 1; !isInteger(dtype) && last < bytes.size(); last += size)
    bytes[last] &= std::byte(0xBF);
  return bytes;
}

TEST(ReduceKernels, PastCachesGivesTheSameBits) {
  // Of a line of the caches: none, parts, several, and what is left over.
  const std::vector<int64_t> counts = {0, 1, 15, 16, 17, 63, 64, 65, 1000, 4099};
  constexpr size_t kGuard = 64;
  for (const VectorKernels *kernels : allKernels())
    for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i8})
      for (int kind = 0; kind < kKinds; ++kind)
        for (int sources = 1; sources <= 5; ++sources)
          for (int64_t count : counts)
            for (int64_t shift : {0, 1, 5}) {
              const auto size = static_cast<size_t>(byteSize(dtype));
              const auto elements = static_cast<size_t>(count + shift);
              std::vector<std::vector<std::byte>> values;
              std::vector<const void *> from;
              for (int s = 0; s < sources; ++s) {
                values.push_back(numbers(dtype, elements + 1, static_cast<unsigned>(s + 1)));
                // Each at another distance from a line.
                from.push_back(values.back().data() + size * static_cast<size_t>((shift + s) % 2));
              }
              std::vector<std::byte> expected(elements * size + kGuard, std::byte(7)),
                  got = expected;
              const size_t at = static_cast<size_t>(shift) * size;
              kernels->reduce(kind, static_cast<int>(dtype), expected.data() + at, from.data(),
                              sources, count);
              kernels->reducePastCaches(kind, static_cast<int>(dtype), got.data() + at, from.data(),
                                        sources, count);
              ASSERT_EQ(std::memcmp(expected.data(), got.data(), got.size()), 0)
                  << kernels->isa << ", " << name(dtype) << ", kind " << kind << ", " << sources
                  << " sources of " << count << ", shifted by " << shift;
            }
}

TEST(ReduceKernels, SourcesLieAtAnyAddress) {
  constexpr size_t kCount = 1003;
  for (const VectorKernels *kernels : allKernels())
    for (DType dtype :
         {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64, DType::i8})
      for (int sources = 1; sources <= 5; ++sources)
        for (size_t shift = 1; shift < 8; ++shift) {
          const size_t bytes = kCount * static_cast<size_t>(byteSize(dtype));
          std::vector<std::vector<std::byte>> values, shifted;
          std::vector<const void *> from, fromShifted;
          for (int s = 0; s < sources; ++s) {
            values.push_back(numbers(dtype, kCount, static_cast<unsigned>(s + 1)));
            shifted.emplace_back(bytes + 16);
            std::byte *at = shifted.back().data() + (shift + static_cast<size_t>(s)) % 16;
            std::memcpy(at, values.back().data(), bytes);
            from.push_back(values.back().data());
            fromShifted.push_back(at);
          }
          std::vector<std::byte> expected(bytes), got(bytes), past(bytes);
          kernels->reduce(0, static_cast<int>(dtype), expected.data(), from.data(), sources,
                          kCount);
          kernels->reduce(0, static_cast<int>(dtype), got.data(), fromShifted.data(), sources,
                          kCount);
          kernels->reducePastCaches(0, static_cast<int>(dtype), past.data(), fromShifted.data(),
                                    sources, kCount);
          ASSERT_TRUE(expected == got && expected == past)
              << kernels->isa << ", " << name(dtype) << ", " << sources << " sources, shifted by "
              << shift;
        }
}

} // namespace
