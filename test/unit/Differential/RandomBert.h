//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMBERT_H
#define BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMBERT_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace braid::test {

/// A small encoder with everything that may vary drawn at random.
struct RandomBert {
  int64_t layers = 1, heads = 1, kvHeads = 1, headDim = 2, seq = 1, batch = 1, ffn = 4, vocab = 3;
  int64_t dp = 1, tp = 1;
  std::vector<int64_t> order; ///< of the mesh; empty for none
  bool mask = false, validLength = false, causal = false, positionOffset = false;
  /// Shardings are drawn at random for the weights, instead of those of a strategy.
  bool randomShardings = false;

  int64_t hidden() const { return heads * headDim; }
  /// One line that tells the case.
  std::string describe() const;
};

using Random = std::mt19937_64;

RandomBert drawBert(Random &random, bool randomShardings);
/// The module at the nn level, with its mesh and, if they are random, its shardings.
std::string buildModule(const RandomBert &bert, Random &random);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMBERT_H
