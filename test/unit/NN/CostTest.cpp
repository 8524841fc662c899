//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Costs compared with numbers that were computed by hand.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include <limits>

using namespace braid::nn;
using namespace braid::nn::testing;

namespace {

void expectCost(const std::string &arguments, const std::string &body, const OpCost &expected) {
  Context context;
  auto module = parse(context, arguments, body);
  ASSERT_TRUE(module);
  auto op = first<CostOpInterface>(*module);
  ASSERT_TRUE(op);
  OpCost cost = op.getCost();
  EXPECT_EQ(cost.matrixFlops, expected.matrixFlops);
  EXPECT_EQ(cost.vectorFlops, expected.vectorFlops);
  EXPECT_EQ(cost.bytesRead, expected.bytesRead);
  EXPECT_EQ(cost.bytesWritten, expected.bytesWritten);
  EXPECT_EQ(cost.bytesSaved, expected.bytesSaved);
}

TEST(Cost, Linear) {
  // 30 results of 4 multiplications and 3 additions each; (24 + 20) floats read, 30 written, the
  // input's 24 saved.
  expectCost("%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>",
             "%0 = nn.linear %x, %w : tensor<2x3x4xf32>, tensor<5x4xf32> -> tensor<2x3x5xf32>",
             {210, 0, 176, 120, 96});
}

TEST(Cost, LinearInHalfPrecision) {
  // 6 results of 7 operations each; (8 + 12) * 2 bytes read, 6 * 2 written, 8 * 2 saved.
  expectCost("%x: tensor<2x4xbf16>, %w: tensor<3x4xbf16>",
             "%0 = nn.linear %x, %w : tensor<2x4xbf16>, tensor<3x4xbf16> -> tensor<2x3xbf16>",
             {42, 0, 40, 12, 16});
}

TEST(Cost, PartsAreFree) {
  expectCost("%x: tensor<2x9xf32>",
             "%0 = nn.slice %x dim 1 from 3 size 5 : tensor<2x9xf32> -> tensor<2x5xf32>", {});
  expectCost("%x: tensor<2x9xf32>",
             "%0 = nn.concat %x, %x dim 0 : tensor<2x9xf32>, tensor<2x9xf32> -> tensor<4x9xf32>",
             {});
}

TEST(Cost, Attention) {
  // 2 * 3 * 4 = 24 queries with 5 keys: 120 pairs. Scores: 120 * (8 + 7). Matmul with the values: 2
  // * 3 * 4 * 6 = 144 results of 5 + 4 operations. Vector: 5 for each pair and a division for each
  // result. Read: (192 + 160 + 120) * 4 and the mask's 10 * 8; saved: everything that is read or
  // written and 24 logarithms.
  expectCost(
      "%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x6xf32>, %m: "
      "tensor<2x5xi64>",
      "%0 = nn.attention %q, %k, %v mask %m : tensor<2x5xi64> scale 0.25 : tensor<2x3x4x8xf32>, "
      "tensor<2x5x2x8xf32>, tensor<2x5x2x6xf32> -> tensor<2x3x4x6xf32>",
      {120 * 15 + 144 * 9, 120 * 5 + 144, 1888 + 80, 576, 1968 + 576 + 96});
}

TEST(Cost, LayerNorm) {
  // 24 elements in 6 rows: 7 operations for each element and 4 for each row; the input and two f32
  // for each row are saved.
  expectCost("%x: tensor<2x3x4xf32>, %w: tensor<4xf32>",
             "%0 = nn.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<2x3x4xf32>, tensor<4xf32>, "
             "tensor<4xf32> -> "
             "tensor<2x3x4xf32>",
             {0, 7 * 24 + 4 * 6, (24 + 4 + 4) * 4, 96, 96 + 48});
}

TEST(Cost, Activation) {
  expectCost("%x: tensor<2x4xf32>", "%0 = nn.activation gelu %x : tensor<2x4xf32>",
             {0, 5 * 8, 32, 32, 32});
  expectCost("%x: tensor<2x4xf32>", "%0 = nn.activation gelu_tanh %x : tensor<2x4xf32>",
             {0, 9 * 8, 32, 32, 32});
}

// The cost table's arithmetic of an activation equals that of its decomposition.
TEST(Cost, EveryActivation) {
  for (unsigned i = 0; i <= getMaxEnumValForActivationKind(); ++i) {
    std::string name = stringifyActivationKind(*symbolizeActivationKind(i)).str();
    Context context;
    auto module = parse(context, "%x: tensor<2x4xf32>",
                        "%0 = nn.activation " + name + " %x : tensor<2x4xf32>");
    ASSERT_TRUE(module);
    auto op = first<ActivationOp>(*module);
    mlir::OpBuilder builder(op);
    ASSERT_TRUE(mlir::succeeded(op.decompose(builder, op->getOperands())));
    int64_t arithmetic = 0;
    first<mlir::linalg::GenericOp>(*module).getRegion().walk([&](mlir::Operation *scalar) {
      arithmetic += !llvm::isa<mlir::arith::ConstantOp, mlir::linalg::YieldOp>(scalar);
    });
    EXPECT_EQ(op.getCost().vectorFlops, arithmetic * 8) << name;
  }
}

TEST(Cost, RmsNorm) {
  // 24 elements in 6 rows: 4 operations for each element and 3 for each row; the input and an f32
  // for each row are saved.
  expectCost("%x: tensor<2x3x4xf32>, %w: tensor<4xf32>",
             "%0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<2x3x4xf32>, tensor<4xf32> -> "
             "tensor<2x3x4xf32>",
             {0, 4 * 24 + 3 * 6, (24 + 4) * 4, 96, 96 + 24});
}

TEST(Cost, Activations) {
  expectCost("%x: tensor<2x4xf32>", "%0 = nn.activation silu %x : tensor<2x4xf32>",
             {0, 4 * 8, 32, 32, 32});
  expectCost("%x: tensor<2x4xf32>", "%0 = nn.softmax %x : tensor<2x4xf32>", {0, 5 * 8, 32, 32, 32});
}

TEST(Cost, Mul) {
  expectCost("%x: tensor<2x4xf32>, %y: tensor<4xf32>",
             "%0 = nn.mul %x, %y : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>",
             {0, 8, 48, 32, 48});
}

TEST(Cost, Rotary) {
  // Two multiplications and an addition for each element; 3 * 4 elements of each table are read and
  // saved.
  expectCost("%x: tensor<2x3x5x8xf32>, %t: tensor<3x4xf32>",
             "%0 = nn.rotary %x, %t, %t : tensor<2x3x5x8xf32>, tensor<3x4xf32>",
             {0, 3 * 240, 960 + 96, 960, 96});
  expectCost("%o: tensor<2xi64>",
             "%0, %1 = nn.rotary_table [1.0, 0.5] position_offset %o : tensor<2xi64> : "
             "tensor<2x3x2xf32>",
             {0, 5 * 12, 16, 96, 0});
}

TEST(Cost, Add) {
  // The second operand is read once, although it is broadcast.
  expectCost("%x: tensor<2x4xf32>, %y: tensor<4xf32>",
             "%0 = nn.add %x, %y : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>",
             {0, 8, 48, 32, 0});
}

TEST(Cost, Embedding) {
  // 6 ids of 8 bytes and the 6 rows of 16 bytes that they select, not the full table.
  expectCost("%i: tensor<2x3xi64>, %t: tensor<10x4xf32>",
             "%0 = nn.embedding %i, %t : tensor<2x3xi64>, tensor<10x4xf32> -> tensor<2x3x4xf32>",
             {0, 0, 48 + 96, 96, 48});
}

TEST(Cost, PositionIds) {
  expectCost("%i: tensor<2x3xi64>", "%0 = nn.position_ids %i padding 1 : tensor<2x3xi64>",
             {0, 3 * 6, 48, 48, 0});
}

TEST(Cost, LastToken) {
  // Of 24 floats the 8 of two rows, and a mask of 6 elements.
  expectCost("%x: tensor<2x3x4xf32>, %m: tensor<2x3xi64>",
             "%0 = nn.last_token %x mask %m : tensor<2x3x4xf32>, tensor<2x3xi64> -> "
             "tensor<2x1x4xf32>",
             {0, 0, 48 + 32, 32, 48});
}

TEST(Cost, AppendChangesTheCacheInPlace) {
  // Two rows of 4 floats are read and written, and two positions are read.
  expectCost("%x: tensor<2x1x4xf32>, %c: tensor<2x64x4xf32>, %p: tensor<2xi32>",
             "%0 = nn.append %x to %c dim 1 at %p : tensor<2x1x4xf32>, tensor<2x64x4xf32>, "
             "tensor<2xi32>",
             {0, 0, 32 + 8, 32, 0});
}

TEST(Cost, ViewsAreFree) {
  expectCost("%x: tensor<2x3x8xf32>",
             "%0 = nn.split_heads %x : tensor<2x3x8xf32> -> tensor<2x3x2x4xf32>", {});
  expectCost("%x: tensor<2x3x2x4xf32>",
             "%0 = nn.merge_heads %x : tensor<2x3x2x4xf32> -> tensor<2x3x8xf32>", {});
}

TEST(Cost, Experts) {
  // 24 logits with 5 + 2 operations, 12 weights with 2; results of 12 floats and of 12, 12 and 8
  // i32.
  expectCost("%l: tensor<2x3x4xf32>",
             "%w, %e, %s, %c = nn.router %l top 2 capacity 5 normalized : tensor<2x3x4xf32>",
             {0, 24 * 7 + 24, 96, 48 + 48 + 48 + 32, 96 + 48});
  // 48 floats and 12 i32 twice are read, 320 floats written.
  expectCost("%x: tensor<2x3x8xf32>, %e: tensor<2x3x2xi32>",
             "%0 = nn.dispatch %x, %e, %e : tensor<2x3x8xf32>, tensor<2x3x2xi32> -> "
             "tensor<2x4x5x8xf32>",
             {0, 0, 192 + 96, 1280, 96});
  // 48 results of two choices each, whose rows are read.
  expectCost("%b: tensor<2x4x5x8xf32>, %w: tensor<2x3x2xf32>, %e: tensor<2x3x2xi32>",
             "%0 = nn.combine %b, %w, %e, %e : tensor<2x4x5x8xf32>, tensor<2x3x2xf32>, "
             "tensor<2x3x2xi32> -> tensor<2x3x8xf32>",
             {0, 192, 384 + 48 + 96, 192, 1280 + 48 + 96});
}

TEST(Cost, Training) {
  expectCost("", "%0 = nn.iota : tensor<8xi64>", {0, 0, 0, 64, 0});
  // 6 elements, 2 + 3 positions and a seed of 8 bytes each.
  expectCost("%x: tensor<2x3xf32>, %i: tensor<2xi64>, %j: tensor<3xi64>, %s: tensor<i64>",
             "%0 = nn.dropout %x at (%i, %j : tensor<2xi64>, tensor<3xi64>) seed %s : tensor<i64> "
             "rate 0.5 : tensor<2x3xf32>",
             {0, 12, 24 + 40 + 8, 24, 8});
  // 48 logits with 4 operations, 6 labels with 3; a logarithm (f32) is saved for each label.
  expectCost("%x: tensor<2x3x8xf32>, %l: tensor<2x3xi64>",
             "%0 = nn.cross_entropy %x, %l : tensor<2x3x8xf32>, tensor<2x3xi64> -> tensor<2x3xf32>",
             {0, 210, 192 + 48, 24, 240 + 24});
}

TEST(Cost, StaysAtTheLargestNumber) {
  // 2^40 results of 2^41 - 1 operations each, on 2^41 elements of 4 bytes, of which half are saved.
  const int64_t most = std::numeric_limits<int64_t>::max(), tera = int64_t(1) << 40;
  expectCost("%x: tensor<1x1099511627776xf32>, %w: tensor<1x1099511627776xf32>",
             "%0 = nn.linear %x, %w : tensor<1x1099511627776xf32>, tensor<1x1099511627776xf32> -> "
             "tensor<1x1xf32>",
             {2 * tera - 1, 0, 8 * tera, 4, 4 * tera});
  expectCost("%x: tensor<1099511627776x256xf32>, %w: tensor<256x256xf32>",
             "%0 = nn.linear %x, %w : tensor<1099511627776x256xf32>, tensor<256x256xf32> -> "
             "tensor<1099511627776x256xf32>",
             {511 * 256 * tera, 0, (1024 * tera) + 262144, 1024 * tera, 1024 * tera});
  // The number of pairs is the square of 2^40.
  expectCost("%q: tensor<1x1099511627776x1x1xf32>",
             "%0 = nn.attention %q, %q, %q scale 1.0 : tensor<1x1099511627776x1x1xf32>, "
             "tensor<1x1099511627776x1x1xf32>, tensor<1x1099511627776x1x1xf32> -> "
             "tensor<1x1099511627776x1x1xf32>",
             {most, most, 12 * tera, 4 * tera, 20 * tera});
}

} // namespace
