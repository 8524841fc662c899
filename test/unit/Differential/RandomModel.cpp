//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RandomModel.h"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace braid::test {
namespace {
using Shape = std::vector<int64_t>;

int64_t pick(Random &random, std::initializer_list<int64_t> from) {
  return *(from.begin() + static_cast<int64_t>(random() % from.size()));
}
int64_t draw(Random &random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
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
  Printer(const RandomModel &model, Random &random)
      : m(model), random(random), batch(model.batch), seq(model.seq) {}
  std::string print();

private:
  /// The name and type of an operand that the entry has in addition to ids, or a layer in addition
  /// to its input.
  struct Operand {
    std::string name, type;
  };

  std::vector<Weight> layerWeights() const;
  std::string drawSharding(const Shape &shape);
  void linear(const std::string &result, const std::string &input, const std::string &weight,
              const std::string &role, const Shape &in, int64_t width);
  void norm(const std::string &result, const std::string &input, const std::string &weight);
  void add(const std::string &result, const std::string &branch, const std::string &residual);
  void attention(const std::string &input);
  void experts(const std::string &input);
  void dense(const std::string &input);
  void denseInParts(const std::string &input);
  void feedForward(const std::string &input);
  std::string slice(const std::string &result, const std::string &input, Shape shape, size_t dim,
                    int64_t from, int64_t size);
  std::string rotated(const std::string &input);
  void layer(int64_t index);
  void mesh();
  void signature();
  std::string embed();
  std::string callLayers(std::string last, bool shared);
  void parameter(const std::string &value, const std::string &name, const Shape &shape);

  const char *integer() const { return m.narrow ? "i32" : "i64"; }
  Shape rows(int64_t width) const { return {batch, seq, width}; }
  int64_t queries() const { return m.heads() * m.headDim; }
  int64_t keys() const { return m.kvHeads * m.headDim; }
  /// The shape of the angles: per position, or per row and position when rows start at different
  /// positions.
  Shape table() const {
    return m.positionOffset ? Shape{m.batch, m.seq, m.headDim / 2} : Shape{m.seq, m.headDim / 2};
  }
  Shape resultShape() const {
    return m.loss ? Shape{m.batch, m.seq} : rows(m.head ? m.vocab : m.hidden);
  }

  const RandomModel &m;
  Random &random;
  int64_t batch, seq;          ///< of the part at hand
  std::string part;            ///< appended to the names of its values
  std::vector<Operand> passed; ///< to every layer
  std::ostringstream os;
};

std::vector<Weight> Printer::layerWeights() const {
  std::vector<Weight> weights;
  auto norm = [&](const std::string &name) {
    weights.push_back({name, {m.hidden}});
    if (!m.rmsNorm)
      weights.push_back({name + "b", {m.hidden}});
  };
  auto linear = [&](const std::string &name, int64_t out, int64_t in) {
    weights.push_back({name, {out, in}});
    if (m.biases)
      weights.push_back({name + "b", {out}});
  };
  linear("wq", queries(), m.hidden);
  linear("wk", keys(), m.hidden);
  linear("wv", keys(), m.hidden);
  linear("wo", m.hidden, queries());
  norm("n1w");
  norm("n2w");
  if (m.experts) {
    weights.push_back({"wr", {m.experts, m.hidden}});
    return weights;
  }
  if (m.gated)
    linear("wg", m.ffn, m.hidden);
  linear("wu", m.ffn, m.hidden);
  linear("wd", m.hidden, m.ffn);
  return weights;
}

/// A sharding attribute that splits one dimension, or an empty string.
std::string Printer::drawSharding(const Shape &shape) {
  if (!m.strategy.empty() || random() % 3 != 0)
    return "";
  size_t dim = random() % shape.size();
  bool useTp = flip(random);
  int64_t size = useTp ? m.tp : m.dp;
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
  bool biased = m.biases && role != "lm_head" && !role.empty();
  std::string matmul = biased ? result + "p" : result;
  os << "  %" << matmul << " = nn.linear %" << input << ", %" << weight;
  if (!role.empty() && (m.roles || role == "lm_head"))
    os << " role \"" << role << "\"";
  os << " : " << type(in) << ", " << type({width, in.back()}) << " -> " << type(out) << "\n";
  if (biased)
    os << "  %" << result << " = nn.add %" << matmul << ", %" << weight << "b : " << type(out)
       << ", " << type({width}) << " -> " << type(out) << "\n";
}

void Printer::norm(const std::string &result, const std::string &input, const std::string &weight) {
  std::string x = type(rows(m.hidden)), w = type({m.hidden});
  // The norm of a few numbers that happen to be close depends on their differences: with a small
  // epsilon f32 and f64 would disagree although nothing is wrong.
  const char *epsilon = m.hidden < 8 ? "1.0e-3" : "1.0e-6";
  if (m.rmsNorm)
    os << "  %" << result << " = nn.rms_norm %" << input << ", %" << weight << " epsilon "
       << epsilon << " : " << x << ", " << w << " -> " << x << "\n";
  else
    os << "  %" << result << " = nn.layer_norm %" << input << ", %" << weight << ", %" << weight
       << "b epsilon " << epsilon << " : " << x << ", " << w << ", " << w << " -> " << x << "\n";
}

void Printer::add(const std::string &result, const std::string &branch,
                  const std::string &residual) {
  std::string x = type(rows(m.hidden)),
              both = flip(random) ? branch + ", %" + residual : residual + ", %" + branch;
  os << "  %" << result << " = nn.add %" << both << " : " << x << ", " << x << " -> " << x << "\n";
}

void Printer::attention(const std::string &input) {
  Shape x = rows(m.hidden), qh = {m.batch, m.seq, m.heads(), m.headDim},
        kh = {m.batch, m.seq, m.kvHeads, m.headDim};
  linear("q", input, "wq", "attention.query", x, queries());
  linear("k", input, "wk", "attention.key", x, keys());
  linear("v", input, "wv", "attention.value", x, keys());
  os << "  %qh = nn.split_heads %q : " << type(rows(queries())) << " -> " << type(qh) << "\n"
     << "  %kh = nn.split_heads %k : " << type(rows(keys())) << " -> " << type(kh) << "\n"
     << "  %vh = nn.split_heads %v : " << type(rows(keys())) << " -> " << type(kh) << "\n";
  std::string query = "qh", key = "kh";
  if (m.rotary) {
    os << "  %qr = nn.rotary %qh, %cos, %sin : " << type(qh) << ", " << type(table()) << "\n"
       << "  %kr = nn.rotary %kh, %cos, %sin : " << type(kh) << ", " << type(table()) << "\n";
    query = "qr";
    key = "kr";
  }
  os << "  %ah = nn.attention " << (m.causal ? "causal %" : "%") << query << ", %" << key
     << ", %vh";
  for (const Operand &operand : passed)
    if (operand.name == "mask" || operand.name == "valid_length" ||
        (operand.name == "position_offset" && m.causal))
      os << " " << operand.name << " %" << operand.name << " : " << operand.type;
  // Scores are near one for any size: attention distinguishes positions, and f32 rounding errors
  // are small.
  os << " scale " << std::scientific << 6.0 / static_cast<double>(m.hidden * m.headDim) << " : "
     << type(qh) << ", " << type(kh) << ", " << type(kh) << " -> " << type(qh)
     << "\n  %a = nn.merge_heads %ah : " << type(qh) << " -> " << type(rows(queries())) << "\n";
  linear("o", "a", "wo", "attention.output", rows(queries()), m.hidden);
}

/// Every expert applies the same function, since the tests are about routing tokens to experts and
/// back.
void Printer::experts(const std::string &input) {
  Shape x = rows(m.hidden), chosen = rows(m.top);
  int64_t capacity = 1 + m.seq / 2;
  std::string buffers = type({m.batch, m.experts, capacity, m.hidden});
  std::string weights = type(chosen), numbers = type(chosen, "i32");
  linear("route", input, "wr", "", x, m.experts);
  os << "  %ew, %ee, %es, %ec = nn.router %route top " << m.top << " capacity " << capacity
     << (flip(random) ? " normalized" : "") << " : " << type(rows(m.experts))
     << "\n  %eb = nn.dispatch %" << input << ", %ee, %es : " << type(x) << ", " << numbers
     << " -> " << buffers << "\n  %eg = nn.activation gelu %eb : " << buffers
     << "\n  %w = nn.combine %eg, %ew, %ee, %es : " << buffers << ", " << weights << ", " << numbers
     << " -> " << type(x) << "\n";
}

void Printer::dense(const std::string &input) {
  Shape x = rows(m.hidden);
  std::string f = type(rows(m.ffn));
  linear("u" + part, input, "wu", "mlp.up", x, m.ffn);
  if (m.gated) {
    linear("g" + part, input, "wg", "mlp.gate", x, m.ffn);
    os << "  %s" << part << " = nn.activation silu %g" << part << " : " << f << "\n  %m" << part
       << " = nn.mul %s" << part << ", %u" << part << " : " << f << ", " << f << " -> " << f
       << "\n";
  } else {
    os << "  %m" << part << " = nn.activation " << (flip(random) ? "gelu" : "gelu_tanh") << " %u"
       << part << " : " << f << "\n";
  }
  linear("w" + part, "m" + part, "wd", "mlp.down", rows(m.ffn), m.hidden);
}

/// Returns the type of the slice.
std::string Printer::slice(const std::string &result, const std::string &input, Shape shape,
                           size_t dim, int64_t from, int64_t size) {
  os << "  %" << result << " = nn.slice %" << input << " dim " << dim << " from " << from
     << " size " << size << " : " << type(shape);
  shape[dim] = size;
  os << " -> " << type(shape) << "\n";
  return type(shape);
}

void Printer::denseInParts(const std::string &input) {
  Shape x = rows(m.hidden);
  size_t dim = m.seq > 1 && (m.batch == 1 || flip(random)) ? 1 : 0;
  int64_t &size = dim == 1 ? seq : batch;
  const int64_t all = size, first = draw(random, 1, all - 1);
  std::string types;
  for (int64_t from : {int64_t(0), first}) {
    size = from == 0 ? first : all - first;
    part = from == 0 ? "_a" : "_b";
    types += (from == 0 ? "" : ", ") + slice("x" + part, input, x, dim, from, size);
    dense("x" + part);
  }
  size = all;
  part = "";
  os << "  %w = nn.concat %w_a, %w_b dim " << dim << " : " << types << " -> " << type(x) << "\n";
}

void Printer::feedForward(const std::string &input) {
  if (m.experts)
    experts(input);
  else if (m.parts && m.batch * m.seq > 1)
    denseInParts(input);
  else
    dense(input);
}

/// Exchanges the beginning and the end of the last dimension. Returns the name of the result.
std::string Printer::rotated(const std::string &input) {
  Shape x = rows(m.hidden);
  const int64_t begin = draw(random, 1, m.hidden - 1);
  std::string end = slice("ra", input, x, 2, begin, m.hidden - begin);
  std::string start = slice("rb", input, x, 2, 0, begin);
  os << "  %rot = nn.concat %ra, %rb dim 2 : " << end << ", " << start << " -> " << type(x) << "\n";
  return "rot";
}

void Printer::layer(int64_t index) {
  std::string x = type(rows(m.hidden));
  os << "func.func private @layer" << index << "(%x: " << x;
  for (const Operand &operand : passed)
    os << ", %" << operand.name << ": " << operand.type;
  for (const Weight &w : layerWeights())
    os << ", %" << w.name << ": " << type(w.shape) << drawSharding(w.shape);
  os << ") -> " << x << " {\n";
  if (m.postNorm) {
    attention("x");
    add("r1", "o", "x");
    norm("n1", "r1", "n1w");
    feedForward("n1");
    add("r2", "w", "n1");
    norm("y", "r2", "n2w");
  } else if (m.parallel) {
    norm("n1", "x", "n1w");
    attention("n1");
    feedForward("n1");
    add("r1", "o", "w");
    add("y", "r1", "x");
  } else {
    norm("n1", "x", "n1w");
    attention("n1");
    add("r1", "o", "x");
    norm("n2", "r1", "n2w");
    feedForward("n2");
    add("y", "w", "r1");
  }
  std::string last = m.parts && m.hidden > 1 ? rotated("y") : "y";
  os << "  return %" << last << " : " << x << "\n}\n";
}

void Printer::parameter(const std::string &value, const std::string &name, const Shape &shape) {
  os << "  %" << value << " = nn.parameter \"" << name << "\" : " << type(shape) << "\n";
}

void Printer::mesh() {
  if (!m.meshInModule)
    return;
  os << "comm.mesh @mesh <dp = " << m.dp << ", tp = " << m.tp << ">";
  for (size_t i = 0; i < m.order.size(); ++i)
    os << (i ? ", " : " order [") << m.order[i];
  os << (m.order.empty() ? "\n" : "]\n");
}

void Printer::signature() {
  std::string ids = type({m.batch, m.seq}, "i64");
  os << "func.func @main(";
  auto operand = [&](const std::string &name, const std::string &t, int64_t low, int64_t high) {
    os << (name == "input_ids" ? "%" : ", %") << name << ": " << t << " {nn.name = \"" << name
       << "\", test.range = array<i64: " << low << ", " << high << ">}";
  };
  auto passOn = [&](const std::string &name, const std::string &t, int64_t low, int64_t high) {
    operand(name, t, low, high);
    passed.push_back({name, t});
  };
  operand("input_ids", ids, 0, m.vocab);
  if (m.mask)
    passOn("mask", type({m.batch, m.seq}, integer()), 0, 2);
  if (m.validLength)
    passOn("valid_length", type({m.batch}, integer()), 0, m.seq + 1);
  if (m.positionOffset)
    passOn("position_offset", type({m.batch}, integer()), -1, 4);
  if (m.loss)
    operand("labels", ids, -1, m.vocab); // labels of -1 are ignored
  if (m.dropout)
    operand("seed", "tensor<i64>", 0, 1000);
  os << ") -> (" << type(resultShape()) << " {nn.name = \""
     << (m.loss   ? "loss"
         : m.head ? "logits"
                  : "last_hidden_state")
     << "\"}) attributes {nn.entry} {\n";
}

/// Prints the input of the first layer and the angles of all layers. Returns the name of the input.
std::string Printer::embed() {
  std::string x = type(rows(m.hidden)), last = "e0";
  parameter("words", "words", {m.vocab, m.hidden});
  os << "  %e0 = nn.embedding %input_ids, %words"
     << (m.wordRole ? " role \"embedding.word\" : " : " : ") << type({m.batch, m.seq}, "i64")
     << ", " << type({m.vocab, m.hidden}) << " -> " << x << "\n";
  if (m.positions) {
    parameter("positions", "positions", {m.seq, m.hidden});
    os << "  %e1 = nn.add %e0, %positions : " << x << ", " << type({m.seq, m.hidden}) << " -> " << x
       << "\n";
    last = "e1";
  }
  if (m.postNorm) {
    parameter("nw", "norm.weight", {m.hidden});
    if (!m.rmsNorm)
      parameter("nwb", "norm.bias", {m.hidden});
    norm("e2", last, "nw");
    last = "e2";
  }
  if (m.dropout) {
    std::string at[] = {type({m.batch}, "i64"), type({m.seq}, "i64"), type({m.hidden}, "i64")};
    for (int i = 0; i < 3; ++i)
      os << "  %at" << i << " = nn.iota : " << at[i] << "\n";
    os << "  %e3 = nn.dropout %" << last << " at (%at0, %at1, %at2 : " << at[0] << ", " << at[1]
       << ", " << at[2] << ") seed %seed : tensor<i64> rate 0.25 site 3 : " << x << "\n";
    last = "e3";
  }
  if (m.rotary) {
    os << "  %cos, %sin = nn.rotary_table [";
    for (int64_t i = 0; i < m.headDim / 2; ++i)
      os << (i ? ", 0." : "0.") << 9 - 3 * i;
    os << "]";
    if (m.positionOffset)
      os << " position_offset %position_offset : " << type({m.batch}, integer());
    os << " : " << type(table()) << "\n";
    passed.insert(passed.begin(), {{"cos", type(table())}, {"sin", type(table())}});
  }
  return last;
}

/// Prints the calls of all layers in sequence. Returns the name of the last value.
std::string Printer::callLayers(std::string last, bool shared) {
  std::string x = type(rows(m.hidden));
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    std::string number = std::to_string(layer), operands, types;
    for (const Operand &operand : passed) {
      operands += ", %" + operand.name;
      types += ", " + operand.type;
    }
    for (const Weight &w : layerWeights()) {
      parameter("l" + number + w.name, "layer." + number + "." + w.name, w.shape);
      operands += ", %l" + number + w.name;
      types += ", " + type(w.shape);
    }
    os << "  %h" << number << " = call @layer" << (shared ? 0 : layer) << "(%" << last << operands
       << ") : (" << x << types << ") -> " << x << "\n";
    last = "h" + number;
  }
  return last;
}

