//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reshards every form of a value, partial forms included, to every other form on small meshes.
// Partitioning must send no more bytes than the cheapest sequence of collectives, which is computed
// by all-pairs shortest paths, and must keep the value. Also reshards random forms with sub-axes,
// for which only the value is checked.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "dialects/Comm/IR/Comm.h"
#include "test/lib/Interpreter/Equivalence.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <random>

using namespace mlir;
using namespace braid;
using namespace braid::test;

namespace {

struct Axis {
  std::string name;
  int64_t size;
};
/// The axis names of each dimension, major first.
using Dims = std::vector<std::vector<std::string>>;
struct Form {
  Dims dims;
  std::vector<std::string> partial;
};

constexpr int64_t kRows = 24, kColumns = 48;

struct Table {
  /// `axes` are the mesh's axes factored into primes, since sequences may use sub-axes.
  Table(std::string mesh, std::vector<Axis> axes) : mesh(std::move(mesh)), axes(std::move(axes)) {
    for (const Axis &axis : this->axes)
      names.push_back(axis.name);
    extend({{{}, {}}, {}}, names);
    for (size_t i = 0; i < forms.size(); ++i)
      for (size_t j = 0; j < forms.size(); ++j)
        bytes.push_back(i == j ? 0 : direct(forms[i], forms[j]));
    const size_t n = forms.size();
    for (size_t k = 0; k < n; ++k)
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
          if (bytes[i * n + k] != kNoWay && bytes[k * n + j] != kNoWay)
            bytes[i * n + j] = std::min(bytes[i * n + j], bytes[i * n + k] + bytes[k * n + j]);
  }
  /// Partial sums may first be sliced over axes that shard the target. (They could also be
  /// distributed over axes that hold replicas and gathered afterwards, but this would not be a
  /// reduction.)
  int64_t least(size_t from, size_t to) const {
    int64_t best = kNoWay;
    for (size_t first = 0; first < forms.size(); ++first)
      if (isSliceFor(forms[from], forms[first], forms[to]))
        best = std::min(best, bytes[first * forms.size() + to]);
    return best;
  }

  int64_t count(const std::vector<std::string> &of) const {
    int64_t n = 1;
    for (const std::string &name : of)
      for (const Axis &axis : axes)
        if (axis.name == name)
          n *= axis.size;
    return n;
  }

  /// Whether the two sub-axes of an axis, `major` and `minor`, are used as the full axis.
  bool isWhole(const Form &form, const std::string &major, const std::string &minor) const {
    for (const std::vector<std::string> *list : {&form.dims[0], &form.dims[1], &form.partial}) {
      auto it = std::find(list->begin(), list->end(), major);
      bool follows = it != list->end() && std::next(it) != list->end() && *std::next(it) == minor;
      if (!follows && (it != list->end() || std::count(list->begin(), list->end(), minor)))
        return false;
    }
    return true;
  }

  std::string mesh;
  std::vector<Axis> axes;
  std::vector<std::string> names;
  std::vector<Form> forms;
  static constexpr int64_t kNoWay = std::numeric_limits<int64_t>::max();

private:
  /// Appends all forms that extend `form` by unused axes in any way.
  void extend(const Form &form, const std::vector<std::string> &unused) {
    forms.push_back(form);
    // Every order of axes within a dimension, but one order of partial axes, so that each form is
    // made once.
    for (size_t place = 0; place < 3; ++place)
      for (const std::string &name : unused) {
        Form next = form;
        std::vector<std::string> &list = place < 2 ? next.dims[place] : next.partial;
        bool laterIsUsed = place == 0 ? !form.dims[1].empty() || !form.partial.empty()
                                      : place == 1 && !form.partial.empty();
        if (laterIsUsed || (place == 2 && !list.empty() && name < list.back()))
          continue;
        list.push_back(name);
        std::vector<std::string> rest;
        for (const std::string &other : unused)
          if (other != name)
            rest.push_back(other);
        extend(next, rest);
      }
  }

