//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An operation and its decomposition compute the same: both are interpreted on the same values.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "braid/Interpreter/Evaluate.h"
#include "braid/Transforms/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace braid;
using namespace braid::nn::testing;

namespace {

struct Argument {
  const char *name;
  const char *type;
  /// Floats are normal around `center`; integers are in [0, below).
  double center = 0;
  int64_t below = 2;
};

interp::Tensor random(const Argument &argument, Type type, std::mt19937_64 &generator) {
  auto tensor = cast<RankedTensorType>(type);
  std::vector<int64_t> shape(tensor.getShape());
  size_t count = static_cast<size_t>(tensor.getNumElements());
  interp::DType dtype = *interp::dtypeOf(tensor.getElementType());
  if (interp::isFloat(dtype)) {
    std::vector<double> values(count);
    std::normal_distribution<double> normal(argument.center, 1.0);
    for (double &value : values)
      value = normal(generator);
    return interp::Tensor::ofFloats(dtype, shape, values).roundedToStorage();
  }
  std::vector<int64_t> values(count);
  for (int64_t &value : values)
    value = static_cast<int64_t>(generator() % static_cast<uint64_t>(argument.below));
  return interp::Tensor::ofInts(dtype, shape, values);
}

/// `body` defines %r of type `result`. Differences larger than f64's come from constants, which are
/// f32 in the decomposition. With `rounded`, the decomposition also rounds its intermediate values
/// to f32.
void expectSame(const std::vector<Argument> &arguments, const std::string &result,
                const std::string &body, double allowed = 1e-7, bool rounded = false) {
  Context context;
  std::string text = "func.func @main(";
  for (const Argument &argument : arguments)
    text += std::string(&argument == arguments.data() ? "" : ", ") + "%" + argument.name + ": " +
            argument.type + " {nn.name = \"" + argument.name + "\"}";
  text += ") -> (" + result + " {nn.name = \"r\"}) attributes {nn.entry} {\n" + body +
          "\nreturn %r : " + result + "\n}";
  auto module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);

  interp::EvaluateOptions options;
  std::mt19937_64 generator(7);
  auto function = first<func::FuncOp>(*module);
  for (auto [argument, type] : llvm::zip_equal(arguments, function.getArgumentTypes()))
    options.inputs.push_back({argument.name, random(argument, type, generator)});
  auto before = interp::evaluate(*module, options);
  ASSERT_TRUE(before.ok()) << before.status().message();

  PassManager passes(&context);
  passes.addPass(createDecomposeNN());
  ASSERT_TRUE(succeeded(passes.run(*module)));
  ASSERT_FALSE(first<nn::DecomposeOpInterface>(*module));
  options.roundToStorage = rounded;
  auto after = interp::evaluate(*module, options);
  ASSERT_TRUE(after.ok()) << after.status().message();
  const interp::Tensor &expected = before->results[0].value, &got = after->results[0].value;
  double norm = 0;
  for (int64_t i = 0; i < expected.numElements(); ++i)
    norm += std::abs(expected.floats()[i]);
  EXPECT_GT(norm, 0);
  EXPECT_LT(interp::relativeL2(got, expected), allowed);
}

TEST(Decompose, Add) {
  expectSame({{"x", "tensor<2x3x4xf32>"}, {"y", "tensor<3x4xf32>"}}, "tensor<2x3x4xf32>",
             "%r = nn.add %x, %y : tensor<2x3x4xf32>, tensor<3x4xf32> -> tensor<2x3x4xf32>");
  expectSame({{"x", "tensor<f32>"}, {"y", "tensor<f32>"}}, "tensor<f32>",
             "%r = nn.add %x, %y : tensor<f32>, tensor<f32> -> tensor<f32>");
}

TEST(Decompose, Activation) {
  for (unsigned i = 0; i <= nn::getMaxEnumValForActivationKind(); ++i) {
    std::string name = nn::stringifyActivationKind(*nn::symbolizeActivationKind(i)).str();
    SCOPED_TRACE(name);
    std::string body = "%r = nn.activation " + name + " %x : tensor<5x64xf32>";
    expectSame({{"x", "tensor<5x64xf32>"}}, "tensor<5x64xf32>", body);
    // exp(-x) overflows f32 here, and so does the square of such a value.
    expectSame({{"x", "tensor<5x64xf32>", 200.0}}, "tensor<5x64xf32>", body);
  }
}

TEST(Decompose, LayerNorm) {
  std::string body = "%r = nn.layer_norm %x, %w, %b epsilon 1.0e-5 : tensor<2x3x48xf32>, "
                     "tensor<48xf32>, tensor<48xf32> "
                     "-> tensor<2x3x48xf32>";
  expectSame({{"x", "tensor<2x3x48xf32>"}, {"w", "tensor<48xf32>"}, {"b", "tensor<48xf32>"}},
             "tensor<2x3x48xf32>", body);
  // A variance computed as a difference of squares would be lost far from zero (1e6 each, f32 steps
  // of 0.06).
  expectSame(
      {{"x", "tensor<2x3x48xf32>", 1000.0}, {"w", "tensor<48xf32>"}, {"b", "tensor<48xf32>"}},
      "tensor<2x3x48xf32>", body, /*allowed=*/2e-4, /*rounded=*/true);
}