std::string Printer::print() {
  mesh();
  signature();
  std::string last = embed();
  // Equal layers share one function, so that the tests have both one callee with several calls and
  // several callees.
  bool shared = flip(random);
  last = callLayers(last, shared);
  if (!m.postNorm) {
    parameter("nw", "norm.weight", {m.hidden});
    if (!m.rmsNorm)
      parameter("nwb", "norm.bias", {m.hidden});
    norm("y", last, "nw");
    last = "y";
  }
  if (m.head) {
    if (!m.tied)
      parameter("head", "head", {m.vocab, m.hidden});
    linear("logits", last, m.tied ? "words" : "head", "lm_head", rows(m.hidden), m.vocab);
    last = "logits";
  }
  if (m.loss) {
    os << "  %loss = nn.cross_entropy %logits, %labels ignore -1 : " << type(rows(m.vocab)) << ", "
       << type({m.batch, m.seq}, "i64") << " -> " << type(resultShape()) << "\n";
    last = "loss";
  }
  os << "  return %" << last << " : " << type(resultShape()) << "\n}\n";
  for (int64_t index = 0; index < (shared ? 1 : m.layers); ++index)
    layer(index);
  return os.str();
}

void drawMesh(RandomModel &m, Random &random, const ModelKind &kind) {
  static constexpr const char *kStrategies[] = {
      "tp",    "tp-sp",    "tp,vocab", "tp-sp,vocab", "tp-sp,vocab,dp",
      "tp,dp", "tp-sp,dp", "dp",       "auto"};
  static constexpr int64_t kMeshes[][2] = {{1, 1}, {1, 2}, {2, 1}, {1, 3}, {3, 1}, {2, 2}, {1, 4},
                                           {4, 1}, {1, 5}, {5, 1}, {2, 3}, {3, 2}, {1, 6}, {6, 1}};
  if (kind.plan == ModelKind::Strategy) {
    m.strategy = kStrategies[random() % std::size(kStrategies)];
    m.tp = m.strategy == "dp" ? 1 : draw(random, 1, 6);
    m.dp = m.strategy.find("dp") != std::string::npos ? 2 : 1;
  } else {
    m.strategy = kind.plan == ModelKind::Auto ? "auto" : "";
    const auto &mesh = kMeshes[random() % std::size(kMeshes)];
    m.dp = mesh[0];
    m.tp = mesh[1];
  }
  m.meshInModule = m.strategy.empty() || flip(random);
  if (m.meshInModule && flip(random)) {
    m.order.resize(static_cast<size_t>(m.dp * m.tp));
    std::iota(m.order.begin(), m.order.end(), 0);
    std::shuffle(m.order.begin(), m.order.end(), random);
  }
}
} // namespace

