//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Small random models, with a random mesh and a sharding plan.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMMODEL_H
#define BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMMODEL_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace braid::test {

using Random = std::mt19937_64;

/// A transformer like BERT, GPT-2 or LLaMA, or a mixture of them.
struct RandomModel {
  int64_t layers = 1, kvHeads = 1, groupSize = 1, headDim = 2, hidden = 2, ffn = 4, vocab = 3;
  int64_t batch = 1, seq = 1;
  /// Whether attention and feed-forward are each normalized after the addition of the residual.
  /// Otherwise their inputs are normalized, and so is the result of the last layer.
  bool postNorm = false;
  bool rmsNorm = false, gated = false, rotary = false, positions = false, biases = false;
  bool causal = false, mask = false, validLength = false, positionOffset = false;
  bool narrow = false; ///< whether integer operands are i32
  /// Whether attention and feed-forward have the same input and their results are added.
  bool parallel = false;
  /// Whether the result is logits over the vocabulary, and whether their weight is that of the
  /// embedding.
  bool head = false, tied = false;
  /// Whether matmuls have roles; without roles they are sharded by propagation. `wordRole`: whether
  /// the embedding has one.
  bool roles = true, wordRole = false;
  /// Features that only the interpreter supports: experts instead of the feed-forward (0: none), of
  /// which each token uses `top`; dropout after the embedding; the loss for given labels as the
  /// result.
  int64_t experts = 0, top = 1;
  bool dropout = false, loss = false;
  /// Whether the feed-forward is computed in two uneven parts of the batch or the sequence, and the
  /// last dimension of a layer's result is rotated.
  bool parts = false;

  int64_t dp = 1, tp = 1;
  /// Whether the module contains the mesh, with this order of ranks (empty: default order).
  /// Otherwise options specify the mesh.
  bool meshInModule = true;
  std::vector<int64_t> order;
  /// The strategy; empty for random shardings of the weights, some over sub-axes.
  std::string strategy = "auto";

  int64_t heads() const { return kvHeads * groupSize; }
  std::string mesh() const { return "dp=" + std::to_string(dp) + ",tp=" + std::to_string(tp); }
  /// Whether a strategy shards heads or a feed-forward dimension that tp does not divide.
  bool isPadded() const {
    return !strategy.empty() && strategy != "dp" && (kvHeads % tp != 0 || ffn % tp != 0);
  }
  bool hasPaddedVocabulary() const {
    return head && vocab % tp != 0 &&
           (strategy == "auto" || strategy.find("vocab") != std::string::npos);
  }
  /// Whether a strategy splits a sequence, or a batch, that its axis does not divide.
  bool hasPaddedSequence() const {
    return strategy.find("sp") != std::string::npos && seq % tp != 0;
  }
  bool hasPaddedBatch() const {
    return (strategy == "auto" || strategy.find("dp") != std::string::npos) && batch % dp != 0;
  }
  /// Describes the case in one line.
  std::string describe() const;
};

/// Options of the random model.
struct ModelKind {
  /// Whether normalizations are placed as in BERT, otherwise as in causal decoders.
  bool encoder = false;
  enum Plan {
    Auto,      ///< strategy auto; tp may not divide heads and feed-forward
    Strategy,  ///< a random strategy, for a decoder with a head
    Shardings, ///< random shardings
  } plan = Auto;
  /// Adds operations that only the interpreter supports; all dimensions divide.
  bool reference = false;
  /// Computes half of the models in parts.
  bool parts = false;
  /// Gives half of the models a batch and a sequence of any size, which the mesh need not divide.
  bool anyRows = false;
};

RandomModel drawModel(Random &random, const ModelKind &kind);
/// The module at the nn level.
std::string buildModule(const RandomModel &model, Random &random);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMMODEL_H
