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
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).kernel = 3; }),
               launchPlace() + "expects a kernel below 3, got 3");
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
  auto work = [](const char *operation) {
    return verifyAfter([&](ProgramT &p) {
      p.kernels[0]->row_work.push_back(std::make_unique<program::RowWorkT>());
      p.kernels[0]->row_work.back()->operation = operation;
    });
  };
  EXPECT_OK(work("exp"));
  EXPECT_ERROR(work(""), "kernel 'gelu' expects a name for each operation of its rows");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.kernels[0]->symbol = ""; }),
               "expects the symbol of a kernel, got ''");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 p.kernels.push_back(std::make_unique<program::KernelT>(*p.kernels[0]));
               }),
               "kernel 'gelu' occurs twice");
}

TEST(Program, RefusesBadProducts) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs = local(0, {}); }),
               matmulPlace() + "lhs: expects at least 1 dimension");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).rhs = argument(1, {32}); }),
               matmulPlace() +
                   "rhs: expects 2 dimensions, or the leading ones of lhs, got shape [32]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).rhs = argument(1, {4, 8}); }),
               matmulPlace() + "rhs: expects shape [4, 4], got [4, 8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).out = symmetric(0, {2, 4}); }),
               matmulPlace() + "out: expects shape [2, 8], got [2, 4]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { addBias(p, local(0, {4})); }),
               matmulPlace() + "bias: expects shape [8], got [4]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { addBias(p, local(0, {8}, Type::i32)); }),
               matmulPlace() + "bias: expects a floating-point type, got i32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs->dtype = Type::i32; }),
               matmulPlace() + "lhs: expects a floating-point type or i8, got i32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs->dtype = Type::bf16; }),
               matmulPlace() + "rhs: expects bf16, got f32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).out->strides = {4, 1}; }),
               matmulPlace() + "out: writes through strides [4, 1] that overlap for shape [2, 8]");
  EXPECT_OK(verifyAfter([](ProgramT &p) {
    matmul(p).lhs = local(0, {2, 1, 4});
    matmul(p).lhs->strides = {4, 77, 1}; // a dimension of size 1 may have any stride
    matmul(p).out = symmetric(0, {2, 1, 8});
  }));
}

/// Two products [2, 4] . [4, 4], which fit the memory of the sample.
MatmulLaunch batchedMatmul() {
  MatmulLaunch op;
  op.lhs = local(0, {2, 2, 4});
  op.rhs = argument(1, {2, 4, 4});
  op.out = argument(2, {2, 2, 4});
  return op;
}