std::string RandomModel::describe() const {
  std::ostringstream text;
  text << "layers " << layers << " heads " << heads() << "/" << kvHeads << "x" << headDim
       << " hidden " << hidden << " seq " << seq << " batch " << batch << " ffn " << ffn
       << " vocab " << vocab << (postNorm ? " post-norm" : " pre-norm")
       << (rmsNorm ? " rms_norm" : " layer_norm") << (gated ? " gated" : " gelu")
       << (rotary ? " rotary" : "") << (positions ? " positions" : "") << (biases ? " biases" : "")
       << (causal ? " causal" : "") << (mask ? " mask" : "") << (validLength ? " valid_length" : "")
       << (positionOffset ? " position_offset" : "") << (narrow ? " i32" : "")
       << (parallel ? " parallel" : "") << (head ? tied ? " tied head" : " head" : "")
       << (roles ? "" : " no roles") << (wordRole ? " word role" : "");
  if (experts)
    text << " experts " << experts << " top " << top;
  text << (dropout ? " dropout" : "") << (parts ? " in parts" : "") << (loss ? " loss" : "") << "; "
       << mesh() << " " << (strategy.empty() ? "random shardings" : strategy)
       << (meshInModule ? "" : " mesh asked for");
  for (size_t i = 0; i < order.size(); ++i)
    text << (i ? " " : " order ") << order[i];
  return text.str();
}