  static bool isSliceFor(const Form &from, const Form &slice, const Form &to) {
    if (from.partial != slice.partial)
      return false;
    for (size_t d = 0; d < 2; ++d) {
      std::vector<std::string> added = tail(from.dims[d], slice.dims[d]);
      if (added.empty() && from.dims[d] != slice.dims[d])
        return false;
      for (const std::string &axis : added)
        if (std::find(to.dims[0].begin(), to.dims[0].end(), axis) == to.dims[0].end() &&
            std::find(to.dims[1].begin(), to.dims[1].end(), axis) == to.dims[1].end())
          return false;
    }
    return from.dims == slice.dims || !from.partial.empty();
  }

  int64_t localBytes(const Form &form) const {
    return 4 * kRows * kColumns / count(form.dims[0]) / count(form.dims[1]);
  }

  /// The axes of `longer` after its prefix `list`; empty if `list` is not a prefix.
  static std::vector<std::string> tail(const std::vector<std::string> &list,
                                       const std::vector<std::string> &longer) {
    if (longer.size() <= list.size() || !std::equal(list.begin(), list.end(), longer.begin()))
      return {};
    return {longer.begin() + static_cast<std::ptrdiff_t>(list.size()), longer.end()};
  }

  /// Bytes that a rank sends if one operation converts `from` to `to`, or kNoWay.
  int64_t direct(const Form &from, const Form &to) const {
    const int64_t local = localBytes(from);
    if (!from.partial.empty()) {
      std::vector<std::string> reduced;
      for (const std::string &axis : from.partial)
        if (std::find(to.partial.begin(), to.partial.end(), axis) == to.partial.end())
          reduced.push_back(axis);
      if (reduced.size() + to.partial.size() != from.partial.size() || reduced.empty())
        return kNoWay;
      const int64_t n = count(reduced);
      if (from.dims == to.dims)
        return 2 * local / n * (n - 1); // all_reduce
      for (size_t d = 0; d < 2; ++d) {
        std::vector<std::string> cut = tail(from.dims[d], to.dims[d]);
        std::sort(cut.begin(), cut.end());
        if (from.dims[1 - d] == to.dims[1 - d] && cut == reduced)
          return local / n * (n - 1); // reduce_scatter
      }
      return kNoWay;
    }
    if (!to.partial.empty())
      return kNoWay;
    for (size_t d = 0; d < 2; ++d) {
      const auto &other = from.dims[1 - d], &otherTo = to.dims[1 - d];
      std::vector<std::string> cut = tail(from.dims[d], to.dims[d]),
                               joined = tail(to.dims[d], from.dims[d]);
      if (!cut.empty() && other == otherTo)
        return 0; // part
      if (!joined.empty() && other == otherTo)
        return local * (count(joined) - 1); // all_gather
      if (!joined.empty() && tail(other, otherTo) == joined)
        return local / count(joined) * (count(joined) - 1); // all_to_all
    }
    if (count(from.dims[0]) == count(to.dims[0]) && count(from.dims[1]) == count(to.dims[1]))
      return local; // permute
    return kNoWay;
  }

  std::vector<int64_t> bytes;
};

std::string list(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return "{" + text + "}";
}

std::string text(const Form &form) {
  std::string text =
      "#comm.sharding<@mesh, [" + list(form.dims[0]) + ", " + list(form.dims[1]) + "]";
  for (size_t i = 0; i < form.partial.size(); ++i)
    text += (i ? ", " : ", partial = [") + form.partial[i] + " = sum";
  return text + (form.partial.empty() ? ">" : "]>");
}

/// A module that returns a value of the form `from` in the form `to`.
std::string module(const Table &table, const Form &from, const Form &to) {
  std::string x = "tensor<24x48xf32>",
              result = "(" + x + " {nn.name = \"y\", comm.sharding = " + text(to) + "})";
  std::string head = "comm.mesh @mesh <" + table.mesh + ">\nfunc.func @main(%x: ";
  if (from.partial.empty())
    return head + x + " {nn.name = \"x\", comm.sharding = " + text(from) + "}) -> " + result +
           " attributes {nn.entry} {\n  return %x : " + x + "\n}\n";
  // A sum over a dimension that the partial axes shard.
  Form input{{from.dims[0], from.partial}, {}}, weight{{from.dims[1], from.partial}, {}};
  return head + "tensor<24x24xf32> {nn.name = \"x\", comm.sharding = " + text(input) +
         "}, %w: tensor<48x24xf32> {nn.name = \"w\", comm.sharding = " + text(weight) + "}) -> " +
         result + " attributes {nn.entry} {\n  %0 = nn.linear %x, %w {comm.shardings = [" +
         text(from) + "]} : tensor<24x24xf32>, tensor<48x24xf32> -> " + x + "\n  return %0 : " + x +
         "\n}\n";
}

struct Reshard : DifferentialTest {
  Tally used;
  int64_t pairs = 0;

