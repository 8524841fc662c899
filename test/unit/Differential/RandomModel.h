//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Small random models, with a random mesh and plan to partition them.
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

/// A transformer of the BERT, GPT-2 or LLaMA kind, or of a mixture of them.
struct RandomModel {
  int64_t layers = 1, kvHeads = 1, groupSize = 1, headDim = 2, hidden = 2, ffn = 4, vocab = 3;
  int64_t batch = 1, seq = 1;
  /// Each half of a layer is normalized after its addition; otherwise before, and the last one
  /// after all layers.
  bool postNorm = false;
  bool rmsNorm = false, gated = false, rotary = false, positions = false, biases = false;
  bool causal = false, mask = false, validLength = false, positionOffset = false;
  bool narrow = false;   ///< these operands are of i32
  bool parallel = false; ///< attention and feed-forward side by side, what they give added up
  /// Logits over the vocabulary, by a weight of their own or that of the embedding.
  bool head = false, tied = false;
  /// Whether matmuls have roles or are sharded by data flow; the embedding has one.
  bool roles = true, wordRole = false;
  /// Features that only the interpreter runs: experts in place of the feed-forward (0: none), of
  /// which each token takes `top`; dropout after the embedding; the loss against labels as the
  /// result.
  int64_t experts = 0, top = 1;
  bool dropout = false, loss = false;

  int64_t dp = 1, tp = 1;
  /// Whether the module contains the mesh, with this order of ranks (empty: none); otherwise
  /// options request it.
  bool meshInModule = true;
  std::vector<int64_t> order;
  /// The strategy; empty for random shardings of the weights, some over sub-axes.
  std::string strategy = "auto";

  int64_t heads() const { return kvHeads * groupSize; }
  std::string mesh() const { return "dp=" + std::to_string(dp) + ",tp=" + std::to_string(tp); }
  /// Whether a strategy shards heads or a feed-forward that do not divide.
  bool isPadded() const {
    return !strategy.empty() && strategy != "dp" && (kvHeads % tp != 0 || ffn % tp != 0);
  }
  bool hasPaddedVocabulary() const {
    return head && vocab % tp != 0 &&
           (strategy == "auto" || strategy.find("vocab") != std::string::npos);
  }
  /// One line that describes the case.
  std::string describe() const;
};

/// Options of the random model.
struct ModelKind {
  /// BERT's order of normalizations; otherwise that of causal decoders.
  bool encoder = false;
  enum Plan {
    Auto,      ///< strategy auto; heads and feed-forward may not divide
    Strategy,  ///< one of all strategies, of a decoder with a head
    Shardings, ///< random shardings
  } plan = Auto;
  /// With operations that only the interpreter runs; all divides.
  bool reference = false;
};

RandomModel drawModel(Random &random, const ModelKind &kind);
/// The module at the nn level.
std::string buildModule(const RandomModel &model, Random &random);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMMODEL_H
