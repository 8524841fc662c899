//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMTRANSFORMER_H
#define BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMTRANSFORMER_H

#include "RandomBert.h"

namespace braid::test {

/// A small decoder of the LLaMA and GPT-2 kind, normalized before each half of a layer, with
/// everything that may vary drawn at random.
struct RandomTransformer {
  int64_t layers = 1, heads = 1, kvHeads = 1, headDim = 2, seq = 1, batch = 1, ffn = 4, vocab = 3;
  int64_t dp = 1, tp = 1;
  bool rmsNorm = true, gated = true, rotary = true, biases = false, head = true;
  bool mask = false, positionOffset = false;
  /// What runs in the interpreter only: experts in place of the feed-forward (0: none), of which
  /// each token takes `top`; dropout after the embedding; the loss against labels as the result.
  int64_t experts = 0, top = 1;
  bool dropout = false, loss = false;
  /// Shardings are drawn at random for the weights, instead of those of a strategy; some cut over a
  /// part of an axis, where that has parts.
  bool randomShardings = false;

  int64_t hidden() const { return heads * headDim; }
  std::string describe() const;
};

/// `reference`: with operations that only the interpreter runs.
RandomTransformer drawTransformer(Random &random, bool randomShardings, bool reference = false);
std::string buildModule(const RandomTransformer &decoder, Random &random);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMTRANSFORMER_H
