//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RandomTransformer.h"

#include <algorithm>
#include <sstream>

namespace braid::test {
namespace {
using Shape = std::vector<int64_t>;

int64_t pick(Random &random, std::initializer_list<int64_t> from) {
  return *(from.begin() + static_cast<int64_t>(random() % from.size()));
}
bool flip(Random &random) { return random() & 1; }

std::string type(const Shape &shape, const char *element = "f32") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

struct Weight {
  std::string name;
  Shape shape;
};

class Printer {
public:
  Printer(const RandomTransformer &decoder, Random &random) : d(decoder), random(random) {}
  std::string print();

private:
  std::vector<Weight> layerWeights() const;
  std::string drawSharding(const Shape &shape);
  void linear(const std::string &result, const std::string &input, const std::string &weight,
              const std::string &role, const Shape &in, int64_t width);
  void norm(const std::string &result, const std::string &input, const std::string &weight);
  void experts();
  void feedForward();
  void layer(int64_t index);
  void parameter(const std::string &value, const std::string &name, const Shape &shape);

  Shape rows(int64_t width) const { return {d.batch, d.seq, width}; }
  /// Angles per position, or per row and position when rows start at positions of their own.
  Shape table() const {
    return d.positionOffset ? Shape{d.batch, d.seq, d.headDim / 2} : Shape{d.seq, d.headDim / 2};
  }