  void check(const Table &table, size_t from, size_t to) {
    std::string source = module(table, table.forms[from], table.forms[to]);
    SCOPED_TRACE(source);
    OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(source, &context);
    ASSERT_TRUE(model);
    OwningOpRef<ModuleOp> cut = transformed(*model, "braid-partition");
    ASSERT_TRUE(cut);
    int64_t sent = 0;
    std::string sequence;
    cut->walk([&](Operation *op) {
      if (auto collective = dyn_cast<comm::CollectiveOpInterface>(op)) {
        sent += collective.getBytesSent(comm::groupSize(op, collective.getGroup()));
      }
      if (op->getName().getDialectNamespace() == "comm" && !isa<comm::MeshOp>(op)) {
        ++used[op->getName().getStringRef().str()];
        sequence += " " + op->getName().getStringRef().str();
      }
    });
    EXPECT_EQ(sent, table.least(from, to)) << sequence;
    checkValues(*model, *cut, 1 + from);
    ++pairs;
  }

  void checkValues(ModuleOp model, ModuleOp cut, uint64_t seed) {
    runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(model, seed);
    ASSERT_TRUE(inputs.ok()) << inputs.status().message();
    std::unique_ptr<runtime::WeightSource> weights = runtime::WeightSource::random(1);
    runtime::Result<Equivalence> result = compareForms(model, cut, *inputs, *weights);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_LE(result->relativeL2, 1e-12);
  }

  void checkAll(const std::string &mesh, std::vector<Axis> axes,
                const std::pair<std::string, std::string> &parts = {}) {
    Table table(mesh, std::move(axes));
    auto isWhole = [&](size_t form) {
      return parts.first.empty() || table.isWhole(table.forms[form], parts.first, parts.second);
    };
    for (size_t from = 0; from < table.forms.size(); ++from)
      for (size_t to = 0; to < table.forms.size(); ++to)
        if (table.forms[to].partial.empty() && isWhole(from) && isWhole(to) && !HasFailure())
          check(table, from, to);
  }
};

/// A random sharding of a value of `shape` over axes and sub-axes.
std::string randomSharding(const std::vector<Axis> &mesh, const std::vector<int64_t> &shape,
                           std::mt19937_64 &random) {
  struct Part {
    size_t axis;
    int64_t begin, end;
  };
  std::vector<Part> used;
  std::vector<int64_t> extents = shape;
  std::vector<std::vector<std::string>> dims(shape.size());
  for (size_t tries = random() % (6 * mesh.size() + 2); tries > 0; --tries) {
    size_t axis = random() % mesh.size(), dim = random() % shape.size();
    int64_t n = mesh[axis].size, begin = 1 + static_cast<int64_t>(random() % n),
            end = 1 + static_cast<int64_t>(random() % n);
    bool isWhole = random() % 4 == 0;
    if (isWhole)
      begin = 1, end = n;
    bool isFree = std::all_of(used.begin(), used.end(), [&](const Part &part) {
      return part.axis != axis || begin % part.end == 0 || part.begin % end == 0;
    });
    if (n % end != 0 || end % begin != 0 || end == begin || !isFree ||
        extents[dim] % (end / begin) != 0)
      continue;
    used.push_back({axis, begin, end});
    extents[dim] /= end / begin;
    dims[dim].push_back(isWhole ? mesh[axis].name
                                : mesh[axis].name + ":(" + std::to_string(begin) + ")" +
                                      std::to_string(end / begin));
  }
  std::string text;
  for (const std::vector<std::string> &dim : dims)
    text += (text.empty() ? "" : ", ") + list(dim);
  return "#comm.sharding<@mesh, [" + text + "]>";
}
} // namespace

