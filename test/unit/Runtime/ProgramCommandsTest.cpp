//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramChanges.h"

#include "Testing.h"

#include <cmath>
#include <limits>

using namespace braid::runtime;
using namespace braid::runtime::testing;
namespace program = braid::program;
using Type = program::DType;
using program::ProgramT;

namespace {

TEST(Program, RefusesBadLaunches) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).kernel = 1; }),
               launchPlace() + "expects a kernel below 1, got 1");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).operands.pop_back(); }),
               launchPlace() + "kernel 'gelu' expects 2 operands, got 1");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).row_operand.pop_back(); }),
               launchPlace() + "expects 'row_operand' for 2 operands, got 1");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).rows = 3; }),
               launchPlace() + "operand 0: expects 3 rows, got shape [2, 8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).operands[1] = argument(2, {}); }),
               launchPlace() + "operand 1: expects 2 rows, got shape []");
  for (uint32_t outputs : {0u, 3u, ~0u})
    EXPECT_ERROR(verifyAfter([&](ProgramT &p) { p.kernels[0]->num_outputs = outputs; }),
                 "kernel 'gelu' of 2 operands expects at least 1 and no more outputs, got " +
                     std::to_string(outputs));
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).operands[1]->strides = {4, 1}; }),
               launchPlace() +
                   "operand 1: writes through strides [4, 1] that overlap for shape [2, 8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 launch(p).operands[0] = argument(1, {2, 8});
                 p.kernels[0]->num_outputs = 2;
               }),
               "entry 'main': parameter 'w' is read-only, but the program writes it");
  EXPECT_OK(verifyAfter([](ProgramT &p) { p.kernels[0]->in_place = {0, 1}; }));
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.kernels[0]->in_place = {0}; }),
               "kernel 'gelu': expects 'in_place' to hold pairs, got 1 operands");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.kernels[0]->in_place = {1, 1}; }),
               "kernel 'gelu': expects 'in_place' to pair a read with a written operand, got 1 as "
               "the read one");
  for (uint32_t operand : {0u, 2u})
    EXPECT_ERROR(verifyAfter([&](ProgramT &p) { p.kernels[0]->in_place = {0, operand}; }),
                 "kernel 'gelu': expects 'in_place' to pair a read with a written operand, got " +
                     std::to_string(operand) + " as the written one");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.kernels[0]->symbol = ""; }),
               "expects the symbol of a kernel, got ''");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 p.kernels.push_back(std::make_unique<program::KernelT>(*p.kernels[0]));
               }),
               "kernel 'gelu' stands there twice");
}

TEST(Program, RefusesBadProducts) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs = local(0, {}); }),
               productPlace() + "lhs: expects at least 1 dimension");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).rhs = argument(1, {32}); }),
               productPlace() + "rhs: expects 2 dimensions, got shape [32]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).rhs = argument(1, {4, 8}); }),
               productPlace() + "rhs: expects shape [4, 4], got [4, 8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).out = symmetric(0, {2, 4}); }),
               productPlace() + "out: expects shape [2, 8], got [2, 4]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).bias = local(0, {4}); }),
               productPlace() + "bias: expects shape [8], got [4]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).bias = local(0, {8}, Type::i32); }),
               productPlace() + "bias: expects a floating-point type, got i32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->dtype = Type::i32; }),
               productPlace() + "lhs: expects a floating-point type, got i32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->dtype = Type::bf16; }),
               productPlace() + "rhs: expects bf16, got f32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).out->strides = {4, 1}; }),
               productPlace() + "out: writes through strides [4, 1] that overlap for shape [2, 8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 product(p).lhs = local(0, {2, 2, 2});
                 product(p).lhs->strides = {3, 6, 1};
                 product(p).rhs = argument(1, {2, 2});
                 product(p).out = symmetric(0, {2, 2, 2});
               }),
               productPlace() +
                   "lhs: expects leading dimensions that can be walked as one, got shape "
                   "[2, 2, 2] and strides [3, 6, 1]");
  EXPECT_OK(verifyAfter([](ProgramT &p) {
    product(p).lhs = local(0, {2, 1, 4});
    product(p).lhs->strides = {4, 77, 1}; // a dimension of size 1 has any stride
    product(p).out = symmetric(0, {2, 1, 8});
  }));
}

program::AttentionT attention() {
  program::AttentionT op;
  op.query = local(0, {1, 2, 4, 2});
  op.key = local(0, {1, 3, 2, 2});
  op.value = local(0, {1, 3, 2, 2});
  op.out = argument(2, {1, 2, 4, 2});
  op.scale = 0.5;
  return op;
}

