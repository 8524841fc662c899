//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RandomExchange.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace braid::test {
namespace {

/// What ranks along an axis have of a value, as the check of placements sees it.
enum class Held { Same, Part, Sums, Varies };

struct Value {
  std::string name;
  std::vector<int64_t> shape;
  Held held[2];            ///< along dp and along tp
  size_t dims[2] = {0, 0}; ///< of parts
  int minor = 0;           ///< the minor axis, where both cut one dimension

  std::string type() const {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += std::to_string(size) + "x";
    return text + "f32>";
  }
  bool has(int axis, std::initializer_list<Held> among) const {
    return std::find(among.begin(), among.end(), held[axis]) != among.end();
  }
  bool isCutTwice() const {
    return held[0] == Held::Part && held[1] == Held::Part && dims[0] == dims[1];
  }
  void cut(int axis, size_t dim) {
    held[axis] = Held::Part;
    dims[axis] = dim;
    minor = axis;
  }
  bool isCutAlong(size_t dim) const {
    return (held[0] == Held::Part && dims[0] == dim) || (held[1] == Held::Part && dims[1] == dim);
  }
  /// Whether an operation may take both: along each axis they have the same or parts alike; what
  /// varies fits everything.
  bool fits(const Value &other) const {
    for (int axis : {0, 1})
      if (held[axis] != Held::Varies && other.held[axis] != Held::Varies &&
          (held[axis] != other.held[axis] ||
           (held[axis] == Held::Part && dims[axis] != other.dims[axis])))
        return false;
    return !isCutTwice() || !other.isCutTwice() || minor == other.minor;
  }
  void combineWith(const Value &other) {
    for (int axis : {0, 1})
      if (other.held[axis] == Held::Varies)
        held[axis] = Held::Varies;
  }
  /// Whether a gather may join the parts.
  bool isMinor(int axis) const { return !isCutTwice() || minor == axis; }
};

class Exchange {
public:
  Exchange(Random &random, bool parts, bool states)
      : random(random), parts(parts), states(states) {}
  std::string build();

private:
  size_t below(size_t n) { return random() % n; }
  /// One of the values that fit; none where none does.
  std::optional<Value> any(llvm::function_ref<bool(const Value &)> fits) {
    std::vector<Value> found;
    std::copy_if(values.begin(), values.end(), std::back_inserter(found), fits);
    return found.empty() ? std::nullopt : std::optional(found[below(found.size())]);
  }
  std::string fresh() { return "%v" + std::to_string(count++); }
  std::string over(int axis) const {
    return std::string(" over <@mesh, {") + kAxes[axis] + "}> role \"r" + std::to_string(count) +
           "\"";
  }
  void step();
  void reduce(bool several);
  void scatter();
  void gather();
  void partialSums(int axis);
  Value gathered(const Value &from, int axis, size_t dim);
  Value sameEverywhere(Value value);
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
  bool parts, states;
  std::vector<Value> values;
  int64_t sizes[2] = {2, 2};
  int64_t count = 0;
  std::ostringstream os, operands;
};

void Exchange::reduce(bool several) {
  int axis = static_cast<int>(below(2));
  bool sum = below(2);
  auto fits = [&](const Value &value) {
    return value.has(axis, {sum ? Held::Sums : Held::Same, Held::Varies});
  };
  std::optional<Value> a = any(fits), b = any(fits);
  if (!a)
    return;
  Value x = *a, y = *b;
  x.held[axis] = y.held[axis] = Held::Same;
  const char *kind = sum ? "sum" : "max";
  if (several && a->name != b->name) {
    std::string both = fresh();
    os << "  " << both << ":2 = comm.all_reduce " << kind << "(" << a->name << ", " << b->name
       << ")" << over(axis) << " : " << a->type() << ", " << b->type() << "\n";
    x.name = both + "#0";
    y.name = both + "#1";
    values.push_back(x);
    if (below(2))
      values.push_back(y); // otherwise it has no use
    return;
  }
  x.name = fresh();
  os << "  " << x.name << " = comm.all_reduce " << kind << "(" << a->name << ")" << over(axis)
     << " : " << a->type() << "\n";
  // Often followed by a slice of the result.
  if (below(4) == 0 && x.shape[0] % sizes[axis] == 0) {
    Value part = x;
    part.shape[0] /= sizes[axis];
    part.cut(axis, 0);
    part.name = fresh();
    os << "  " << part.name << " = comm.part " << x.name << " dim 0 over <@mesh, {" << kAxes[axis]
       << "}> : " << x.type() << " -> " << part.type() << "\n";
    values.push_back(part);
    return;
  }
  values.push_back(x);
}

void Exchange::scatter() {
  int axis = static_cast<int>(below(2));
  std::optional<Value> from =
      any([&](const Value &value) { return value.has(axis, {Held::Sums, Held::Varies}); });
  if (!from)
    return;
  Value to = *from;
  size_t dim = below(from->shape.size());
  if (from->shape[dim] % sizes[axis] != 0)
    return;
  to.shape[dim] /= sizes[axis];
  to.cut(axis, dim);
  to.name = fresh();
  os << "  " << to.name << " = comm.reduce_scatter sum(" << from->name << ") dim " << dim
     << over(axis) << " : " << from->type() << " -> " << to.type() << "\n";
  values.push_back(to);
  if (below(2))
    return;
  values.back() = gathered(to, axis, dim); // the shard has no other use, so that gathers can move
}

Value Exchange::gathered(const Value &from, int axis, size_t dim) {
  Value to = from;
  to.shape[dim] *= sizes[axis];
  to.held[axis] = Held::Same;
  to.name = fresh();
  os << "  " << to.name << " = comm.all_gather(" << from.name << ") dim " << dim << over(axis)
     << " : " << from.type() << " -> " << to.type() << "\n";
  return to;
}

void Exchange::gather() {
  int axis = static_cast<int>(below(2));
  std::optional<Value> from = any([&](const Value &value) {
    return value.has(axis, {Held::Part, Held::Varies}) && value.isMinor(axis);
  });
  if (!from)
    return;
  size_t dim = from->held[axis] == Held::Part ? from->dims[axis] : below(from->shape.size());
  if (from->shape[dim] > 8)
    return;
  values.push_back(gathered(*from, axis, dim));
}

void Exchange::slice() {
  int axis = static_cast<int>(below(2));
  std::optional<Value> from =
      any([&](const Value &value) { return value.has(axis, {Held::Same}); });
  if (!from)
    return;
  Value to = *from;
  size_t dim = below(from->shape.size());
  if (from->shape[dim] % sizes[axis] != 0)
    return;
  to.shape[dim] /= sizes[axis];
  to.cut(axis, dim);
  to.name = fresh();
  os << "  " << to.name << " = comm.part " << from->name << " dim " << dim << " over <@mesh, {"
     << kAxes[axis] << "}> : " << from->type() << " -> " << to.type() << "\n";
  values.push_back(to);
}

void Exchange::compute() {
  Value a = *any([](const Value &) { return true; });
  std::optional<Value> b =
      any([&](const Value &value) { return a.shape == value.shape && a.fits(value); });
  Value to = a;
  to.name = fresh();
  if (b && below(4) != 0) {
    to.combineWith(*b);
    os << "  " << to.name << " = nn.add " << a.name << ", " << b->name << " : " << a.type() << ", "
       << b->type() << " -> " << to.type() << "\n";
  } else {
    if (a.has(0, {Held::Sums}) || a.has(1, {Held::Sums}))
      return;
    os << "  " << to.name << " = nn.activation gelu " << a.name << " : " << to.type() << "\n";
  }
  values.push_back(to);
}

void Exchange::turn() {
  int axis = static_cast<int>(below(2));
  std::optional<Value> from = any([&](const Value &value) {
    return value.has(axis, {Held::Part, Held::Varies}) && value.isMinor(axis);
  });
  if (!from)
    return;
  Value to = *from;
  size_t split = below(from->shape.size());
  size_t concat = from->held[axis] == Held::Part ? from->dims[axis] : below(from->shape.size());
  if (from->shape[split] % sizes[axis] != 0 || from->shape[concat] > 8)
    return;
  to.shape[split] /= sizes[axis];
  to.shape[concat] *= sizes[axis];
  if (from->held[axis] == Held::Part && split != concat)
    to.cut(axis, split);
  else
    to.held[axis] = Held::Varies;
  to.name = fresh();
  os << "  " << to.name << " = comm.all_to_all(" << from->name << ") split " << split << " concat "
     << concat << over(axis) << " : " << from->type() << " -> " << to.type() << "\n";
  values.push_back(to);
}

void Exchange::root() {
  int axis = static_cast<int>(below(2));
  size_t at = below(static_cast<size_t>(sizes[axis]));
  bool reduces = below(2);
  std::optional<Value> found = any([&](const Value &value) {
    return reduces ? value.has(axis, {Held::Sums, Held::Varies}) : !value.has(axis, {Held::Sums});
  });
  if (!found)
    return;
  Value value = *found;
  if (reduces) {
    Value reduced = value;
    reduced.held[axis] = Held::Varies;
    reduced.name = fresh();
    os << "  " << reduced.name << " = comm.reduce sum(" << value.name << ") to " << at << over(axis)
       << " : " << value.type() << "\n";
    values.push_back(value = reduced);
  }
  Value everywhere = value;
  everywhere.held[axis] = Held::Same;
  everywhere.name = fresh();
  os << "  " << everywhere.name << " = comm.broadcast(" << value.name << ") from " << at
     << over(axis) << " : " << value.type() << "\n";
  values.push_back(everywhere);
}

/// A shift around the ring of an axis, with all pairs or without the first, as a permute or as a
/// send and a recv.
void Exchange::ring() {
  int axis = static_cast<int>(below(2));
  Value from = *any([](const Value &) { return true; }), to = from;
  std::string pairs;
  const auto begin = static_cast<int64_t>(below(2));
  for (int64_t i = begin; i < sizes[axis]; ++i)
    pairs += (pairs.empty() ? "" : ", ") + std::to_string(i) + " -> " +
             std::to_string((i + 1) % sizes[axis]);
  to.name = fresh();
  if (sizes[axis] == 1 || below(2)) { // a rank cannot send to itself
    if (begin != 0 || from.held[axis] == Held::Part)
      to.held[axis] = Held::Varies;
    os << "  " << to.name << " = comm.permute(" << from.name << ") pairs [" << pairs << "]"
       << over(axis) << " : " << from.type() << "\n";
  } else {
    to.held[axis] = Held::Varies;
    // Each send and recv has its own tag, as in a program that overlaps several.
    std::string where = " pairs [" + pairs + "] over <@mesh, {" + kAxes[axis] + "}> tag " +
                        std::to_string(count) + " : " + from.type() + "\n";
    os << "  comm.send(" << from.name << ")" << where << "  " << to.name << " = comm.recv" << where;
  }
  values.push_back(to);
}

void Exchange::counted() {
  int axis = static_cast<int>(below(2));
  Value from = *any([](const Value &) { return true; }), to = from;
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
  to.held[0] = to.held[1] = Held::Varies;
  to.name = fresh();
  os << "  " << to.name << ", " << fresh() << " = comm.all_to_all_v(" << from.name << ") counts "
     << counts << " : " << type << over(axis) << " : " << from.type() << "\n";
  values.push_back(to);
}

/// A range of a dimension that no axis cuts, often of one that is gathered or reduced over ranks.
void Exchange::cut() {
  Value from = *any([](const Value &) { return true; }), to = from;
  size_t dim = below(from.shape.size());
  if (from.isCutAlong(dim))
    return;
  const auto all = static_cast<size_t>(from.shape[dim]), size = 1 + below(all);
  to.shape[dim] = static_cast<int64_t>(size);
  to.name = fresh();
  os << "  " << to.name << " = nn.slice " << from.name << " dim " << dim << " from "
     << below(all - size + 1) << " size " << size << " : " << from.type() << " -> " << to.type()
     << "\n";
  values.push_back(to);
}

/// Two values that differ in one dimension at most, which no axis cuts.
void Exchange::join() {
  Value a = *any([](const Value &) { return true; }), to = a;
  size_t dim = below(a.shape.size());
  std::optional<Value> b = any([&](const Value &value) {
    Value alike = value;
    alike.shape[dim] = a.shape[dim];
    return alike.shape == a.shape && a.shape[dim] + value.shape[dim] <= 16 && a.fits(value) &&
           !a.isCutAlong(dim) && !value.isCutAlong(dim);
  });
  if (!b)
    return;
  to.shape[dim] += b->shape[dim];
  to.combineWith(*b);
  to.name = fresh();
  os << "  " << to.name << " = nn.concat " << a.name << ", " << b->name << " dim " << dim << " : "
     << a.type() << ", " << b->type() << " -> " << to.type() << "\n";
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

/// Matmuls contract a dimension that an axis cuts.
void Exchange::partialSums(int axis) {
  Value sums{"%sums" + std::to_string(axis), values[0].shape, {Held::Same, Held::Same}};
  sums.held[axis] = Held::Sums;
  std::string columns = std::to_string(3 * sizes[axis]), cut = kAxes[axis];
  const std::vector<int64_t> &shape = sums.shape;
  os << "  %in" << axis << " = nn.parameter \"in" << axis << "\" of tensor<" << shape[0] << "x"
     << shape[1] << "x" << columns << "xf32> sharded <@mesh, [{}, {}, {" << cut
     << "}]> : " << sums.type() << "\n  %weight" << axis << " = nn.parameter \"weight" << axis
     << "\" of tensor<3x" << columns << "xf32> sharded <@mesh, [{}, {" << cut
     << "}]> : tensor<3x3xf32>\n  " << sums.name << " = nn.linear %in" << axis << ", %weight"
     << axis << " : " << sums.type() << ", tensor<3x3xf32> -> " << sums.type() << "\n";
  values.push_back(sums);
}

/// A value that is the same on all ranks, computed from `value`.
Value Exchange::sameEverywhere(Value value) {
  for (int axis : {value.isCutTwice() ? value.minor : 0, value.isCutTwice() ? 1 - value.minor : 1})
    if (value.held[axis] == Held::Part) {
      value = gathered(value, axis, value.dims[axis]);
    } else {
      std::string name = fresh();
      os << "  " << name << " = comm.all_reduce "
         << (value.held[axis] == Held::Sums ? "sum" : "max") << "(" << value.name
         << ") over <@mesh, {" << kAxes[axis] << "}> : " << value.type() << "\n";
      value.name = name;
    }
  return value;
}

std::string Exchange::build() {
  sizes[0] = 1 + static_cast<int64_t>(below(3));
  sizes[1] = 2 + static_cast<int64_t>(below(2));
  std::vector<int64_t> shape = {sizes[0] * sizes[1], sizes[0] * sizes[1] * 2, 3};
  values = {{"%x", shape, {Held::Same, Held::Same}},
            {"%w", shape, {Held::Part, Held::Part}, {0, 1}}};
  os << "  %w = nn.parameter \"w\" of tensor<" << shape[0] * sizes[0] << "x" << shape[1] * sizes[1]
     << "x3xf32> sharded <@mesh, [{dp}, {tp}, {}]> : " << values[0].type() << "\n";
  for (int axis : {0, 1})
    partialSums(axis);
  for (size_t i = 0, n = 6 + below(14); i < n; ++i)
    step();
  // Results must be the same on all ranks, and so are states.
  std::string results, types, attributes, arguments;
  for (size_t i = 0, n = states ? 1 + below(2) : 0; i < n; ++i) {
    const Value value = sameEverywhere(values[below(values.size())]);
    const std::string number = std::to_string(i), type = value.type();
    os << "  %new" << number << " = nn.add %state" << number << ", " << value.name << " : " << type
       << ", " << type << " -> " << type << "\n";
    arguments += ", %state" + number + ": " + type + " {nn.name = \"s" + number + "\", nn.state}";
    results += ", %new" + number;
    types += ", " + type;
    attributes += ", " + type + " {nn.name = \"s" + number + "\"}";
    if (below(3) == 0) { // the old value is needed beside the new one
      os << "  %both" << number << " = nn.mul %state" << number << ", %new" << number << " : "
         << type << ", " << type << " -> " << type << "\n";
      values.push_back({"%both" + number, value.shape, {Held::Same, Held::Same}});
    }
  }
  std::string stateResults = std::exchange(results, ""), stateTypes = std::exchange(types, ""),
              stateAttributes = std::exchange(attributes, "");
  for (int i = 0; i < 2; ++i) {
    Value last =
        sameEverywhere(values[values.size() - 1 - below(std::min<size_t>(values.size(), 3))]);
    results += (i ? ", " : "") + last.name;
    types += (i ? ", " : "") + last.type();
    attributes += (i ? ", " : "") + last.type() + " {nn.name = \"r" + std::to_string(i) + "\"}";
  }
  std::ostringstream module;
  module << "comm.mesh @mesh <dp = " << sizes[0] << ", tp = " << sizes[1]
         << ">\nfunc.func @main(%x: " << values[0].type() << " {nn.name = \"x\"}" << operands.str()
         << arguments << ") -> (" << attributes << stateAttributes << ") attributes {nn.entry} {\n"
         << os.str() << "  return " << results << stateResults << " : " << types << stateTypes
         << "\n}\n";
  return module.str();
}

} // namespace

std::string buildExchange(Random &random, bool parts, bool states) {
  return Exchange(random, parts, states).build();
}

} // namespace braid::test