  const RandomTransformer &d;
  Random &random;
  std::ostringstream os;
};

std::vector<Weight> Printer::layerWeights() const {
  int64_t h = d.hidden(), kv = d.kvHeads * d.headDim;
  std::vector<Weight> weights = {{"n1w", {h}},       {"wq", {h, h}},    {"wk", {kv, h}},
                                 {"wv", {kv, h}},    {"wo", {h, h}},    {"n2w", {h}},
                                 {"wu", {d.ffn, h}}, {"wd", {h, d.ffn}}};
  if (d.gated)
    weights.push_back({"wg", {d.ffn, h}});
  if (d.experts)
    weights.push_back({"wr", {d.experts, h}});
  if (!d.rmsNorm)
    weights.insert(weights.end(), {{"n1wb", {h}}, {"n2wb", {h}}});
  if (d.biases) {
    weights.insert(
        weights.end(),
        {{"wqb", {h}}, {"wkb", {kv}}, {"wvb", {kv}}, {"wob", {h}}, {"wub", {d.ffn}}, {"wdb", {h}}});
    if (d.gated)
      weights.push_back({"wgb", {d.ffn}});
  }
  return weights;
}

std::string Printer::drawSharding(const Shape &shape) {
  if (!d.randomShardings || random() % 3 != 0)
    return "";
  size_t dim = random() % shape.size();
  bool useTp = flip(random);
  int64_t size = useTp ? d.tp : d.dp;
  std::string axis = useTp ? "tp" : "dp";
  if ((size == 4 || size == 6) && flip(random)) {
    axis += flip(random) ? ":(1)2" : ":(2)" + std::to_string(size / 2);
    size = axis.back() - '0';
  }
  if (shape[dim] % size != 0)
    return "";
  std::string dims;
  for (size_t i = 0; i < shape.size(); ++i)
    dims += (i ? ", {" : "{") + (i == dim ? axis : "") + "}";
  return " {comm.sharding = #comm.sharding<@mesh, [" + dims + "]>}";
}

void Printer::linear(const std::string &result, const std::string &input, const std::string &weight,
                     const std::string &role, const Shape &in, int64_t width) {
  Shape out = in;
  out.back() = width;
  os << "  %" << result << " = nn.linear %" << input << ", %" << weight;
  if (d.biases && weight != "head")
    os << " bias %" << weight << "b : " << type({width});
  os << " role \"" << role << "\" : " << type(in) << ", " << type({width, in.back()}) << " -> "
     << type(out) << "\n";
}

void Printer::norm(const std::string &result, const std::string &input, const std::string &weight) {
  std::string x = type(rows(d.hidden())), w = type({d.hidden()});
  if (d.rmsNorm)
    os << "  %" << result << " = nn.rms_norm %" << input << ", %" << weight
       << " epsilon 1.0e-6 : " << x << ", " << w << " -> " << x << "\n";
  else
    os << "  %" << result << " = nn.layer_norm %" << input << ", %" << weight << ", %" << weight
       << "b epsilon 1.0e-6 : " << x << ", " << w << ", " << w << " -> " << x << "\n";
}

void Printer::layer(int64_t index) {
  int64_t h = d.hidden(), kv = d.kvHeads * d.headDim;
  Shape x = rows(h), qh = {d.batch, d.seq, d.heads, d.headDim},
        kh = {d.batch, d.seq, d.kvHeads, d.headDim};
  os << "func.func private @layer" << index << "(%x: " << type(x);
  if (d.rotary)
    os << ", %cos: " << type(table()) << ", %sin: " << type(table());
  if (d.mask)
    os << ", %mask: " << type({d.batch, d.seq}, "i64");
  for (const Weight &w : layerWeights())
    os << ", %" << w.name << ": " << type(w.shape) << drawSharding(w.shape);
  os << ") -> " << type(x) << " {\n";
  norm("n1", "x", "n1w");
  linear("q", "n1", "wq", "attention.query", x, h);
  linear("k", "n1", "wk", "attention.key", x, kv);
  linear("v", "n1", "wv", "attention.value", x, kv);
  os << "  %qh = nn.split_heads %q : " << type(x) << " -> " << type(qh) << "\n"
     << "  %kh = nn.split_heads %k : " << type(rows(kv)) << " -> " << type(kh) << "\n"
     << "  %vh = nn.split_heads %v : " << type(rows(kv)) << " -> " << type(kh) << "\n";
  std::string query = "qh", key = "kh";
  if (d.rotary) {
    os << "  %qr = nn.rotary %qh, %cos, %sin : " << type(qh) << ", " << type(table()) << "\n"
       << "  %kr = nn.rotary %kh, %cos, %sin : " << type(kh) << ", " << type(table()) << "\n";
    query = "qr";
    key = "kr";
  }
  os << "  %ah = nn.attention causal %" << query << ", %" << key << ", %vh";
  if (d.mask)
    os << " mask %mask : " << type({d.batch, d.seq}, "i64");
  os << " scale 0.6 : " << type(qh) << ", " << type(kh) << ", " << type(kh) << " -> " << type(qh)
     << "\n  %a = nn.merge_heads %ah : " << type(qh) << " -> " << type(x) << "\n";
  linear("o", "a", "wo", "attention.output", x, h);
  os << "  %r1 = nn.add " << (flip(random) ? "%o, %x" : "%x, %o") << " : " << type(x) << ", "
     << type(x) << " -> " << type(x) << "\n";
  norm("n2", "r1", "n2w");
  if (d.experts)
    experts();
  else
    feedForward();
  os << "  %r2 = nn.add %r1, %w : " << type(x) << ", " << type(x) << " -> " << type(x) << "\n"
     << "  return %r2 : " << type(x) << "\n}\n";
}

/// Every expert applies the same function: what is of interest is how tokens come to it and back.
void Printer::experts() {
  Shape x = rows(d.hidden()), chosen = rows(d.top);
  int64_t capacity = 1 + d.seq / 2;
  std::string buffers = type({d.batch, d.experts, capacity, d.hidden()});
  std::string weights = type(chosen), numbers = type(chosen, "i32");
  os << "  %route = nn.linear %n2, %wr : " << type(x) << ", " << type({d.experts, d.hidden()})
     << " -> " << type(rows(d.experts)) << "\n  %ew, %ee, %es, %ec = nn.router %route top " << d.top
     << " capacity " << capacity << (flip(random) ? " normalized" : "") << " : "
     << type(rows(d.experts)) << "\n  %eb = nn.dispatch %n2, %ee, %es : " << type(x) << ", "
     << numbers << " -> " << buffers << "\n  %eg = nn.gelu erf %eb : " << buffers
     << "\n  %w = nn.combine %eg, %ew, %ee, %es : " << buffers << ", " << weights << ", " << numbers
     << " -> " << type(x) << "\n";
}

void Printer::feedForward() {
  int64_t h = d.hidden();
  Shape x = rows(h);
  std::string f = type(rows(d.ffn));
  linear("u", "n2", "wu", "mlp.up", x, d.ffn);
  if (d.gated) {
    linear("g", "n2", "wg", "mlp.gate", x, d.ffn);
    os << "  %s = nn.silu %g : " << f << "\n  %m = nn.mul %s, %u : " << f << ", " << f << " -> "
       << f << "\n";
  } else {
    os << "  %m = nn.gelu tanh %u : " << f << "\n";
  }
  linear("w", "m", "wd", "mlp.down", rows(d.ffn), h);
}

void Printer::parameter(const std::string &value, const std::string &name, const Shape &shape) {
  os << "  %" << value << " = nn.parameter \"" << name << "\" : " << type(shape) << "\n";
}

std::string Printer::print() {
  std::string x = type(rows(d.hidden())), ids = type({d.batch, d.seq}, "i64");
  std::string result = d.loss ? type({d.batch, d.seq}) : d.head ? type(rows(d.vocab)) : x;
  // Equal layers are one function, so a call tree with one callee called often and one with several
  // both occur.
  bool shared = flip(random);
  os << "comm.mesh @mesh <dp = " << d.dp << ", tp = " << d.tp << ">\nfunc.func @main(%ids: " << ids
     << " {nn.name = \"input_ids\", test.range = array<i64: 0, " << d.vocab << ">}";
  if (d.mask)
    os << ", %mask: " << ids << " {nn.name = \"attention_mask\", test.range = array<i64: 0, 2>}";
  if (d.positionOffset)
    os << ", %offset: " << type({d.batch}, "i64")
       << " {nn.name = \"position_offset\", test.range = array<i64: 0, 9>}";
  // Labels of -1 do not count.
  if (d.loss)
    os << ", %labels: " << ids << " {nn.name = \"labels\", test.range = array<i64: -1, " << d.vocab
       << ">}";
  if (d.dropout)
    os << ", %seed: tensor<i64> {nn.name = \"seed\", test.range = array<i64: 0, 1000>}";
  os << ") -> (" << result << " {nn.name = \""
     << (d.loss   ? "loss"
         : d.head ? "logits"
                  : "last_hidden_state")
     << "\"}) attributes {nn.entry} {\n";
  parameter("words", "words", {d.vocab, d.hidden()});
  os << "  %" << (d.dropout ? "e" : "h0") << " = nn.embedding %ids, %words : " << ids << ", "
     << type({d.vocab, d.hidden()}) << " -> " << x << "\n";
  if (d.dropout) {
    std::string at[] = {type({d.batch}, "i64"), type({d.seq}, "i64"), type({d.hidden()}, "i64")};
    for (int i = 0; i < 3; ++i)
      os << "  %at" << i << " = nn.iota : " << at[i] << "\n";
    os << "  %h0 = nn.dropout %e at (%at0, %at1, %at2 : " << at[0] << ", " << at[1] << ", " << at[2]
       << ") seed %seed : tensor<i64> rate 0.25 site 3 : " << x << "\n";
  }
  std::string extra, extraTypes;
  if (d.rotary) {
    os << "  %cos, %sin = nn.rotary_table [";
    for (int64_t i = 0; i < d.headDim / 2; ++i)
      os << (i ? ", 0." : "0.") << 9 - 3 * i;
    os << "]";
    if (d.positionOffset)
      os << " position_offset %offset : " << type({d.batch}, "i64");
    os << " : " << type(table()) << "\n";
    extra = ", %cos, %sin";
    extraTypes = ", " + type(table()) + ", " + type(table());
  }
  if (d.mask) {
    extra += ", %mask";
    extraTypes += ", " + ids;
  }
  for (int64_t layer = 0; layer < d.layers; ++layer) {
    std::string operands, types, prefix = "l" + std::to_string(layer);
    for (const Weight &w : layerWeights()) {
      parameter(prefix + w.name, "layer." + std::to_string(layer) + "." + w.name, w.shape);
      operands += ", %" + prefix + w.name;
      types += ", " + type(w.shape);
    }
    os << "  %h" << layer + 1 << " = call @layer" << (shared ? 0 : layer) << "(%h" << layer << extra
       << operands << ") : (" << x << extraTypes << types << ") -> " << x << "\n";
  }
  std::string last = "h" + std::to_string(d.layers);
  parameter("nw", "norm.weight", {d.hidden()});
  if (!d.rmsNorm)
    parameter("nwb", "norm.bias", {d.hidden()});
  norm("y", last, "nw");
  if (d.head) {
    parameter("head", "head", {d.vocab, d.hidden()});
    linear("logits", "y", "head", "lm_head", rows(d.hidden()), d.vocab);
  }
  if (d.loss)
    os << "  %loss = nn.cross_entropy %logits, %labels ignore -1 : " << type(rows(d.vocab)) << ", "
       << ids << " -> " << result << "\n";
  os << "  return %" << (d.loss ? "loss" : d.head ? "logits" : "y") << " : " << result << "\n}\n";
  for (int64_t index = 0; index < (shared ? 1 : d.layers); ++index)
    layer(index);
  return os.str();
}
} // namespace

std::string RandomTransformer::describe() const {
  std::ostringstream os;
  os << "layers " << layers << " heads " << heads << "/" << kvHeads << "x" << headDim << " seq "
     << seq << " batch " << batch << " ffn " << ffn << " vocab " << vocab << " dp " << dp << " tp "
     << tp << (rmsNorm ? " rms_norm" : " layer_norm") << (gated ? " gated" : " gelu")
     << (rotary ? " rotary" : "") << (biases ? " biases" : "") << (head ? " head" : "")
     << (mask ? " mask" : "") << (positionOffset ? " position_offset" : "")
     << (experts ? " experts " + std::to_string(experts) + " top " + std::to_string(top) : "")
     << (dropout ? " dropout" : "") << (loss ? " loss" : "")
     << (randomShardings ? " random shardings" : "");
  return os.str();
}

RandomTransformer drawTransformer(Random &random, bool randomShardings, bool reference) {
  static constexpr int64_t kMeshes[][2] = {{1, 1}, {1, 2}, {2, 1}, {1, 3}, {3, 1}, {2, 2}, {1, 4},
                                           {4, 1}, {1, 5}, {5, 1}, {2, 3}, {3, 2}, {1, 6}, {6, 1}};
  RandomTransformer d;
  d.randomShardings = randomShardings;
  const auto &mesh = kMeshes[random() % std::size(kMeshes)];
  d.dp = mesh[0];
  d.tp = mesh[1];
  int64_t unit = randomShardings ? d.dp * d.tp : d.tp;
  d.kvHeads = unit * pick(random, {1, 2});
  d.heads = d.kvHeads * pick(random, {1, 2, 3});
  d.headDim = pick(random, {2, 4, 6});
  d.ffn = unit * pick(random, {1, 3, 4, 5});
  d.batch = d.dp * pick(random, {1, 2});
  d.seq = pick(random, {1, 2, 5, 7, 12});
  d.vocab = unit * pick(random, {2, 5, 9});
  d.layers = pick(random, {1, 2, 3});
  d.rmsNorm = flip(random);
  d.gated = flip(random);
  d.rotary = flip(random);
  d.biases = flip(random);
  d.head = flip(random);
  d.mask = flip(random);
  d.positionOffset = d.rotary && flip(random);
  if (reference) {
    d.experts = flip(random) ? unit * pick(random, {1, 2, 3}) : 0;
    d.top = std::min<int64_t>(pick(random, {1, 2}), std::max<int64_t>(d.experts, 1));
    d.dropout = flip(random);
    d.loss = d.head && flip(random);
  }
  return d;
}

std::string buildModule(const RandomTransformer &decoder, Random &random) {
  return Printer(decoder, random).print();
}

} // namespace braid::test