TEST(Decompose, Mul) {
  expectSame({{"x", "tensor<2x3x4xf32>"}, {"y", "tensor<4xf32>"}}, "tensor<2x3x4xf32>",
             "%r = nn.mul %x, %y : tensor<2x3x4xf32>, tensor<4xf32> -> tensor<2x3x4xf32>");
}

TEST(Decompose, RmsNorm) {
  expectSame({{"x", "tensor<2x3x48xf32>"}, {"w", "tensor<48xf32>"}}, "tensor<2x3x48xf32>",
             "%r = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<2x3x48xf32>, tensor<48xf32> "
             "-> tensor<2x3x48xf32>");
}

TEST(Decompose, Softmax) {
  std::string body = "%r = nn.softmax %x : tensor<2x3x7xf32>";
  expectSame({{"x", "tensor<2x3x7xf32>"}}, "tensor<2x3x7xf32>", body);
  // exp(1000) would be infinite if the maximum were not subtracted.
  expectSame({{"x", "tensor<2x3x7xf32>", 1000.0}}, "tensor<2x3x7xf32>", body);
}

TEST(Decompose, Rotary) {
  for (const char *table : {"tensor<3x4xf32>", "tensor<2x3x4xf32>"})
    expectSame({{"x", "tensor<2x3x5x8xf32>"}, {"c", table}, {"s", table}}, "tensor<2x3x5x8xf32>",
               std::string("%r = nn.rotary %x, %c, %s : tensor<2x3x5x8xf32>, ") + table);
}

TEST(Decompose, PositionIds) {
  expectSame({{"i", "tensor<3x9xi64>", 0, 4}, {"t", "tensor<14x5xf32>"}}, "tensor<3x9x5xf32>",
             "%p = nn.position_ids %i padding 2 : tensor<3x9xi64>\n"
             "%r = nn.embedding %p, %t : tensor<3x9xi64>, tensor<14x5xf32> -> tensor<3x9x5xf32>");
}

TEST(Decompose, RotaryTable) {
  std::string sum = "%r = nn.add %c, %s : tensor<9x3xf32>, tensor<9x3xf32> -> tensor<9x3xf32>";
  expectSame({}, "tensor<9x3xf32>",
             "%c, %s = nn.rotary_table [1.0, 0.25, 0.0] scale 1.5 : tensor<9x3xf32>\n" + sum);
  std::string batched = "tensor<2x9x3xf32>";
  expectSame({{"o", "tensor<2xi64>", 0, 5000}}, batched,
             "%c, %s = nn.rotary_table [1.0, 0.25, 0.0] position_offset %o : tensor<2xi64> : " +
                 batched + "\n%r = nn.add %c, %s : " + batched + ", " + batched + " -> " + batched);
}

TEST(Decompose, Linear) {
  expectSame({{"x", "tensor<2x3x8xf32>"}, {"w", "tensor<5x8xf32>"}}, "tensor<2x3x5xf32>",
             "%r = nn.linear %x, %w : tensor<2x3x8xf32>, tensor<5x8xf32> -> tensor<2x3x5xf32>");
  expectSame({{"x", "tensor<8xf32>"}, {"w", "tensor<5x8xf32>"}}, "tensor<5xf32>",
             "%r = nn.linear %x, %w : tensor<8xf32>, tensor<5x8xf32> -> tensor<5xf32>");
}

TEST(Decompose, Embedding) {
  expectSame({{"i", "tensor<2x3xi64>", 0, 10}, {"t", "tensor<10x4xf32>"}}, "tensor<2x3x4xf32>",
             "%r = nn.embedding %i, %t : tensor<2x3xi64>, tensor<10x4xf32> -> tensor<2x3x4xf32>");
}

TEST(Decompose, Heads) {
  expectSame(
      {{"x", "tensor<2x3x8xf32>"}}, "tensor<2x3x8xf32>",
      "%0 = nn.split_heads %x : tensor<2x3x8xf32> -> tensor<2x3x2x4xf32>\n"
      "%1 = nn.add %0, %0 : tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32> -> tensor<2x3x2x4xf32>\n"
      "%r = nn.merge_heads %1 : tensor<2x3x2x4xf32> -> tensor<2x3x8xf32>");
}

const char *kQuery = "tensor<2x3x4x8xf32>", *kKey = "tensor<2x5x2x8xf32>",
           *kValue = "tensor<2x5x2x6xf32>";
const char *kTypes = " scale 0.35 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x6xf32> "
                     "-> tensor<2x3x4x6xf32>";