TEST(Program, RefusesBadMatmuls) {
  auto with = [](const std::function<void(MatmulLaunch &)> &change) {
    MatmulLaunch op = batchedMatmul();
    change(op);
    return verifyAfter([&](ProgramT &p) { replaceLaunch(p, std::move(op)); });
  };
  auto flag = [](size_t i, int64_t value) {
    return verifyAfter([&](ProgramT &p) { kernelAt(p, 1).library->integers[i] = value; });
  };
  EXPECT_ERROR(flag(0, 2), matmulPlace() + "expects transpose_lhs of 0 or 1, got 2");
  EXPECT_ERROR(flag(1, -1), matmulPlace() + "expects transpose_rhs of 0 or 1, got -1");
  EXPECT_ERROR(flag(2, 3), matmulPlace() + "expects accumulate of 0 or 1, got 3");
  EXPECT_OK(with([](MatmulLaunch &) {}));
  EXPECT_OK(with([](MatmulLaunch &op) { op.transpose_rhs = false; }));
  EXPECT_OK(with([](MatmulLaunch &op) { op.accumulate = true; }));
  const std::string place = "procedure 'layer', compute command 4 ('new'): ";
  EXPECT_ERROR(with([](MatmulLaunch &op) {
                 op.lhs = local(0, {4});
                 op.transpose_lhs = true;
               }),
               place + "lhs: expects at least 2 dimensions, got shape [4]");
  EXPECT_ERROR(with([](MatmulLaunch &op) { op.rhs = argument(1, {3, 4, 2}); }),
               place + "rhs: expects shape [2, 4, 4], got [3, 4, 2]");
  EXPECT_ERROR(with([](MatmulLaunch &op) { op.rhs = argument(1, {1, 2, 4, 4}); }),
               place + "rhs: expects 2 dimensions, or the leading ones of lhs, got shape "
                       "[1, 2, 4, 4]");
  EXPECT_ERROR(with([](MatmulLaunch &op) { op.transpose_lhs = true; }),
               place + "rhs: expects shape [2, 4, 2], got [2, 4, 4]");
  EXPECT_ERROR(with([](MatmulLaunch &op) { op.out = argument(2, {2, 4, 2}); }),
               place + "out: expects shape [2, 2, 4], got [2, 4, 2]");
  EXPECT_ERROR(with([](MatmulLaunch &op) { op.bias = local(0, {4}); }),
               place + "bias: expects shape [2, 4], got [4]");
  // Counts.
  EXPECT_OK(with([](MatmulLaunch &op) { op.counts = local(0, {2}, Type::i32); }));
  EXPECT_ERROR(with([](MatmulLaunch &op) { op.counts = local(0, {3}, Type::i32); }),
               place + "counts: expects shape [2], got [3]");
  EXPECT_ERROR(with([](MatmulLaunch &op) { op.counts = local(0, {2}); }),
               place + "counts: expects i32 or i64, got f32");
  EXPECT_ERROR(with([](MatmulLaunch &op) {
                 op.counts = local(0, {2}, Type::i32);
                 op.accumulate = true;
               }),
               place + "counts: expects accumulate of 0, got 1");
  EXPECT_ERROR(with([](MatmulLaunch &op) {
                 op.counts = local(0, {2}, Type::i32);
                 op.rhs = argument(1, {4, 4});
               }),
               place + "counts: expects lhs [groups, capacity, k] and rhs of as many groups, got "
                       "shapes [2, 2, 4] and [4, 4]");
  EXPECT_ERROR(with([](MatmulLaunch &op) {
                 op.counts = local(0, {2}, Type::i32);
                 op.lhs = local(0, {2, 4, 2});
                 op.transpose_lhs = true;
               }),
               place + "counts: expects lhs [groups, capacity, k] and rhs of as many groups, got "
                       "shapes [2, 4, 2] and [2, 4, 4] with transpose_lhs");
  // Operands of i8.
  auto bytes = [](MatmulLaunch &op) {
    op.lhs->dtype = op.rhs->dtype = Type::i8;
    op.lhs_scale = local(0, {2, 2});
    op.rhs_scale = local(0, {2, 4});
  };
  auto withBytes = [&](const std::function<void(MatmulLaunch &)> &change) {
    return with([&](MatmulLaunch &op) {
      bytes(op);
      op.rhs->space = program::Space::local; // arguments of the sample are f32
      change(op);
    });
  };
  EXPECT_OK(withBytes([](MatmulLaunch &) {}));
  EXPECT_ERROR(withBytes([](MatmulLaunch &op) { op.rhs_scale.reset(); }),
               place + "lhs: expects lhs_scale and rhs_scale for i8, got no rhs_scale");
  EXPECT_ERROR(withBytes([](MatmulLaunch &op) { op.lhs_scale->dtype = Type::bf16; }),
               place + "lhs_scale: expects f32, got bf16");
  EXPECT_ERROR(withBytes([](MatmulLaunch &op) { op.lhs_scale->shape = {1, 2}; }),
               place + "lhs_scale: expects shape [2, 2], got [1, 2]");
  EXPECT_ERROR(with([](MatmulLaunch &op) { op.lhs_scale = local(0, {2, 2}); }),
               place + "lhs_scale: expects lhs of i8, got f32");
  // Strides.
  EXPECT_OK(with([](MatmulLaunch &op) {
    op.rhs = argument(1, {4, 4});
    op.lhs->strides = {5, 1, 1};
  }));
  EXPECT_ERROR(with([](MatmulLaunch &op) {
                 op.lhs = local(0, {2, 2, 2, 1});
                 op.lhs->strides = {1, 3, 4, 1};
                 op.rhs = argument(1, {4, 1});
                 op.out = argument(2, {2, 2, 2, 4});
               }),
               place + "lhs: expects leading dimensions that can be walked in two levels together "
                       "with those of out, got shape [2, 2, 2, 1] and strides [1, 3, 4, 1] and "
                       "[16, 8, 4, 1]");
  EXPECT_ERROR(with([](MatmulLaunch &op) {
                 op.lhs = local(0, {2, 2, 2, 1});
                 op.lhs->strides = {1, 3, 4, 1};
                 op.rhs = argument(1, {2, 2, 1, 1});
                 op.out = argument(2, {2, 2, 2, 1});
               }),
               place + "lhs: expects leading dimensions that can be walked as one together with "
                       "those of out and rhs, got shape [2, 2, 2, 1] and strides [1, 3, 4, 1], "
                       "[4, 2, 1, 1] and [2, 1, 1, 1]");
}

