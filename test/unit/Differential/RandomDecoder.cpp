//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RandomDecoder.h"

#include <sstream>

namespace braid::test {

namespace {
int64_t draw(Random &random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}
bool flip(Random &random) { return random() & 1; }

std::string type(const std::vector<int64_t> &shape, const char *element = "f32") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

struct Weight {
  std::string name;
  std::vector<int64_t> shape;
};

std::vector<Weight> layerWeights(const RandomDecoder &d) {
  std::vector<Weight> weights;
  auto linear = [&](const std::string &name, int64_t out, int64_t in) {
    weights.push_back({name, {out, in}});
    if (d.bias)
      weights.push_back({name + "b", {out}});
  };
  int64_t keys = d.groups * d.headDim, queries = keys * d.groupSize;
  weights.push_back({"n1", {d.hidden}});
  linear("wq", queries, d.hidden);
  linear("wk", keys, d.hidden);
  linear("wv", keys, d.hidden);
  linear("wo", d.hidden, queries);
  weights.push_back({"n2", {d.hidden}});
  linear("wg", d.ffn, d.hidden);
  linear("wu", d.ffn, d.hidden);
  linear("wd", d.hidden, d.ffn);
  return weights;
}

void printLayer(std::ostream &os, const RandomDecoder &d) {
  int64_t keys = d.groups * d.headDim, queries = keys * d.groupSize;
  auto rows = [&](int64_t width) { return type({d.batch, d.seq, width}); };
  std::string x = rows(d.hidden), table = type({d.seq, d.headDim / 2});
  std::string queryHeads = type({d.batch, d.seq, d.groups * d.groupSize, d.headDim}),
              keyHeads = type({d.batch, d.seq, d.groups, d.headDim});
  os << "func.func private @layer(%x: " << x << ", %cos: " << table << ", %sin: " << table;
  if (d.mask)
    os << ", %mask: " << type({d.batch, d.seq}, "i64");
  for (const Weight &w : layerWeights(d))
    os << ", %" << w.name << ": " << type(w.shape);
  os << ") -> " << x << " {\n";
  auto linear = [&](const char *result, const char *input, const std::string &weight,
                    const char *role, int64_t out, int64_t in) {
    os << "  %" << result << " = nn.linear %" << input << ", %" << weight;
    if (d.bias)
      os << " bias %" << weight << "b : " << type({out});
    if (d.roles)
      os << " role \"" << role << "\"";
    os << " : " << rows(in) << ", " << type({out, in}) << " -> " << rows(out) << "\n";
  };
  auto norm = [&](const char *result, const char *input, const char *weight) {
    os << "  %" << result << " = nn.rms_norm %" << input << ", %" << weight
       << " epsilon 1.0e-5 : " << x << ", " << type({d.hidden}) << " -> " << x << "\n";
  };
  auto heads = [&](const char *result, const char *input, int64_t width, const std::string &to) {
    os << "  %" << result << "h = nn.split_heads %" << input << " : " << rows(width) << " -> " << to
       << "\n";
  };
  auto rotary = [&](const char *result, const char *input, const std::string &of) {
    os << "  %" << result << " = nn.rotary %" << input << ", %cos, %sin : " << of << ", " << table
       << "\n";
  };
  auto add = [&](const char *result, const char *a, const char *b) {
    os << "  %" << result << " = nn.add %" << a << ", %" << b << " : " << x << ", " << x << " -> "
       << x << "\n";
  };
  norm("a", "x", "n1");
  linear("q", "a", "wq", "attention.query", queries, d.hidden);
  linear("k", "a", "wk", "attention.key", keys, d.hidden);
  linear("v", "a", "wv", "attention.value", keys, d.hidden);
  heads("q", "q", queries, queryHeads);
  heads("k", "k", keys, keyHeads);
  heads("v", "v", keys, keyHeads);
  rotary("qr", "qh", queryHeads);
  rotary("kr", "kh", keyHeads);
  os << "  %c = nn.attention causal %qr, %kr, %vh";
  if (d.mask)
    os << " mask %mask : " << type({d.batch, d.seq}, "i64");
  // Random weights are small: the scale makes scores that attention can tell apart.
  os << " scale 400.0 : " << queryHeads << ", " << keyHeads << ", " << keyHeads << " -> "
     << queryHeads << "\n  %m = nn.merge_heads %c : " << queryHeads << " -> " << rows(queries)
     << "\n";
  linear("o", "m", "wo", "attention.output", d.hidden, queries);
  add("r", "o", "x");
  norm("b", "r", "n2");
  linear("g", "b", "wg", "mlp.gate", d.ffn, d.hidden);
  linear("u", "b", "wu", "mlp.up", d.ffn, d.hidden);
  os << "  %s = nn.silu %g : " << rows(d.ffn) << "\n  %t = nn.mul %s, %u : " << rows(d.ffn) << ", "
     << rows(d.ffn) << " -> " << rows(d.ffn) << "\n";
  linear("d", "t", "wd", "mlp.down", d.hidden, d.ffn);
  add("y", "d", "r");
  os << "  return %y : " << x << "\n}\n";
}
} // namespace

std::string RandomDecoder::describe() const {
  std::ostringstream os;
  os << layers << " layers, " << groups << " groups of " << groupSize << " heads of " << headDim
     << ", hidden " << hidden << ", ffn " << ffn << ", vocab " << vocab << ", batch " << batch
     << ", seq " << seq << (bias ? ", bias" : "") << (tied ? ", tied" : "")
     << (mask ? ", mask" : "") << (roles ? "" : ", no roles") << "; " << mesh() << " " << strategy;
  return os.str();
}

RandomDecoder drawDecoder(Random &random) {
  RandomDecoder d;
  constexpr const char *kStrategies[] = {
      "tp",    "tp-sp",    "tp,vocab", "tp-sp,vocab", "tp-sp,vocab,dp",
      "tp,dp", "tp-sp,dp", "dp",       "auto"};
  d.strategy = kStrategies[random() % std::size(kStrategies)];
  d.tp = draw(random, 1, 6);
  d.dp = d.strategy.find("dp") != std::string::npos ? 2 : 1;
  if (d.strategy == "dp")
    d.tp = 1;
  d.layers = draw(random, 1, 3);
  d.groups = draw(random, 1, 4);
  d.groupSize = draw(random, 1, 4);
  d.headDim = 2 * draw(random, 1, 2);
  d.hidden = draw(random, 2, 9);
  d.ffn = draw(random, 2, 13);
  d.vocab = d.tp * draw(random, 1, 4);
  d.batch = d.dp * draw(random, 1, 2);
  d.seq = d.tp * draw(random, 1, 3);
  d.bias = flip(random);
  d.tied = flip(random);
  d.mask = flip(random);
  d.roles = draw(random, 0, 3) != 0;
  return d;
}

std::string buildModule(const RandomDecoder &d) {
  std::ostringstream os;
  std::string ids = type({d.batch, d.seq}, "i64"), x = type({d.batch, d.seq, d.hidden});
  std::string words = type({d.vocab, d.hidden}), table = type({d.seq, d.headDim / 2});
  std::string logits = type({d.batch, d.seq, d.vocab});
  os << "func.func @main(%ids: " << ids << " {nn.name = \"input_ids\", test.range = array<i64: 0, "
     << d.vocab << ">}";
  if (d.mask)
    os << ", %mask: " << ids << " {nn.name = \"mask\", test.range = array<i64: 0, 2>}";
  os << ") -> (" << logits << " {nn.name = \"logits\"}) attributes {nn.entry} {\n";
  auto parameter = [&](const std::string &value, const std::string &name,
                       const std::vector<int64_t> &shape) {
    os << "  %" << value << " = nn.parameter \"" << name << "\" : " << type(shape) << "\n";
  };
  parameter("words", "words", {d.vocab, d.hidden});
  os << "  %h0 = nn.embedding %ids, %words role \"embedding.word\" : " << ids << ", " << words
     << " -> " << x << "\n  %cos, %sin = nn.rotary_table [1.0" << (d.headDim == 4 ? ", 0.1" : "")
     << "] : " << table << "\n";
  for (int64_t layer = 0; layer < d.layers; ++layer) {
    std::string operands, types, prefix = "l" + std::to_string(layer);
    for (const Weight &w : layerWeights(d)) {
      parameter(prefix + w.name, "layer." + std::to_string(layer) + "." + w.name, w.shape);
      operands += ", %" + prefix + w.name;
      types += ", " + type(w.shape);
    }
    os << "  %h" << layer + 1 << " = call @layer(%h" << layer << ", %cos, %sin"
       << (d.mask ? ", %mask" : "") << operands << ") : (" << x << ", " << table << ", " << table
       << (d.mask ? ", " + ids : "") << types << ") -> " << x << "\n";
  }
  parameter("nw", "norm", {d.hidden});
  os << "  %n = nn.rms_norm %h" << d.layers << ", %nw epsilon 1.0e-5 : " << x << ", "
     << type({d.hidden}) << " -> " << x << "\n";
  if (!d.tied)
    parameter("head", "head", {d.vocab, d.hidden});
  os << "  %logits = nn.linear %n, %" << (d.tied ? "words" : "head") << " role \"lm_head\" : " << x
     << ", " << words << " -> " << logits << "\n  return %logits : " << logits << "\n}\n";
  printLayer(os, d);
  return os.str();
}

} // namespace braid::test
