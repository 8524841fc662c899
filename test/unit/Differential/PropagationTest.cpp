//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random graphs of operations, in which some values have random shardings, over sub-axes too.
// Propagation must succeed, a second propagation must change nothing, and the partitioned module
// must give the same values. BRAID_DIFFERENTIAL_SEED and BRAID_DIFFERENTIAL_CASES select the cases.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "dialects/Comm/IR/Comm.h"
#include "test/lib/Interpreter/Equivalence.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <random>

using namespace mlir;
using namespace braid;
using namespace braid::test;

namespace {

/// A mesh, and axes or sub-axes of it that may occur in one sharding together.
struct RandomMesh {
  std::string text;
  std::vector<std::pair<std::string, int64_t>> parts;
};
const RandomMesh kMeshes[] = {{"a = 2, b = 2", {{"a", 2}, {"b", 2}}},
                              {"a = 4, b = 2", {{"a:(1)2", 2}, {"a:(2)2", 2}, {"b", 2}}},
                              {"a = 4", {{"a", 4}}},
                              {"a = 6", {{"a:(1)2", 2}, {"a:(2)3", 3}}},
                              {"a = 2, b = 3", {{"a", 2}, {"b", 3}}}};

class RandomGraph {
public:
  explicit RandomGraph(uint64_t seed) : engine(seed) {}

  std::string build() {
    mesh = &kMeshes[draw(std::size(kMeshes))];
    for (int64_t i = 0, n = 2 + draw(2); i < n; ++i)
      addArgument(sizes[draw(2)], sizes[draw(2)]);
    for (int64_t i = 0, n = 3 + draw(6); i < n; ++i)
      addOp();
    std::string returned, types, resultTypes;
    for (int64_t i = 0, n = 1 + draw(2); i < n; ++i) {
      const Value &value = i == 0 ? values.back() : values[draw(values.size())];
      returned += (i ? ", " : "") + value.name;
      types += (i ? ", " : "") + value.type();
      resultTypes += (i ? ", " : "") + value.type() + " {nn.name = \"r" + std::to_string(i) + "\"" +
                     stated(value, 0.5, ", comm.sharding = ", "") + "}";
    }
    return "comm.mesh @mesh <" + mesh->text + ">\n" + callee + "func.func @main(" + arguments +
           ") -> (" + resultTypes + ") attributes {nn.entry} {\n" + body + "  return " + returned +
           " : " + types + "\n}\n";
  }

private:
  struct Value {
    std::string name;
    int64_t rows, columns;
    std::string type() const {
      return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>";
    }
  };

  int64_t draw(size_t n) { return static_cast<int64_t>(engine() % n); }
  bool chance(double p) { return std::uniform_real_distribution<double>()(engine) < p; }

  /// A random sharding attribute, or an empty string.
  std::string stated(const Value &value, double probability, const std::string &before,
                     const std::string &after) {
    if (!chance(probability))
      return "";
    auto parts = mesh->parts;
    std::shuffle(parts.begin(), parts.end(), engine);
    std::string text;
    for (int64_t size : {value.rows, value.columns}) {
      std::string axes;
      while (!parts.empty() && chance(0.5) && size % parts.back().second == 0) {
        axes += (axes.empty() ? "" : ", ") + parts.back().first;
        size /= parts.back().second;
        parts.pop_back();
      }
      if (chance(0.5))
        axes += axes.empty() ? "?" : ", ?";
      text += (text.empty() ? "{" : ", {") + axes + "}";
    }
    return before + "#comm.sharding<@mesh, [" + text + "]>" + after;
  }

  void addArgument(int64_t rows, int64_t columns) {
    Value value{"%x" + std::to_string(values.size()), rows, columns};
    arguments += (arguments.empty() ? "" : ", ") + value.name + ": " + value.type() +
                 " {nn.name = \"" + value.name.substr(1) + "\"" +
                 stated(value, 0.6, ", comm.sharding = ", "") + "}";
    values.push_back(value);
  }

  Value define(int64_t rows, int64_t columns) {
    return {"%v" + std::to_string(count++), rows, columns};
  }
  std::string attributes(const Value &value) {
    return stated(value, 0.2, " {comm.shardings = [", "]}");
  }

