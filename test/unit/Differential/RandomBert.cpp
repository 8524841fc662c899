//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RandomBert.h"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace braid::test {

namespace {
int64_t pick(Random &random, std::initializer_list<int64_t> from) {
  return *(from.begin() + static_cast<int64_t>(random() % from.size()));
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

std::vector<Weight> layerWeights(const RandomBert &b) {
  int64_t h = b.hidden(), kv = b.kvHeads * b.headDim;
  return {{"wq", {h, h}},     {"bq", {h}},  {"wk", {kv, h}},    {"bk", {kv}},
          {"wv", {kv, h}},    {"bv", {kv}}, {"wo", {h, h}},     {"bo", {h}},
          {"n1w", {h}},       {"n1b", {h}}, {"wu", {b.ffn, h}}, {"bu", {b.ffn}},
          {"wd", {h, b.ffn}}, {"bd", {h}},  {"n2w", {h}},       {"n2b", {h}}};
}

/// An attribute that cuts one dimension, or an empty string.
std::string drawSharding(const RandomBert &b, Random &random, const std::vector<int64_t> &shape) {
  if (!b.randomShardings || random() % 3 != 0)
    return "";
  size_t dim = random() % shape.size();
  bool useTp = flip(random);
  if (shape[dim] % (useTp ? b.tp : b.dp) != 0)
    return "";
  std::string dims;
  for (size_t d = 0; d < shape.size(); ++d)
    dims += (d ? ", {" : "{") + std::string(d == dim ? (useTp ? "tp" : "dp") : "") + "}";
  return " {comm.sharding = #comm.sharding<@mesh, [" + dims + "]>}";
}

void printLayer(std::ostream &os, const RandomBert &b, Random &random, int64_t index) {
  std::string x = type({b.batch, b.seq, b.hidden()}), f = type({b.batch, b.seq, b.ffn});
  std::string kv = type({b.batch, b.seq, b.kvHeads * b.headDim});
  std::string qh = type({b.batch, b.seq, b.heads, b.headDim}),
              kh = type({b.batch, b.seq, b.kvHeads, b.headDim});
  std::string hv = type({b.hidden()});
  os << "func.func private @layer" << index << "(%x: " << x;
  if (b.mask)
    os << ", %mask: " << type({b.batch, b.seq}, "i64");
  if (b.validLength)
    os << ", %length: " << type({b.batch}, "i64");
  if (b.positionOffset)
    os << ", %offset: " << type({b.batch}, "i64");
  for (const Weight &w : layerWeights(b))
    os << ", %" << w.name << ": " << type(w.shape) << drawSharding(b, random, w.shape);
  os << ") -> " << x << " {\n";
  auto linear = [&](const char *result, const char *input, const char *weight, const char *bias,
                    const char *role, const std::string &in, const std::vector<int64_t> &shape,
                    const std::string &out) {
    os << "  %" << result << " = nn.linear %" << input << ", %" << weight << " bias %" << bias
       << " : " << type({shape[0]}) << " role \"" << role << "\" : " << in << ", " << type(shape)
       << " -> " << out << "\n";
  };
  int64_t h = b.hidden(), kvWidth = b.kvHeads * b.headDim;
  linear("q", "x", "wq", "bq", "attention.query", x, {h, h}, x);
  linear("k", "x", "wk", "bk", "attention.key", x, {kvWidth, h}, kv);
  linear("v", "x", "wv", "bv", "attention.value", x, {kvWidth, h}, kv);
  os << "  %qh = nn.split_heads %q : " << x << " -> " << qh << "\n";
  os << "  %kh = nn.split_heads %k : " << kv << " -> " << kh << "\n";
  os << "  %vh = nn.split_heads %v : " << kv << " -> " << kh << "\n";
  os << "  %ah = nn.attention " << (b.causal ? "causal " : "") << "%qh, %kh, %vh";
  if (b.mask)
    os << " mask %mask : " << type({b.batch, b.seq}, "i64");
  if (b.validLength)
    os << " valid_length %length : " << type({b.batch}, "i64");
  if (b.positionOffset)
    os << " position_offset %offset : " << type({b.batch}, "i64");
  os << " scale 0.6 : " << qh << ", " << kh << ", " << kh << " -> " << qh << "\n";
  os << "  %a = nn.merge_heads %ah : " << qh << " -> " << x << "\n";
  linear("o", "a", "wo", "bo", "attention.output", x, {h, h}, x);
  os << "  %r1 = nn.add " << (flip(random) ? "%o, %x" : "%x, %o") << " : " << x << ", " << x
     << " -> " << x << "\n";
  os << "  %n1 = nn.layer_norm %r1, %n1w, %n1b epsilon 1.0e-6 : " << x << ", " << hv << ", " << hv
     << " -> " << x << "\n";
  linear("u", "n1", "wu", "bu", "mlp.up", x, {b.ffn, h}, f);
  os << "  %g = nn.gelu " << (flip(random) ? "erf" : "tanh") << " %u : " << f << "\n";
  linear("d", "g", "wd", "bd", "mlp.down", f, {h, b.ffn}, x);
  os << "  %r2 = nn.add %d, %n1 : " << x << ", " << x << " -> " << x << "\n";
  os << "  %y = nn.layer_norm %r2, %n2w, %n2b epsilon 1.0e-6 : " << x << ", " << hv << ", " << hv
     << " -> " << x << "\n";
  os << "  return %y : " << x << "\n}\n";
}
} // namespace

std::string RandomBert::describe() const {
  std::ostringstream os;
  os << "layers " << layers << " heads " << heads << "/" << kvHeads << "x" << headDim << " seq "
     << seq << " batch " << batch << " ffn " << ffn << " vocab " << vocab << " dp " << dp << " tp "
     << tp;
  if (!order.empty()) {
    os << " order";
    for (int64_t rank : order)
      os << " " << rank;
  }
  os << (mask ? " mask" : "") << (validLength ? " valid_length" : "") << (causal ? " causal" : "")
     << (positionOffset ? " position_offset" : "") << (randomShardings ? " random shardings" : "");
  return os.str();
}

RandomBert drawBert(Random &random, bool randomShardings) {
  RandomBert b;
  b.randomShardings = randomShardings;
  b.dp = pick(random, {1, 2, 4});
  b.tp = b.dp == 4 ? 1
                   : pick(random, b.dp == 2 ? std::initializer_list<int64_t>{1, 2}
                                            : std::initializer_list<int64_t>{1, 2, 4});
  // Random shardings may cut any dimension over either axis.
  int64_t unit = randomShardings ? b.dp * b.tp : b.tp;
  b.kvHeads = unit * pick(random, {1, 2});
  b.heads = b.kvHeads * pick(random, {1, 2, 3});
  b.headDim = pick(random, {1, 2, 3, 4});
  b.ffn = unit * pick(random, {1, 3, 4, 5});
  b.batch = b.dp * pick(random, {1, 2, 3});
  b.seq = pick(random, {1, 2, 5, 7});
  b.vocab = unit * pick(random, {2, 5, 9});
  b.layers = pick(random, {1, 2, 3});
  b.mask = flip(random);
  b.validLength = flip(random);
  b.causal = flip(random);
  b.positionOffset = b.causal && flip(random);
  if (flip(random)) {
    b.order.resize(static_cast<size_t>(b.dp * b.tp));
    std::iota(b.order.begin(), b.order.end(), 0);
    std::shuffle(b.order.begin(), b.order.end(), random);
  }
  return b;
}

std::string buildModule(const RandomBert &b, Random &random) {
  std::ostringstream os;
  os << "comm.mesh @mesh <dp = " << b.dp << ", tp = " << b.tp << ">";
  if (!b.order.empty()) {
    os << " order [";
    for (size_t i = 0; i < b.order.size(); ++i)
      os << (i ? ", " : "") << b.order[i];
    os << "]";
  }
  std::string x = type({b.batch, b.seq, b.hidden()}), ids = type({b.batch, b.seq}, "i64");
  std::string hv = type({b.hidden()});
  // Equal layers are one function, so a call tree with one callee called often and one with several
  // both occur.
  bool shared = flip(random);
  os << "\nfunc.func @main(%ids: " << ids
     << " {nn.name = \"input_ids\", test.range = array<i64: 0, " << b.vocab << ">}";
  std::string extra, extraTypes;
  auto operand = [&](const char *value, const char *name, const std::string &t, int64_t low,
                     int64_t high) {
    os << ", %" << value << ": " << t << " {nn.name = \"" << name
       << "\", test.range = array<i64: " << low << ", " << high << ">}";
    extra += std::string(", %") + value;
    extraTypes += ", " + t;
  };
  if (b.mask)
    operand("mask", "attention_mask", ids, 0, 2);
  if (b.validLength)
    operand("length", "valid_length", type({b.batch}, "i64"), 0, b.seq + 1);
  if (b.positionOffset)
    operand("offset", "position_offset", type({b.batch}, "i64"), -1, 3);
  os << ") -> (" << x << " {nn.name = \"last_hidden_state\"}) attributes {nn.entry} {\n";
  auto parameter = [&](const std::string &value, const std::string &name,
                       const std::vector<int64_t> &shape) {
    os << "  %" << value << " = nn.parameter \"" << name << "\" : " << type(shape) << "\n";
  };
  parameter("words", "words", {b.vocab, b.hidden()});
  parameter("positions", "positions", {b.seq, b.hidden()});
  parameter("nw", "norm.weight", {b.hidden()});
  parameter("nb", "norm.bias", {b.hidden()});
  os << "  %e = nn.embedding %ids, %words : " << ids << ", " << type({b.vocab, b.hidden()})
     << " -> " << x << "\n  %p = nn.add %e, %positions : " << x << ", " << type({b.seq, b.hidden()})
     << " -> " << x << "\n  %h0 = nn.layer_norm %p, %nw, %nb epsilon 1.0e-6 : " << x << ", " << hv
     << ", " << hv << " -> " << x << "\n";
  for (int64_t layer = 0; layer < b.layers; ++layer) {
    std::string operands, types, prefix = "l" + std::to_string(layer);
    for (const Weight &w : layerWeights(b)) {
      parameter(prefix + w.name, "layer." + std::to_string(layer) + "." + w.name, w.shape);
      operands += ", %" + prefix + w.name;
      types += ", " + type(w.shape);
    }
    os << "  %h" << layer + 1 << " = call @layer" << (shared ? 0 : layer) << "(%h" << layer << extra
       << operands << ") : (" << x << extraTypes << types << ") -> " << x << "\n";
  }
  os << "  return %h" << b.layers << " : " << x << "\n}\n";
  for (int64_t layer = 0; layer < (shared ? 1 : b.layers); ++layer)
    printLayer(os, b, random, layer);
  return os.str();
}

} // namespace braid::test