TEST(Decompose, Attention) {
  std::vector<Argument> qkv{{"q", kQuery}, {"k", kKey}, {"v", kValue}};
  auto with = [&](std::initializer_list<Argument> more) {
    std::vector<Argument> all = qkv;
    all.insert(all.end(), more);
    return all;
  };
  std::string result = "tensor<2x3x4x6xf32>";
  expectSame(qkv, result, std::string("%r = nn.attention %q, %k, %v") + kTypes);
  expectSame(qkv, result, std::string("%r = nn.attention causal %q, %k, %v") + kTypes);
  expectSame(with({{"m", "tensor<2x5xi64>"}}), result,
             std::string("%r = nn.attention %q, %k, %v mask %m : tensor<2x5xi64>") + kTypes);
  expectSame(with({{"l", "tensor<2xi32>", 0, 6}}), result,
             std::string("%r = nn.attention %q, %k, %v valid_length %l : tensor<2xi32>") + kTypes);
  expectSame(with({{"o", "tensor<2xi64>", 0, 3}}), result,
             std::string("%r = nn.attention causal %q, %k, %v position_offset %o : tensor<2xi64>") +
                 kTypes);
  expectSame(
      with({{"m", "tensor<2x5xi32>"}, {"l", "tensor<2xi64>", 0, 6}, {"o", "tensor<2xi32>", 0, 3}}),
      result,
      std::string("%r = nn.attention causal %q, %k, %v mask %m : tensor<2x5xi32> valid_length %l : "
                  "tensor<2xi64> "
                  "position_offset %o : tensor<2xi32>") +
          kTypes);
}

TEST(Decompose, AttentionToNothing) {
  // The mask allows nothing in the first sequence and everything in the second: the first gives
  // zeros, not NaN.
  Context context;
  std::string type = "tensor<2x2x1x2xf32>";
  auto module = parseSourceString<ModuleOp>(
      "func.func @main(%x: " + type +
          " {nn.name = \"x\"}, %m: tensor<2x2xi64> {nn.name = \"m\"}) -> (" + type +
          " {nn.name = \"r\"}) attributes {nn.entry} {\n%r = nn.attention %x, %x, %x mask %m : "
          "tensor<2x2xi64> scale 1.0 : " +
          type + ", " + type + ", " + type + " -> " + type + "\nreturn %r : " + type + "\n}",
      &context);
  ASSERT_TRUE(module);
  interp::EvaluateOptions options;
  options.inputs = {
      {"x", interp::Tensor::ofFloats(interp::DType::f32, {2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
      {"m", interp::Tensor::ofInts(interp::DType::i64, {2, 2}, {0, 0, 1, 1})}};
  for (bool decomposed : {false, true}) {
    if (decomposed) {
      PassManager passes(&context);
      passes.addPass(createDecomposeNN());
      ASSERT_TRUE(succeeded(passes.run(*module)));
    }
    auto result = interp::evaluate(*module, options);
    ASSERT_TRUE(result.ok()) << result.status().message();
    const double *values = result->results[0].value.floats();
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(values[i], 0);
    for (int i = 4; i < 8; ++i)
      EXPECT_GT(values[i], 5 - 1e-9);
  }
}

/// Kernels have a dynamic number of rows: the shape of the result is computed from the operands.
TEST(Decompose, DynamicRows) {
  Context context;
  auto module = parseSourceString<ModuleOp>(
      "func.func @main(%x: tensor<3x4xf32>, %w: tensor<4xf32>, %dx: tensor<?x4xf32>) {\n"
      "%0 = nn.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<3x4xf32>, tensor<4xf32>, "
      "tensor<4xf32> -> tensor<3x4xf32>\n"
      "%1 = nn.activation gelu %x : tensor<3x4xf32>\n"
      "%2 = nn.add %x, %w : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x4xf32>\n"
      "%3 = nn.mul %x, %w : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x4xf32>\n"
      "%4 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<3x4xf32>, tensor<4xf32> -> "
      "tensor<3x4xf32>\n"
      "%5 = nn.activation silu %x : tensor<3x4xf32>\n"
      "%6 = nn.softmax %x : tensor<3x4xf32>\nreturn }",
      &context);
  ASSERT_TRUE(module);
  Block &body = first<func::FuncOp>(*module).getBody().front();
  Value weight = body.getArgument(1), dynamic = body.getArgument(2);
  int decomposed = 0;
  for (auto op : llvm::make_early_inc_range(body.getOps<nn::DecomposeOpInterface>())) {
    EXPECT_TRUE(op.isRowOperation());
    OpBuilder builder(op);
    SmallVector<Value> operands(op->getNumOperands(), weight);
    operands[0] = dynamic;
    FailureOr<SmallVector<Value>> results = op.decompose(builder, operands);
    ASSERT_TRUE(succeeded(results));
    EXPECT_EQ(results->front().getType(), dynamic.getType());
    ++decomposed;
  }
  EXPECT_EQ(decomposed, 7);
  EXPECT_TRUE(succeeded(verify(*module)));
  EXPECT_TRUE(first<tensor::DimOp>(*module));
}

} // namespace
