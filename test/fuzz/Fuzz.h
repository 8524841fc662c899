//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by the fuzz targets: their two entry points, random numbers for mutators, and mutations
// that keep JSON valid.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_FUZZ_FUZZ_H
#define BRAID_TEST_FUZZ_FUZZ_H

#include "braid/Runtime/Files.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

/// Runs one input. Rejecting bad input is fine; ending the process is a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/// Mutates an input in place and returns its new size. The result stays well-formed.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed);
/// libFuzzer's own byte mutations.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace braid::fuzz {

/// A small and fast generator with the same sequence on every platform.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 2 + 1) {}
  uint64_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 29 ^ state >> 47;
  }
  /// A number below `bound`, which must be above 0.
  size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }
  bool oneIn(size_t n) { return below(n) == 0; }
  template <typename Container> auto &of(Container &container) {
    return container[below(std::size(container))];
  }

private:
  uint64_t state;
};

/// A number near `value`, or at a boundary that checks often have.
int64_t otherInteger(int64_t value, Random &random);

/// Mutates a few values of a document. Text that is not JSON is mutated as bytes.
std::string mutateJson(const std::string &text, Random &random);

/// libFuzzer's byte mutations, on a string.
std::string mutateText(const std::string &text, size_t maxSize);

/// Stores a mutator's result, or keeps the input when the result is too large.
inline size_t put(const void *result, size_t resultSize, uint8_t *data, size_t size,
                  size_t maxSize) {
  if (resultSize > maxSize)
    return size;
  const auto *bytes = static_cast<const uint8_t *>(result);
  for (size_t i = 0; i < resultSize; ++i)
    data[i] = bytes[i];
  return resultSize;
}

/// A folder in memory for readers that take a path. It is removed with the process.
class Folder {
public:
  Folder();
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  ~Folder();
  std::string path(const std::string &name) const { return folder + "/" + name; }
  /// Overwrites in place, since there is no concurrent reader.
  void put(const std::string &name, const void *data, size_t size) const;

private:
  std::string folder;
};

/// Ends the process, which is a finding, if a property of accepted input does not hold.
inline void require(bool holds, const std::string &what) {
  if (holds)
    return;
  std::fprintf(stderr, "property violated: %s\n", what.c_str());
  std::abort();
}

} // namespace braid::fuzz
#endif // BRAID_TEST_FUZZ_FUZZ_H