  void addOp() {
    Value x = values[draw(values.size())];
    std::string n = std::to_string(count);
    switch (draw(8)) {
    case 0: {
      Value r = define(x.rows, x.columns);
      body += "  " + r.name + " = nn.activation gelu " + x.name + attributes(r) + " : " + x.type() +
              "\n";
      values.push_back(r);
      return;
    }
    case 1:
    case 2: {
      std::vector<Value> same;
      for (const Value &value : values)
        if (value.type() == x.type())
          same.push_back(value);
      Value y = same[draw(same.size())], r = define(x.rows, x.columns);
      body += "  " + r.name + (chance(0.7) ? " = nn.add " : " = nn.mul ") + x.name + ", " + y.name +
              attributes(r) + " : " + x.type() + ", " + y.type() + " -> " + r.type() + "\n";
      values.push_back(r);
      return;
    }
    case 3:
    case 4: {
      std::vector<Value> weights;
      for (const Value &value : values)
        if (value.columns == x.columns)
          weights.push_back(value);
      Value w = weights[draw(weights.size())], r = define(x.rows, w.rows);
      body += "  " + r.name + " = nn.linear " + x.name + ", " + w.name + attributes(r) + " : " +
              x.type() + ", " + w.type() + " -> " + r.type() + "\n";
      values.push_back(r);
      return;
    }
    case 5: {
      Value r = define(x.columns, x.rows);
      body += "  %e" + n + " = tensor.empty() : " + r.type() + "\n  " + r.name +
              " = linalg.transpose ins(" + x.name + " : " + x.type() + ") outs(%e" + n + " : " +
              r.type() + ") permutation = [1, 0]" + attributes(r) + "\n";
      values.push_back(r);
      return;
    }
    case 6: {
      // A dimension is split and merged again, with an operation in between.
      Value r = define(x.rows, x.columns);
      std::string split =
          "tensor<" + std::to_string(x.rows / 3) + "x3x" + std::to_string(x.columns) + "xf32>";
      body += "  %s" + n + " = tensor.expand_shape " + x.name + " [[0, 1], [2]] output_shape [" +
              std::to_string(x.rows / 3) + ", 3, " + std::to_string(x.columns) + "] : " + x.type() +
              " into " + split + "\n  %t" + n + " = nn.activation gelu %s" + n + " : " + split +
              "\n  " + r.name + " = tensor.collapse_shape %t" + n + " [[0, 1], [2]]" +
              attributes(r) + " : " + split + " into " + r.type() + "\n";
      values.push_back(r);
      return;
    }
    default:
      chance(0.5) ? addMaximum(x) : addCall(x);
    }
  }

  /// The maximum of each row, broadcast to all columns.
  void addMaximum(const Value &x) {
    std::string n = std::to_string(count), row = "tensor<" + std::to_string(x.rows) + "xf32>";
    Value r = define(x.rows, x.columns);
    body += "  %low" + n + " = arith.constant 0xFF800000 : f32\n  %f" + n +
            " = tensor.empty() : " + row + "\n  %l" + n + " = linalg.fill ins(%low" + n +
            " : f32) outs(%f" + n + " : " + row + ") -> " + row + "\n  %m" + n +
            " = linalg.reduce { arith.maximumf } ins(" + x.name + " : " + x.type() + ") outs(%l" +
            n + " : " + row + ") dimensions = [1]\n  %e" + n + " = tensor.empty() : " + r.type() +
            "\n  " + r.name + " = linalg.broadcast ins(%m" + n + " : " + row + ") outs(%e" + n +
            " : " + r.type() + ") dimensions = [1]" + attributes(r) + "\n";
    values.push_back(r);
  }

  /// All calls have the same callee, so they need values of one type.
  void addCall(const Value &x) {
    if (x.rows != sizes[0] || x.columns != sizes[1])
      return;
    if (callee.empty())
      callee = "func.func private @f(%x: " + x.type() + ") -> " + x.type() +
               " {\n  %0 = nn.activation gelu %x : " + x.type() + "\n  return %0 : " + x.type() +
               "\n}\n";
    Value r = define(x.rows, x.columns);
    body += "  " + r.name + " = func.call @f(" + x.name + ")" + attributes(r) + " : (" + x.type() +
            ") -> " + x.type() + "\n";
    values.push_back(r);
  }

  static constexpr int64_t sizes[] = {12, 24};
  std::mt19937_64 engine;
  const RandomMesh *mesh = nullptr;
  std::vector<Value> values;
  std::string callee, arguments, body;
  int64_t count = 0;
};

struct Propagation : DifferentialTest {
  Tally used;

  void check(uint64_t seed) {
    std::string source = RandomGraph(seed).build();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + source);
    OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(source, &context);
    ASSERT_TRUE(model);
    OwningOpRef<ModuleOp> once = transformed(*model, "braid-propagate-shardings");
    ASSERT_TRUE(once);
    OwningOpRef<ModuleOp> twice = transformed(*once, "braid-propagate-shardings");
    ASSERT_TRUE(twice);
    EXPECT_EQ(printed(*once), printed(*twice));
    OwningOpRef<ModuleOp> cut = transformed(*once, "braid-partition");
    ASSERT_TRUE(cut) << printed(*once);
    cut->walk([&](comm::CollectiveOpInterface op) { ++used[op->getName().getStringRef().str()]; });
    runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(*model, seed);
    ASSERT_TRUE(inputs.ok()) << inputs.status().message();
    std::unique_ptr<runtime::WeightSource> weights = runtime::WeightSource::random(1);
    runtime::Result<Equivalence> result = compareForms(*model, *cut, *inputs, *weights);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_LE(result->relativeL2, 1e-12);
  }
};
} // namespace

TEST_F(Propagation, IsIdempotentAndKeepsValues) {
  uint64_t seed = fromEnvironment("BRAID_DIFFERENTIAL_SEED", 1),
           cases = fromEnvironment("BRAID_DIFFERENTIAL_CASES", 300);
  for (uint64_t i = 0; i < cases && !HasFailure(); ++i)
    check(seed + i);
  print("used:", used);
  if (isDefaultSize())
    for (const char *name : {"comm.all_reduce", "comm.reduce_scatter", "comm.all_gather",
                             "comm.all_to_all", "comm.permute"})
      EXPECT_GE(used[name], 5u) << name;
}