AttentionLaunch attention() {
  AttentionLaunch op;
  op.query = local(0, {1, 2, 4, 2});
  op.key = local(0, {1, 3, 2, 2});
  op.value = local(0, {1, 3, 2, 2});
  op.out = argument(2, {1, 2, 4, 2});
  op.scale = 0.5;
  return op;
}

TEST(Program, RefusesBadCallsOfTheLibrary) {
  auto with = [](const std::function<void(program::KernelT &)> &change) {
    return verifyAfter([&](ProgramT &p) { change(kernelAt(p, 1)); });
  };
  const std::string kernel = "kernel 'matmul.2': ";
  EXPECT_ERROR(with([](program::KernelT &k) { k.library->name = "product"; }),
               kernel + "expects a kernel of the library, got 'product'");
  EXPECT_ERROR(with([](program::KernelT &k) { k.library->optional = 16; }),
               kernel + "expects bits of 4 optional operands, got 16");
  EXPECT_ERROR(with([](program::KernelT &k) { k.library->optional = 1; }),
               kernel + "expects 4 operands with 1 outputs, got 3 with 1");
  EXPECT_ERROR(with([](program::KernelT &k) { k.num_outputs = 2; }),
               kernel + "expects 3 operands with 1 outputs, got 3 with 2");
  EXPECT_ERROR(with([](program::KernelT &k) { k.in_place = {0, 2}; }),
               kernel + "expects no 'in_place' of a kernel of the library");
  EXPECT_ERROR(with([](program::KernelT &k) { k.library->integers = {1}; }),
               matmulPlace() +
                   "expects 3 integers (transpose_lhs, transpose_rhs, accumulate), got 1");
  EXPECT_ERROR(with([](program::KernelT &k) { k.library->axes = tensorParallel(); }),
               matmulPlace() + "expects no mesh axes");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launchAt(p, 1).rows = 3; }),
               matmulPlace() + "expects 2 rows, got 3");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { kernelAt(p, 0).library->integers.clear(); }),
               slicePlace() + "expects 2 integers (dim, shift), got 0");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 RotaryTableLaunch table;
                 table.cos = local(0, {2, 2});
                 table.sin = argument(2, {2, 2});
                 replaceLaunch(p, std::move(table));
               }),
               newPlace() + "expects at least 2 numbers (scale, frequencies), got 1");
}

/// The format's version is checked before anything else is read.
TEST(Program, RefusesOtherVersions) {
  for (uint32_t version : {1u, 2u, 3u, 4u, 5u, 6u, 8u})
    EXPECT_ERROR(verifyAfter([&](ProgramT &p) { p.version = version; }),
                 "expects program version 7, got " + std::to_string(version) +
                     " (compile the model with this version of Braid)");
}