TEST_F(Reshard, NoPairOfFormsSendsMoreThanItMust) {
  checkAll("tp = 2", {{"tp", 2}});
  checkAll("tp = 3", {{"tp", 3}});
  EXPECT_EQ(pairs, 2 * 4 * 3);
  checkAll("dp = 2, tp = 2", {{"dp", 2}, {"tp", 2}});
  checkAll("dp = 2, tp = 4", {{"dp", 2}, {"tp:(1)2", 2}, {"tp:(2)2", 2}}, {"tp:(1)2", "tp:(2)2"});
  checkAll("dp = 3, tp = 2", {{"dp", 3}, {"tp", 2}});
  EXPECT_EQ(pairs, 2 * 4 * 3 + 3 * 18 * 11);
  print("used:", used);
  for (const char *name : {"comm.all_reduce", "comm.reduce_scatter", "comm.all_gather",
                           "comm.all_to_all", "comm.permute", "comm.part"})
    EXPECT_GE(used[name], 20u) << name;
}

// Random reshards over sub-axes of mixed prime sizes, which may overlap: the value stays the same.
TEST_F(Reshard, RandomSubAxesKeepTheValue) {
  const uint64_t seed = fromEnvironment("BRAID_DIFFERENTIAL_SEED", 12);
  const uint64_t cases = fromEnvironment("BRAID_DIFFERENTIAL_CASES", 2100);
  std::cout << "seed " << seed << ", " << cases << " reshards\n";
  std::mt19937_64 random(seed);
  const std::vector<std::vector<Axis>> meshes = {
      {{"x", 6}},           {{"x", 12}},          {{"x", 2}, {"y", 6}},
      {{"x", 6}, {"y", 2}}, {{"x", 4}, {"y", 3}}, {{"x", 2}, {"y", 3}, {"z", 2}},
      {{"x", 10}},          {{"x", 8}, {"y", 2}}, {{"x", 2}, {"y", 2}, {"z", 2}, {"w", 2}}};
  constexpr uint64_t kTogether = 20; // number of reshards in one module
  for (uint64_t i = 0; i < cases && !HasFailure(); i += kTogether) {
    const std::vector<Axis> &mesh = meshes[random() % meshes.size()];
    std::string axes, arguments, results, values, types;
    for (const Axis &axis : mesh)
      axes += (axes.empty() ? "" : ", ") + axis.name + " = " + std::to_string(axis.size);
    for (uint64_t j = 0; j < kTogether; ++j) {
      std::vector<int64_t> shape(1 + random() % 3, 12);
      if (random() % 2)
        shape.front() = 20;
      std::string type = "tensor<", number = std::to_string(j);
      for (int64_t extent : shape)
        type += std::to_string(extent) + "x";
      type += "f32>";
      std::string comma = j ? ", " : "";
      arguments += comma + "%x" + number + ": " + type + " {nn.name = \"x" + number +
                   "\", comm.sharding = " + randomSharding(mesh, shape, random) + "}";
      results += comma + type + " {nn.name = \"y" + number +
                 "\", comm.sharding = " + randomSharding(mesh, shape, random) + "}";
      values += comma + "%x" + number;
      types += comma + type;
    }
    std::string source = "comm.mesh @mesh <" + axes + ">\nfunc.func @main(" + arguments + ") -> (" +
                         results + ") attributes {nn.entry} {\n  return " + values + " : " + types +
                         "\n}\n";
    SCOPED_TRACE(source);
    OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(source, &context);
    ASSERT_TRUE(model);
    OwningOpRef<ModuleOp> cut = transformed(*model, "braid-partition");
    ASSERT_TRUE(cut);
    checkValues(*model, *cut, 1 + i);
  }
}
