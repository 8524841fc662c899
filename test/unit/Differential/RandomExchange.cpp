//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RandomExchange.h"

#include <optional>
#include <sstream>

namespace braid::test {
namespace {

struct Value {
  std::string name;
  std::vector<int64_t> shape;
  bool differs[2]; ///< whether ranks along dp and along tp have different values

  std::string type() const {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += std::to_string(size) + "x";
    return text + "f32>";
  }
};

class Exchange {
public:
  Exchange(Random &random, bool parts) : random(random), parts(parts) {}
  std::string build();

private:
  size_t below(size_t n) { return random() % n; }
  Value &any() { return values[below(values.size())]; }
  std::string fresh() { return "%v" + std::to_string(count++); }
  std::string over(int axis) const {
    return std::string(" over <@mesh, {") + kAxes[axis] + "}> role \"r" + std::to_string(count) +
           "\"";
  }
  void step();
  void reduce(bool several);
  void scatter();
  void gather(std::optional<Value> of = std::nullopt);
  void slice();
  void compute();
  void turn();
  void root();
  void ring();
  void counted();
  void cut();
  void join();

  static constexpr const char *kAxes[] = {"dp", "tp"};
  Random &random;
  bool parts;
  std::vector<Value> values;
  int64_t sizes[2] = {2, 2};
  int64_t count = 0;
  std::ostringstream os, operands;
};

void Exchange::reduce(bool several) {
  int axis = static_cast<int>(below(2));
  Value a = any(), b = any();
  Value x = a, y = b;
  x.differs[axis] = y.differs[axis] = false;
  const char *kind = below(2) ? "sum" : "max";
  if (several && a.name != b.name) {
    std::string both = fresh();
    os << "  " << both << ":2 = comm.all_reduce " << kind << "(" << a.name << ", " << b.name << ")"
       << over(axis) << " : " << a.type() << ", " << b.type() << "\n";
    x.name = both + "#0";
    y.name = both + "#1";
    values.push_back(x);
    if (below(2))
      values.push_back(y); // otherwise it has no use
    return;
  }
  x.name = fresh();
  os << "  " << x.name << " = comm.all_reduce " << kind << "(" << a.name << ")" << over(axis)
     << " : " << a.type() << "\n";
  // Often followed by a slice of the result.
  if (below(4) == 0 && x.shape[0] % sizes[axis] == 0) {
    Value part = x;
    part.shape[0] /= sizes[axis];
    part.differs[axis] = true;
    part.name = fresh();
    os << "  " << part.name << " = comm.local_slice " << x.name << " dim 0 over <@mesh, {"
       << kAxes[axis] << "}> : " << x.type() << " -> " << part.type() << "\n";
    values.push_back(part);
    return;
  }
  values.push_back(x);
}

void Exchange::scatter() {
  int axis = static_cast<int>(below(2));
  Value from = any(), to = from;
  size_t dim = below(from.shape.size());
  if (from.shape[dim] % sizes[axis] != 0)
    return;
  to.shape[dim] /= sizes[axis];
  to.differs[axis] = true;
  to.name = fresh();
  os << "  " << to.name << " = comm.reduce_scatter sum(" << from.name << ") dim " << dim
     << over(axis) << " : " << from.type() << " -> " << to.type() << "\n";
  values.push_back(to);
  if (below(2))
    return;
  Value whole = from;
  whole.differs[axis] = false;
  whole.name = fresh();
  os << "  " << whole.name << " = comm.all_gather(" << to.name << ") dim " << dim << over(axis)
     << " : " << to.type() << " -> " << whole.type() << "\n";
  values.back() = whole; // the shard has no other use, so that gathers can move
}

void Exchange::gather(std::optional<Value> of) {
  int axis = static_cast<int>(below(2));
  Value from = of ? *of : any(), to = from;
  size_t dim = below(from.shape.size());
  if (from.shape[dim] > 8)
    return;
  to.shape[dim] *= sizes[axis];
  to.differs[axis] = false;
  to.name = fresh();
  os << "  " << to.name << " = comm.all_gather(" << from.name << ") dim " << dim << over(axis)
     << " : " << from.type() << " -> " << to.type() << "\n";
  values.push_back(to);
}

void Exchange::slice() {
  int axis = static_cast<int>(below(2));
  Value from = any(), to = from;
  size_t dim = below(from.shape.size());
  if (from.differs[axis] || from.shape[dim] % sizes[axis] != 0)
    return;
  to.shape[dim] /= sizes[axis];
  to.differs[axis] = true;
  to.name = fresh();
  os << "  " << to.name << " = comm.local_slice " << from.name << " dim " << dim
     << " over <@mesh, {" << kAxes[axis] << "}> : " << from.type() << " -> " << to.type() << "\n";
  values.push_back(to);
}

void Exchange::compute() {
  Value a = any(), b = any(), to = a;
  to.name = fresh();
  if (a.shape == b.shape && below(4) != 0) {
    for (int axis : {0, 1})
      to.differs[axis] = a.differs[axis] || b.differs[axis];
    os << "  " << to.name << " = nn.add " << a.name << ", " << b.name << " : " << a.type() << ", "
       << b.type() << " -> " << to.type() << "\n";
  } else {
    os << "  " << to.name << " = nn.activation gelu " << a.name << " : " << to.type() << "\n";
  }
  values.push_back(to);
}

void Exchange::turn() {
  int axis = static_cast<int>(below(2));
  Value from = any(), to = from;
  size_t split = below(from.shape.size()), concat = below(from.shape.size());
  if (from.shape[split] % sizes[axis] != 0 || from.shape[concat] > 8)
    return;
  to.shape[split] /= sizes[axis];
  to.shape[concat] *= sizes[axis];
  to.differs[axis] = true;
  to.name = fresh();
  os << "  " << to.name << " = comm.all_to_all(" << from.name << ") split " << split << " concat "
     << concat << over(axis) << " : " << from.type() << " -> " << to.type() << "\n";
  values.push_back(to);
}

void Exchange::root() {
  int axis = static_cast<int>(below(2));
  size_t at = below(static_cast<size_t>(sizes[axis]));
  Value value = any();
  if (below(2)) {
    Value reduced = value;
    reduced.differs[axis] = true;
    reduced.name = fresh();
    os << "  " << reduced.name << " = comm.reduce sum(" << value.name << ") to " << at << over(axis)
       << " : " << value.type() << "\n";
    values.push_back(value = reduced);
  }
  Value everywhere = value;
  everywhere.differs[axis] = false;
  everywhere.name = fresh();
  os << "  " << everywhere.name << " = comm.broadcast(" << value.name << ") from " << at
     << over(axis) << " : " << value.type() << "\n";
  values.push_back(everywhere);
}

/// A shift around the ring of an axis, with all pairs or without the first, as a permute or as a
/// send and a recv.
void Exchange::ring() {
  int axis = static_cast<int>(below(2));
  Value from = any(), to = from;
  to.differs[axis] = true;
  std::string pairs;
  for (int64_t i = static_cast<int64_t>(below(2)); i < sizes[axis]; ++i)
    pairs += (pairs.empty() ? "" : ", ") + std::to_string(i) + " -> " +
             std::to_string((i + 1) % sizes[axis]);
  to.name = fresh();
  if (sizes[axis] == 1 || below(2)) { // a rank cannot send to itself
    os << "  " << to.name << " = comm.permute(" << from.name << ") pairs [" << pairs << "]"
       << over(axis) << " : " << from.type() << "\n";
  } else {
    // Each send and recv has its own tag, as in a program that overlaps several.
    std::string where = " pairs [" + pairs + "] over <@mesh, {" + kAxes[axis] + "}> tag " +
                        std::to_string(count) + " : " + from.type() + "\n";
    os << "  comm.send(" << from.name << ")" << where << "  " << to.name << " = comm.recv" << where;
  }
  values.push_back(to);
}

void Exchange::counted() {
  int axis = static_cast<int>(below(2));
  Value from = any(), to = from;
  if (from.shape[0] % sizes[axis] != 0)
    return;
  // Counts differ between ranks.
  std::string counts = fresh();
  auto countsType = [&](int64_t ranks) {
    return "tensor<" + std::to_string(from.shape[0] * ranks) + "xi32>";
  };
  std::string type = countsType(1);
  operands << ", " << counts << ": " << type << " {nn.name = \"" << counts.substr(1)
           << "\", test.range = array<i64: 0, " << from.shape[1] + 1
           << ">, comm.sharding = #comm.sharding<@mesh, [{dp, tp}]>, comm.global_type = "
           << countsType(sizes[0] * sizes[1]) << "}";
  to.differs[axis] = true;
  to.name = fresh();
  os << "  " << to.name << ", " << fresh() << " = comm.all_to_all_v(" << from.name << ") counts "
     << counts << " : " << type << over(axis) << " : " << from.type() << "\n";
  values.push_back(to);
}

/// A range of a dimension, often of one that is gathered or reduced over ranks.
void Exchange::cut() {
  Value from = any(), to = from;
  size_t dim = below(from.shape.size());
  const auto all = static_cast<size_t>(from.shape[dim]), size = 1 + below(all);
  to.shape[dim] = static_cast<int64_t>(size);
  to.name = fresh();
  os << "  " << to.name << " = nn.slice " << from.name << " dim " << dim << " from "
     << below(all - size + 1) << " size " << size << " : " << from.type() << " -> " << to.type()
     << "\n";
  values.push_back(to);
}

/// Two values that differ in one dimension at most.
void Exchange::join() {
  Value a = any(), b = any(), to = a;
  size_t dim = below(a.shape.size());
  Value alike = b;
  alike.shape[dim] = a.shape[dim];
  if (alike.shape != a.shape || a.shape[dim] + b.shape[dim] > 16)
    return;
  to.shape[dim] += b.shape[dim];
  for (int axis : {0, 1})
    to.differs[axis] = a.differs[axis] || b.differs[axis];
  to.name = fresh();
  os << "  " << to.name << " = nn.concat " << a.name << ", " << b.name << " dim " << dim << " : "
     << a.type() << ", " << b.type() << " -> " << to.type() << "\n";
  values.push_back(to);
}

void Exchange::step() {
  if (parts && below(3) == 0)
    return below(2) ? cut() : join();
  switch (below(14)) {
  case 0:
  case 1:
    return reduce(/*several=*/false);
  case 2:
    return reduce(/*several=*/true);
  case 3:
  case 4:
    return scatter();
  case 5:
    return gather();
  case 6:
    return slice();
  case 7:
    return turn();
  case 8:
    return root();
  case 9:
    return ring();
  case 10:
    return counted();
  default:
    return compute();
  }
}

std::string Exchange::build() {
  sizes[0] = 1 + static_cast<int64_t>(below(3));
  sizes[1] = 2 + static_cast<int64_t>(below(2));
  std::vector<int64_t> shape = {sizes[0] * sizes[1], sizes[0] * sizes[1] * 2, 3};
  values = {{"%x", shape, {false, false}}, {"%y", shape, {true, true}}};
  os << "  %w = nn.parameter \"w\" of tensor<" << shape[0] * sizes[0] << "x" << shape[1] * sizes[1]
     << "x3xf32> sharded <@mesh, [{dp}, {tp}, {}]> : " << values[0].type() << "\n";
  values[1].name = "%w";
  for (size_t i = 0, n = 6 + below(14); i < n; ++i)
    step();
  // Results must be the same on all ranks.
  std::string results, types, attributes;
  for (int i = 0; i < 2; ++i) {
    Value last = values[values.size() - 1 - below(std::min<size_t>(values.size(), 3))];
    std::string name = fresh();
    os << "  " << name << " = comm.all_reduce max(" << last.name
       << ") over <@mesh, {dp, tp}> : " << last.type() << "\n";
    results += (i ? ", " : "") + name;
    types += (i ? ", " : "") + last.type();
    attributes += (i ? ", " : "") + last.type() + " {nn.name = \"r" + std::to_string(i) + "\"}";
  }
  std::ostringstream module;
  module << "comm.mesh @mesh <dp = " << sizes[0] << ", tp = " << sizes[1]
         << ">\nfunc.func @main(%x: " << values[0].type() << " {nn.name = \"x\"}" << operands.str()
         << ") -> (" << attributes << ") attributes {nn.entry} {\n"
         << os.str() << "  return " << results << " : " << types << "\n}\n";
  return module.str();
}

} // namespace

std::string buildExchange(Random &random, bool parts) { return Exchange(random, parts).build(); }

} // namespace braid::test