TEST(Program, RefusesBadAttention) {
  auto with = [](const std::function<void(program::AttentionT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::AttentionT op = attention();
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(with([](program::AttentionT &) {}));
  EXPECT_OK(with([](program::AttentionT &op) {
    op.mask = local(0, {1, 3}, Type::i64);
    op.valid_length = local(0, {1}, Type::i64);
    op.position_offset = local(0, {1}, Type::i64);
  }));
  EXPECT_OK(with([](program::AttentionT &op) {
    op.mask = local(0, {1, 3}, Type::i32);
    op.valid_length = local(0, {1}, Type::i32);
    op.position_offset = local(0, {1}, Type::i32);
  }));
  EXPECT_ERROR(with([](program::AttentionT &op) { op.query = local(0, {2, 4, 2}); }),
               newPlace() + "query: expects 4 dimensions, got shape [2, 4, 2]");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.key = local(0, {1, 3, 2, 1}); }),
               newPlace() + "key: expects shape [1, 3, 2, 2], got [1, 3, 2, 1]");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.value = local(0, {1, 2, 2, 2}); }),
               newPlace() + "value: expects shape [1, 3, 2, 2], got [1, 2, 2, 2]");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.out = argument(2, {1, 2, 2, 2}); }),
               newPlace() + "out: expects shape [1, 2, 4, 2], got [1, 2, 2, 2]");
  EXPECT_ERROR(with([](program::AttentionT &op) {
                 op.key = local(0, {1, 2, 3, 2});
                 op.value = local(0, {1, 2, 3, 2});
               }),
               newPlace() + "expects query heads to divide among 3 key/value heads, got 4");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.mask = local(0, {1, 2}, Type::i64); }),
               newPlace() + "mask: expects shape [1, 3], got [1, 2]");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.mask = local(0, {1, 3}); }),
               newPlace() + "mask: expects i32 or i64, got f32");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.valid_length = local(0, {2}, Type::i64); }),
               newPlace() + "valid_length: expects shape [1], got [2]");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.position_offset = local(0, {1}); }),
               newPlace() + "position_offset: expects i32 or i64, got f32");
  EXPECT_ERROR(
      with([](program::AttentionT &op) { op.scale = std::numeric_limits<float>::infinity(); }),
      newPlace() + "expects a finite scale");
}

TEST(Program, RefusesBadRotaryEmbeddings) {
  auto table = [](const std::function<void(program::RotaryTableT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::RotaryTableT op;
      op.frequencies = {1.0, 0.1};
      op.position_offset = local(0, {1}, Type::i64);
      op.cos = local(0, {1, 2, 2});
      op.sin = argument(2, {1, 2, 2});
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(table([](program::RotaryTableT &) {}));
  EXPECT_ERROR(table([](program::RotaryTableT &op) { op.position_offset = nullptr; }),
               newPlace() + "cos: expects 2 dimensions, got shape [1, 2, 2]");
  EXPECT_ERROR(table([](program::RotaryTableT &op) { op.frequencies = {1.0}; }),
               newPlace() + "cos: expects shape [1, 2, 1], got [1, 2, 2]");
  EXPECT_ERROR(table([](program::RotaryTableT &op) { op.sin = argument(2, {1, 2, 1}); }),
               newPlace() + "sin: expects shape [1, 2, 2], got [1, 2, 1]");
  EXPECT_ERROR(
      table([](program::RotaryTableT &op) { op.position_offset = local(0, {2}, Type::i64); }),
      newPlace() + "position_offset: expects shape [1], got [2]");
  EXPECT_ERROR(table([](program::RotaryTableT &op) { op.position_offset = local(0, {1}); }),
               newPlace() + "position_offset: expects i32 or i64, got f32");
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_ERROR(table([&](program::RotaryTableT &op) { op.frequencies[1] = bad; }),
                 newPlace() + "expects finite frequencies and a finite scale");

  auto rotary = [](const std::function<void(program::RotaryT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::RotaryT op;
      op.input = local(0, {1, 2, 1, 4});
      op.cos = local(0, {2, 2});
      op.sin = local(0, {2, 2});
      op.out = argument(2, {1, 2, 1, 4});
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(rotary([](program::RotaryT &) {}));
  EXPECT_OK(rotary([](program::RotaryT &op) {
    op.cos = local(0, {1, 2, 2});
    op.sin = local(0, {1, 2, 2});
  }));
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.input = local(0, {2, 1, 4}); }),
               newPlace() + "input: expects 4 dimensions, got shape [2, 1, 4]");
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.input = local(0, {1, 2, 1, 3}); }),
               newPlace() + "input: expects an even last dimension, got shape [1, 2, 1, 3]");
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.cos = local(0, {2, 1}); }),
               newPlace() + "cos: expects shape [2, 2], got [2, 1]");
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.sin = local(0, {1, 2, 2}); }),
               newPlace() + "sin: expects shape [2, 2], got [1, 2, 2]");
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.out = argument(2, {1, 2, 4, 1}); }),
               newPlace() + "out: expects shape [1, 2, 1, 4], got [1, 2, 4, 1]");
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.cos = local(0, {2, 2}, Type::i32); }),
               newPlace() + "cos: expects f32, got i32");
}

