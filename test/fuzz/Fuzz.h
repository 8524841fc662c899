//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the fuzz targets share: their two entries, random numbers for their mutators, and changes of
// JSON that leave it JSON.
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

/// Runs one input. Bad input is an answer; an input that ends the process is a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/// Changes an input in place and gives its new size. With it inputs get past the checks on form.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed);
/// libFuzzer's own changes, of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace braid::fuzz {

/// Small, fast, and the same everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 2 + 1) {}
  uint64_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 29 ^ state >> 47;
  }
  /// Below `bound`, which is above 0.
  size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }
  bool oneIn(size_t n) { return below(n) == 0; }
  template <typename Container> auto &of(Container &container) {
    return container[below(std::size(container))];
  }

private:
  uint64_t state;
};

/// A number that is near `value`, or at one of the edges that checks tend to have.
int64_t otherInteger(int64_t value, Random &random);

/// Changes a few places of a document; text that is no JSON comes back changed as bytes.
std::string mutateJson(const std::string &text, Random &random);

/// What libFuzzer does to bytes, done to a string.
std::string mutateText(const std::string &text, size_t maxSize);

/// Puts a mutator's result where it belongs, or keeps the input when it is too large.
inline size_t put(const void *result, size_t resultSize, uint8_t *data, size_t size,
                  size_t maxSize) {
  if (resultSize > maxSize)
    return size;
  const auto *bytes = static_cast<const uint8_t *>(result);
  for (size_t i = 0; i < resultSize; ++i)
    data[i] = bytes[i];
  return resultSize;
}

/// A folder in memory for readers that want a path; goes away with the process.
class Folder {
public:
  Folder();
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  ~Folder();
  std::string path(const std::string &name) const { return folder + "/" + name; }
  /// Overwrites in place, as no reader is there meanwhile.
  void put(const std::string &name, const void *data, size_t size) const;

private:
  std::string folder;
};

/// A property of accepted input that does not hold is a finding too.
inline void require(bool holds, const std::string &what) {
  if (holds)
    return;
  std::fprintf(stderr, "property violated: %s\n", what.c_str());
  std::abort();
}

} // namespace braid::fuzz
#endif // BRAID_TEST_FUZZ_FUZZ_H
