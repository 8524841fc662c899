//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random kernels over rows.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_TARGET_CUDA_RANDOMROWS_H
#define BRAID_TEST_UNIT_TARGET_CUDA_RANDOMROWS_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace braid::test {

/// Generates one random rt.kernel: elementwise maps, row reductions and maps of their results, on
/// one or two row dimensions, with values stored as `element` or f32. Values stay within a few
/// units and nothing cancels, so that results can be compared by their relative L2 distance.
class RandomRows {
public:
  RandomRows(std::mt19937_64 &random, std::string element, int64_t columns);
  std::string text(const std::string &name);

private:
  enum class Kind { Full, Row, Column, Inner };
  struct Value {
    std::string name;
    Kind kind;
    std::string element;
  };

  uint64_t draw(uint64_t count) { return random() % count; }
  const Value &pick(bool alongColumn);
  std::string type(Kind kind, const std::string &element) const;
  std::string map(Kind kind, bool reduces) const;
  /// Adds an op over `inputs`, whose scalar code ends in %y.
  Value add(Kind kind, const std::string &element, const std::vector<Value> &inputs,
            const std::string &code, const std::string &init, bool reduces);
  void addMap();
  void addReduction();
  void addRowMap();
  /// Scalar code that combines the widened values %w0 ... into %y.
  std::string combine(size_t count);

  std::mt19937_64 &random;
  std::string element;
  int64_t columns;
  bool twoRowDims = false;
  std::vector<Value> values;
  std::string body;
  int numbers = 0;
};

} // namespace braid::test
#endif // BRAID_TEST_UNIT_TARGET_CUDA_RANDOMROWS_H