RandomModel drawModel(Random &random, const ModelKind &kind) {
  RandomModel m;
  drawMesh(m, random, kind);
  // A strategy pads dimensions that the axis does not divide; random shardings may split any
  // dimension over either axis.
  const bool uneven = kind.plan == ModelKind::Strategy ||
                      (kind.plan == ModelKind::Auto && !kind.reference && flip(random));
  const int64_t unit = uneven ? 1 : kind.plan == ModelKind::Shardings ? m.dp * m.tp : m.tp;
  m.kvHeads = unit * (uneven ? draw(random, 1, 4) : pick(random, {1, 2}));
  m.groupSize = draw(random, 1, uneven ? 4 : 3);
  m.rotary = flip(random);
  m.headDim = m.rotary ? pick(random, {2, 4, 6}) : draw(random, 1, 4);
  m.hidden = uneven ? draw(random, 2, 9) : m.heads() * m.headDim;
  m.ffn = uneven ? draw(random, 2, 13) : unit * pick(random, {1, 3, 4, 5});
  m.vocab = uneven ? draw(random, 2, 24) : unit * pick(random, {2, 5, 9});
  m.batch = m.dp * pick(random, {1, 2, 3});
  m.seq = m.strategy.find("sp") != std::string::npos ? m.tp * draw(random, 1, 3)
                                                     : pick(random, {1, 2, 5, 7, 12});
  m.layers = draw(random, 1, 3);
  m.postNorm = kind.encoder;
  m.causal = !kind.encoder || flip(random);
  m.rmsNorm = flip(random);
  m.gated = flip(random);
  m.positions = flip(random);
  m.biases = flip(random);
  m.mask = flip(random);
  m.validLength = flip(random);
  m.positionOffset = (m.causal || m.rotary) && flip(random);
  m.head = kind.plan == ModelKind::Strategy || flip(random);
  m.tied = m.head && flip(random);
  m.wordRole = kind.plan == ModelKind::Strategy || flip(random);
  m.roles = draw(random, 0, 3) != 0;
  m.narrow = flip(random);
  m.parallel = !m.postNorm && draw(random, 0, 3) == 0;
  // A weight with several users cannot be padded.
  m.parts = kind.parts && flip(random) && !m.isPadded();
  if (kind.reference) {
    m.experts = flip(random) ? unit * pick(random, {1, 2, 3}) : 0;
    m.top = std::min<int64_t>(pick(random, {1, 2}), std::max<int64_t>(m.experts, 1));
    m.dropout = flip(random);
    m.loss = m.head && flip(random);
  }
  if (kind.anyRows && flip(random)) {
    m.seq = draw(random, 1, 2 * m.tp + 2);
    m.batch = draw(random, 1, 2 * m.dp + 1);
  }
  return m;
}

std::string buildModule(const RandomModel &model, Random &random) {
  return Printer(model, random).print();
}

} // namespace braid::test