TEST(Program, RefusesBadGathersCopiesAndSlices) {
  auto gather = [](const std::function<void(program::GatherT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::GatherT op;
      op.source = local(0, {4, 4});
      op.ids = local(0, {2, 1}, Type::i64);
      op.out = argument(2, {2, 1, 4});
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(gather([](program::GatherT &) {}));
  EXPECT_OK(gather([](program::GatherT &op) { op.rows = 3; }));
  for (int64_t bad : {-1, 5})
    EXPECT_ERROR(gather([&](program::GatherT &op) { op.rows = bad; }),
                 newPlace() + "expects rows of 0 to 4, got " + std::to_string(bad));
  EXPECT_ERROR(gather([](program::GatherT &op) { op.source = local(0, {4}); }),
               newPlace() + "source: expects 2 dimensions, got shape [4]");
  EXPECT_ERROR(gather([](program::GatherT &op) { op.ids = local(0, {2, 1}); }),
               newPlace() + "ids: expects i32 or i64, got f32");
  EXPECT_ERROR(gather([](program::GatherT &op) { op.out = argument(2, {2, 4}); }),
               newPlace() + "out: expects shape [2, 1, 4], got [2, 4]");
  EXPECT_ERROR(gather([](program::GatherT &op) {
                 op.axes.push_back(std::make_unique<program::AxisRefT>());
                 op.axes.back()->name = "pp";
               }),
               newPlace() + "unknown axis 'pp' in mesh 'mesh'");
  EXPECT_ERROR(gather([](program::GatherT &op) {
                 op.source = local(0, {1, 1});
                 op.source->shape[0] = int64_t(1) << 62; // of one element
                 op.source->strides[0] = 0;
                 op.axes = tensorParallel();
               }),
               newPlace() + "source: 2 times the rows of shape [4611686018427387904, 1] are too "
                            "many");
  auto positions = [](const std::function<void(program::PositionIdsT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::PositionIdsT op;
      op.ids = local(0, {2, 4}, Type::i32);
      op.out = local(0, {2, 4}, Type::i32);
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  // All that is wrong with it: the launch that it replaces wrote the result.
  EXPECT_ERROR(positions([](program::PositionIdsT &) {}),
               "entry 'main': result 'y' is never written");
  EXPECT_ERROR(positions([](program::PositionIdsT &op) { op.ids = local(0, {2, 4}); }),
               newPlace() + "ids: expects i32 or i64, got f32");
  EXPECT_ERROR(positions([](program::PositionIdsT &op) { op.ids = local(0, {8}, Type::i32); }),
               newPlace() + "ids: expects 2 dimensions, got shape [8]");
  EXPECT_ERROR(positions([](program::PositionIdsT &op) { op.out = local(0, {4, 2}, Type::i32); }),
               newPlace() + "out: expects shape [2, 4], got [4, 2]");
  EXPECT_ERROR(positions([](program::PositionIdsT &op) { op.padding = INT32_MAX - 3; }),
               newPlace() + "expects padding from which 4 positions can be counted in i32, got "
                            "2147483644");
  EXPECT_ERROR(positions([](program::PositionIdsT &op) {
                 op.ids = local(0, {1, 4}, Type::i64);
                 op.out = local(0, {1, 4}, Type::i64);
                 op.padding = INT64_MAX;
               }),
               newPlace() + "expects padding from which 4 positions can be counted in i64, got "
                            "9223372036854775807");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 program::CopyT op;
                 op.source = local(0, {2, 4});
                 op.dest = argument(2, {4, 2});
                 replaceLaunch(p, std::move(op));
               }),
               newPlace() + "dest: expects shape [2, 4], got [4, 2]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 program::CopyT op;
                 op.source = local(0, {2, 4}, Type::i32);
                 op.dest = argument(2, {2, 4});
                 replaceLaunch(p, std::move(op));
               }),
               newPlace() + "dest: expects i32, got f32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { slice(p).dim = 2; }),
               slicePlace() + "expects a dimension below 2, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { slice(p).dim = 0; }),
               slicePlace() +
                   "source: expects 2 times dest of shape [2, 4] along dimension 0, got [2, "
                   "8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { slice(p).axes[0]->name = "dp"; }),
               slicePlace() + "unknown axis 'dp' in mesh 'mesh'");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { slice(p).axes[0]->size = 3; }),
               slicePlace() + "sub-axis (1)3 does not divide axis 'tp' of size 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { slice(p).axes.clear(); }),
               slicePlace() + "expects at least one mesh axis");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 slice(p).axes.push_back(std::make_unique<program::AxisRefT>(*slice(p).axes[0]));
               }),
               slicePlace() + "axis 'tp' is used twice");
}

} // namespace