TEST(Program, RefusesBadAttention) {
  auto with = [](const std::function<void(AttentionLaunch &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      AttentionLaunch op = attention();
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(with([](AttentionLaunch &) {}));
  EXPECT_OK(with([](AttentionLaunch &op) {
    op.mask = local(0, {1, 3}, Type::i64);
    op.valid_length = local(0, {1}, Type::i64);
    op.position_offset = local(0, {1}, Type::i64);
  }));
  EXPECT_OK(with([](AttentionLaunch &op) {
    op.mask = local(0, {1, 3}, Type::i32);
    op.valid_length = local(0, {1}, Type::i32);
    op.position_offset = local(0, {1}, Type::i32);
  }));
  // Values with another dimension than keys.
  EXPECT_OK(with([](AttentionLaunch &op) {
    op.query = local(0, {1, 2, 4, 1});
    op.key = local(0, {1, 3, 2, 1});
  }));
  EXPECT_ERROR(with([](AttentionLaunch &op) { op.query = local(0, {2, 4, 2}); }),
               newPlace() + "query: expects 4 dimensions, got shape [2, 4, 2]");
  EXPECT_ERROR(with([](AttentionLaunch &op) { op.key = local(0, {1, 3, 2, 1}); }),
               newPlace() + "key: expects shape [1, 3, 2, 2], got [1, 3, 2, 1]");
  EXPECT_ERROR(with([](AttentionLaunch &op) { op.value = local(0, {1, 2, 2, 2}); }),
               newPlace() + "value: expects shape [1, 3, 2, 2], got [1, 2, 2, 2]");
  EXPECT_ERROR(with([](AttentionLaunch &op) { op.out = argument(2, {1, 2, 2, 2}); }),
               newPlace() + "out: expects shape [1, 2, 4, 2], got [1, 2, 2, 2]");
  EXPECT_ERROR(with([](AttentionLaunch &op) {
                 op.key = local(0, {1, 2, 3, 2});
                 op.value = local(0, {1, 2, 3, 2});
               }),
               newPlace() + "expects query heads to divide among 3 key/value heads, got 4");
  EXPECT_ERROR(with([](AttentionLaunch &op) { op.mask = local(0, {1, 2}, Type::i64); }),
               newPlace() + "mask: expects shape [1, 3], got [1, 2]");
  EXPECT_ERROR(with([](AttentionLaunch &op) { op.mask = local(0, {1, 3}); }),
               newPlace() + "mask: expects i32 or i64, got f32");
  EXPECT_ERROR(with([](AttentionLaunch &op) { op.valid_length = local(0, {2}, Type::i64); }),
               newPlace() + "valid_length: expects shape [1], got [2]");
  EXPECT_ERROR(with([](AttentionLaunch &op) { op.position_offset = local(0, {1}); }),
               newPlace() + "position_offset: expects i32 or i64, got f32");
  EXPECT_OK(with([](AttentionLaunch &op) { op.log_sum = local(0, {1, 2, 4}); }));
  EXPECT_ERROR(with([](AttentionLaunch &op) { op.log_sum = local(0, {1, 4, 2}); }),
               newPlace() + "log_sum: expects shape [1, 2, 4], got [1, 4, 2]");
  EXPECT_ERROR(with([](AttentionLaunch &op) { op.log_sum = local(0, {1, 2, 4}, Type::f16); }),
               newPlace() + "log_sum: expects f32, got f16");
  EXPECT_ERROR(with([](AttentionLaunch &op) { op.scale = std::numeric_limits<float>::infinity(); }),
               newPlace() + "expects finite scale, got inf");
}

TEST(Program, RefusesBadTopK) {
  auto with = [](ViewPtr input, ViewPtr values, ViewPtr indices) {
    return verifyAfter([&](ProgramT &p) {
      LibraryLaunch launch{"top_k", viewsOf(input, values, indices)};
      computeOf(layer(p))[4] = command(launchIn(p, std::move(launch)), "new");
    });
  };
  auto ids = [](std::vector<int64_t> shape) { return local(0, std::move(shape), Type::i32); };
  EXPECT_OK(with(local(0, {2, 4}), argument(2, {2, 2}), ids({2, 2})));
  EXPECT_ERROR(with(local(0, {}), argument(2, {}), ids({})),
               newPlace() + "input: expects at least 1 dimension");
  EXPECT_ERROR(with(local(0, {2, 4}), argument(2, {4}), ids({4})),
               newPlace() + "values: expects 2 dimensions, got shape [4]");
  EXPECT_ERROR(with(local(0, {2, 4}), argument(2, {2, 5}), ids({2, 5})),
               newPlace() + "values: expects 1 to 4 of the last dimension, got shape [2, 5]");
  EXPECT_ERROR(with(local(0, {2, 4}), argument(2, {1, 3}), ids({1, 3})),
               newPlace() + "values: expects shape [2, 3], got [1, 3]");
  EXPECT_ERROR(with(local(0, {2, 4}), argument(2, {2, 3}), ids({2, 2})),
               newPlace() + "indices: expects shape [2, 3], got [2, 2]");
  EXPECT_ERROR(with(local(0, {2, 4}), argument(2, {2, 3}), local(0, {2, 3})),
               newPlace() + "indices: expects i32 or i64, got f32");
}

TEST(Program, RefusesBadReduceDims) {
  auto with = [](int64_t kind, ViewPtr out, ViewPtr expSum) {
    return verifyAfter([&](ProgramT &p) {
      ViewPtr input = local(0, {2, 4});
      LibraryLaunch launch{"reduce_dims", viewsOf(input, out, expSum), {kind, 2}};
      computeOf(layer(p))[4] = command(launchIn(p, std::move(launch)), "new");
    });
  };
  EXPECT_OK(with(0, argument(2, {2}), nullptr));
  EXPECT_OK(with(1, argument(2, {2}), local(0, {2})));
  EXPECT_ERROR(with(0, argument(2, {2}), local(0, {2})),
               newPlace() + "expects exp_sum of kind 1 only, got kind 0");
  EXPECT_ERROR(with(1, argument(2, {2}), local(0, {4})),
               newPlace() + "exp_sum: expects shape [2], got [4]");
  EXPECT_ERROR(with(1, argument(2, {2}), local(0, {2}, Type::f16)),
               newPlace() + "exp_sum: expects f32, got f16");
}

TEST(Program, RefusesBadLastToken) {
  auto with = [](ViewPtr input, ViewPtr mask, ViewPtr out) {
    return verifyAfter([&](ProgramT &p) {
      LibraryLaunch launch{"last_token", viewsOf(input, mask, out)};
      computeOf(layer(p))[4] = command(launchIn(p, std::move(launch)), "new");
    });
  };
  auto mask = [](std::vector<int64_t> shape) { return local(0, std::move(shape), Type::i64); };
  EXPECT_OK(with(local(0, {1, 2, 4}), mask({1, 2}), argument(2, {1, 1, 4})));
  EXPECT_ERROR(with(local(0, {2, 4}), mask({1, 2}), argument(2, {1, 1, 4})),
               newPlace() + "input: expects 3 dimensions, got shape [2, 4]");
  EXPECT_ERROR(with(local(0, {1, 2, 4}), mask({1, 3}), argument(2, {1, 1, 4})),
               newPlace() + "mask: expects shape [1, 2], got [1, 3]");
  EXPECT_ERROR(with(local(0, {1, 2, 4}), mask({1, 2}), argument(2, {1, 2, 4})),
               newPlace() + "out: expects shape [1, 1, 4], got [1, 2, 4]");
  EXPECT_ERROR(with(local(0, {1, 2, 4}), local(0, {1, 2}), argument(2, {1, 1, 4})),
               newPlace() + "mask: expects i32 or i64, got f32");
}

TEST(Program, RefusesBadAppend) {
  auto with = [](ViewPtr source, ViewPtr position, ViewPtr cache, int64_t dim = 1) {
    return verifyAfter([&](ProgramT &p) {
      LibraryLaunch launch{"append", viewsOf(source, position, cache), {dim}};
      computeOf(layer(p))[4] = command(launchIn(p, std::move(launch)), "new");
    });
  };
  auto ids = [](std::vector<int64_t> shape) { return local(0, std::move(shape), Type::i64); };
  EXPECT_OK(with(local(0, {1, 1, 4}), ids({1}), argument(2, {1, 2, 4})));
  EXPECT_ERROR(with(local(0, {1, 1, 4}), ids({1}), argument(2, {1, 2, 4}), 0),
               newPlace() + "expects dim of 1 to 2, got 0");
  EXPECT_ERROR(with(local(0, {1, 1, 4}), ids({1}), argument(2, {1, 2, 4}), 3),
               newPlace() + "expects dim of 1 to 2, got 3");
  EXPECT_ERROR(with(local(0, {1, 4}), ids({1}), argument(2, {1, 2, 4})),
               newPlace() + "source: expects 3 dimensions, got shape [1, 4]");
  EXPECT_ERROR(with(local(0, {1, 3, 4}), ids({1}), argument(2, {1, 2, 4})),
               newPlace() + "source: expects 1 to 2 in dimension 1, got shape [1, 3, 4]");
  EXPECT_ERROR(with(local(0, {1, 1, 3}), ids({1}), argument(2, {1, 2, 4})),
               newPlace() + "source: expects shape [1, 1, 4], got [1, 1, 3]");
  EXPECT_ERROR(with(local(0, {1, 1, 4}), ids({2}), argument(2, {1, 2, 4})),
               newPlace() + "position: expects shape [1], got [2]");
  EXPECT_ERROR(with(local(0, {1, 1, 4}), local(0, {1}), argument(2, {1, 2, 4})),
               newPlace() + "position: expects i32 or i64, got f32");
  EXPECT_ERROR(with(local(0, {1, 1, 4}, Type::i64), ids({1}), argument(2, {1, 2, 4})),
               newPlace() + "cache: expects i64, got f32");
}

TEST(Program, RefusesBadRotaryEmbeddings) {
  auto table = [](const std::function<void(RotaryTableLaunch &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      RotaryTableLaunch op;
      op.frequencies = {1.0, 0.1};
      op.position_offset = local(0, {1}, Type::i64);
      op.cos = local(0, {1, 2, 2});
      op.sin = argument(2, {1, 2, 2});
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(table([](RotaryTableLaunch &) {}));
  EXPECT_ERROR(table([](RotaryTableLaunch &op) { op.position_offset = nullptr; }),
               newPlace() + "cos: expects 2 dimensions, got shape [1, 2, 2]");
  EXPECT_ERROR(table([](RotaryTableLaunch &op) { op.frequencies = {1.0}; }),
               newPlace() + "cos: expects shape [1, 2, 1], got [1, 2, 2]");
  EXPECT_ERROR(table([](RotaryTableLaunch &op) { op.sin = argument(2, {1, 2, 1}); }),
               newPlace() + "sin: expects shape [1, 2, 2], got [1, 2, 1]");
  EXPECT_ERROR(table([](RotaryTableLaunch &op) { op.position_offset = local(0, {2}, Type::i64); }),
               newPlace() + "position_offset: expects shape [1], got [2]");
  EXPECT_ERROR(table([](RotaryTableLaunch &op) { op.position_offset = local(0, {1}); }),
               newPlace() + "position_offset: expects i32 or i64, got f32");
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_ERROR(table([&](RotaryTableLaunch &op) { op.frequencies[1] = bad; }),
                 newPlace() + "expects finite frequencies, got " + std::to_string(bad));

  auto rotary = [](const std::function<void(RotaryLaunch &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      RotaryLaunch op;
      op.input = local(0, {1, 2, 1, 4});
      op.cos = local(0, {2, 2});
      op.sin = local(0, {2, 2});
      op.out = argument(2, {1, 2, 1, 4});
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(rotary([](RotaryLaunch &) {}));
  EXPECT_OK(rotary([](RotaryLaunch &op) {
    op.cos = local(0, {1, 2, 2});
    op.sin = local(0, {1, 2, 2});
  }));
  EXPECT_ERROR(rotary([](RotaryLaunch &op) { op.input = local(0, {2, 1, 4}); }),
               newPlace() + "input: expects 4 dimensions, got shape [2, 1, 4]");
  EXPECT_ERROR(rotary([](RotaryLaunch &op) { op.input = local(0, {1, 2, 1, 3}); }),
               newPlace() + "input: expects an even last dimension, got shape [1, 2, 1, 3]");
  EXPECT_ERROR(rotary([](RotaryLaunch &op) { op.cos = local(0, {2, 1}); }),
               newPlace() + "cos: expects shape [2, 2], got [2, 1]");
  EXPECT_ERROR(rotary([](RotaryLaunch &op) { op.sin = local(0, {1, 2, 2}); }),
               newPlace() + "sin: expects shape [2, 2], got [1, 2, 2]");
  EXPECT_ERROR(rotary([](RotaryLaunch &op) { op.out = argument(2, {1, 2, 4, 1}); }),
               newPlace() + "out: expects shape [1, 2, 1, 4], got [1, 2, 4, 1]");
  EXPECT_ERROR(rotary([](RotaryLaunch &op) { op.cos = local(0, {2, 2}, Type::i32); }),
               newPlace() + "cos: expects f32, got i32");
}

TEST(Program, RefusesBadGathersCopiesAndSlices) {
  auto gather = [](const std::function<void(EmbeddingLaunch &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      EmbeddingLaunch op;
      op.table = local(0, {4, 4});
      op.ids = local(0, {2, 1}, Type::i64);
      op.out = argument(2, {2, 1, 4});
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(gather([](EmbeddingLaunch &) {}));
  EXPECT_OK(gather([](EmbeddingLaunch &op) { op.rows = 3; }));
  for (int64_t bad : {-1, 5})
    EXPECT_ERROR(gather([&](EmbeddingLaunch &op) { op.rows = bad; }),
                 newPlace() + "expects rows of 0 to 4, got " + std::to_string(bad));
  EXPECT_ERROR(gather([](EmbeddingLaunch &op) { op.table = local(0, {4}); }),
               newPlace() + "table: expects 2 dimensions, got shape [4]");
  EXPECT_ERROR(gather([](EmbeddingLaunch &op) { op.ids = local(0, {2, 1}); }),
               newPlace() + "ids: expects i32 or i64, got f32");
  EXPECT_ERROR(gather([](EmbeddingLaunch &op) { op.out = argument(2, {2, 4}); }),
               newPlace() + "out: expects shape [2, 1, 4], got [2, 4]");
  EXPECT_ERROR(gather([](EmbeddingLaunch &op) {
                 op.axes.push_back(std::make_unique<program::AxisRefT>());
                 op.axes.back()->name = "pp";
               }),
               newPlace() + "unknown axis 'pp' in mesh 'mesh'");
  EXPECT_ERROR(gather([](EmbeddingLaunch &op) {
                 op.table = local(0, {1, 1});
                 op.table->shape[0] = int64_t(1) << 62; // all rows are one element
                 op.table->strides[0] = 0;
                 op.axes = tensorParallel();
               }),
               newPlace() + "table: 2 times the rows of shape [4611686018427387904, 1] are too "
                            "many");
  auto positions = [](const std::function<void(PositionIdsLaunch &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      PositionIdsLaunch op;
      op.ids = local(0, {2, 4}, Type::i32);
      op.out = local(0, {2, 4}, Type::i32);
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  // Valid by itself, but it replaces the launch that wrote the result.
  EXPECT_ERROR(positions([](PositionIdsLaunch &) {}), "entry 'main': result 'y' is never written");
  EXPECT_ERROR(positions([](PositionIdsLaunch &op) { op.ids = local(0, {2, 4}); }),
               newPlace() + "ids: expects i32 or i64, got f32");
  EXPECT_ERROR(positions([](PositionIdsLaunch &op) { op.ids = local(0, {8}, Type::i32); }),
               newPlace() + "ids: expects 2 dimensions, got shape [8]");
  EXPECT_ERROR(positions([](PositionIdsLaunch &op) { op.out = local(0, {4, 2}, Type::i32); }),
               newPlace() + "out: expects shape [2, 4], got [4, 2]");
  EXPECT_ERROR(positions([](PositionIdsLaunch &op) { op.padding = INT32_MAX - 3; }),
               newPlace() + "expects padding from which 4 positions can be counted in i32, got "
                            "2147483644");
  EXPECT_ERROR(positions([](PositionIdsLaunch &op) {
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
