//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMDECODER_H
#define BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMDECODER_H

#include "RandomBert.h"

namespace braid::test {

/// A small decoder of LLaMA's form, and a mesh and strategy to cut it: heads and feed-forward
/// dimensions need not divide over the mesh.
struct RandomDecoder {
  int64_t layers = 1, groups = 1, groupSize = 1, headDim = 2, hidden = 4, ffn = 4, vocab = 4;
  int64_t batch = 1, seq = 2;
  int64_t dp = 1, tp = 1;
  bool bias = false, tied = false, mask = false;
  /// Whether its products have roles, or are cut by their place.
  bool roles = true;
  std::string strategy;

  std::string mesh() const { return "dp=" + std::to_string(dp) + ",tp=" + std::to_string(tp); }
  bool isPadded() const { return strategy != "dp" && (groups % tp != 0 || ffn % tp != 0); }
  std::string describe() const;
};

RandomDecoder drawDecoder(Random &random);
/// The module at the nn level, without mesh and shardings.
std::string buildModule(const RandomDecoder &decoder);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMDECODER_H
