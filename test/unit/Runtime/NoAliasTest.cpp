//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Outputs of a command must not alias its inputs.
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Executor/NoAlias.h"
#include "ProgramBuilder.h"

#include <algorithm>
#include <random>
#include <set>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32;

std::byte *memory(int64_t offset) {
  static std::byte bytes[1 << 12];
  return bytes + offset;
}

/// All bytes of the tensor's elements.
std::set<const std::byte *> bytesOf(const Tensor &tensor) {
  std::set<const std::byte *> bytes;
  std::vector<int64_t> index(tensor.shape.size(), 0);
  for (int64_t n = tensor.numElements(); n > 0; --n) {
    int64_t element = 0;
    for (size_t d = 0; d < index.size(); ++d)
      element += index[d] * tensor.strides[d];
    for (int64_t byte = 0; byte < byteSize(tensor.dtype); ++byte)
      bytes.insert(tensor.data + element * byteSize(tensor.dtype) + byte);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < tensor.shape[d])
        break;
      index[d] = 0;
    }
  }
  return bytes;
}

bool haveACommonByte(const Tensor &a, const Tensor &b) {
  const std::set<const std::byte *> ofA = bytesOf(a), ofB = bytesOf(b);
  return std::any_of(ofA.begin(), ofA.end(),
                     [&](const std::byte *byte) { return ofB.count(byte) > 0; });
}

TEST(NoAlias, NeverMissesACommonByte) {
  constexpr unsigned kSeed = 1;
  std::mt19937 random(kSeed);
  auto below = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  const DType types[] = {f32, DType::f16, DType::f64, DType::i8};
  int disjoint = 0, common = 0, unsure = 0;
  for (int i = 0; i < 3000; ++i) {
    Tensor tensors[2];
    for (Tensor &tensor : tensors) {
      tensor.dtype = types[below(4)];
      tensor.data = memory(below(64) * byteSize(tensor.dtype));
      for (int64_t d = below(4); d > 0; --d) {
        tensor.shape.push_back(1 + below(4));
        tensor.strides.push_back(below(2) == 0 ? below(24) : 4 * below(12));
      }
    }
    const bool expected = haveACommonByte(tensors[0], tensors[1]);
    const bool got = mayOverlap(tensors[0], tensors[1]);
    ASSERT_EQ(got, mayOverlap(tensors[1], tensors[0])) << "case " << i << " of seed " << kSeed;
    ASSERT_TRUE(got || !expected) << "case " << i << " of seed " << kSeed;
    (expected ? common : got ? unsure : disjoint) += 1;
  }
  EXPECT_GT(disjoint, 300);
  EXPECT_GT(common, 300);
  EXPECT_LT(unsure, 600);
}

/// Slices of one tensor along each of its dimensions, as programs use them.
TEST(NoAlias, KnowsSlicesOfOneTensor) {
  const std::vector<int64_t> shape{2, 6, 4, 8};
  const std::vector<size_t> orders[] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {3, 1, 0, 2}};
  for (const std::vector<size_t> &order : orders)
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      Tensor whole{memory(0), f32, {}, {}};
      for (size_t d : order) {
        whole.shape.push_back(shape[d]);
        whole.strides.push_back(rowMajorStrides(shape)[d]);
      }
      auto part = [&](int64_t from, int64_t size) {
        Tensor result = whole;
        result.data += from * whole.strides[dim] * byteSize(f32);
        result.shape[dim] = size;
        return result;
      };
      const int64_t half = whole.shape[dim] / 2;
      EXPECT_FALSE(mayOverlap(part(0, half), part(half, half))) << "dimension " << dim;
      EXPECT_FALSE(mayOverlap(part(half, half), part(0, half))) << "dimension " << dim;
      EXPECT_TRUE(mayOverlap(part(0, half), part(half - 1, half))) << "dimension " << dim;
      EXPECT_TRUE(mayOverlap(whole, part(half, 1))) << "dimension " << dim;
    }
}

/// The result of loading a program whose entry is made by `fill`.
template <typename Fill> Status loaded(Fill fill) {
  ProgramBuilder b({{"tp", 1}});
  b.operand("x", f32, {8, 4});
  b.operand("ids", DType::i64, {2, 4});
  auto p = b.procedure("main", 2, 4096, 0, 0);
  fill(b, p);
  return b.session().status();
}

TEST(NoAlias, RefusesCommandsThatWriteWhatTheyRead) {
  auto at = [](uint64_t offset, const Shape &shape) { return local(offset, f32, shape); };
  auto expect = [](const std::string &command, const std::string &message) {
    return command + " 'c' in @main on the compute queue expects " + message;
  };
  auto with = [](auto op) {
    return loaded([&](ProgramBuilder &, ProcedureBuilder &p) { p.compute("c", std::move(op)); });
  };
  auto copied = [&](uint64_t to) {
    return loaded(
        [&](ProgramBuilder &, ProcedureBuilder &p) { p.copy("c", at(0, {8, 4}), at(to, {8, 4})); });
  };
  EXPECT_ERROR(copied(0), expect("copy", "dest not to overlap source"));
  EXPECT_ERROR(copied(124), expect("copy", "dest not to overlap source"));
  EXPECT_OK(copied(128));
  const V lhs = at(0, {8, 4}), rhs = at(512, {4, 4}), bias = at(1024, {4});
  const std::pair<V, std::string> outs[] = {
      {lhs, "lhs"}, {at(448, {8, 4}), "rhs"}, {at(912, {8, 4}), "bias"}};
  for (const auto &[out, role] : outs)
    EXPECT_ERROR(loaded([&, &out = out](ProgramBuilder &, ProcedureBuilder &p) {
                   p.matmul("c", lhs, rhs, &bias, out);
                 }),
                 expect("matmul", "out not to overlap " + role));
  EmbeddingLaunch gather;
  gather.table = at(0, {10, 4}).build();
  gather.ids = argument(1, DType::i64, {2, 4}).build();
  gather.out = at(128, {2, 4, 4}).build();
  EXPECT_ERROR(with(std::move(gather)), expect("embedding", "out not to overlap table"));
  PositionIdsLaunch positions;
  positions.ids = local(0, DType::i64, {2, 4}).build();
  positions.out = local(32, DType::i64, {2, 4}).build();
  EXPECT_ERROR(with(std::move(positions)), expect("position_ids", "out not to overlap ids"));
  RotaryTableLaunch table;
  table.frequencies = {1, 2};
  table.cos = at(0, {4, 2}).build();
  table.sin = at(16, {4, 2}).build();
  EXPECT_ERROR(with(std::move(table)), expect("rotary_table", "sin not to overlap cos"));
  RotaryLaunch rotary;
  rotary.input = at(0, {1, 4, 2, 4}).build();
  rotary.cos = at(512, {4, 2}).build();
  rotary.sin = at(544, {4, 2}).build();
  rotary.out = at(0, {1, 4, 2, 4}).build();
  EXPECT_ERROR(with(std::move(rotary)), expect("rotary", "out not to overlap input"));
  AttentionLaunch attention;
  attention.query = at(0, {1, 4, 2, 4}).build();
  attention.key = at(128, {1, 4, 2, 4}).build();
  attention.value = at(256, {1, 4, 2, 4}).build();
  attention.out = at(320, {1, 4, 2, 4}).build();
  attention.scale = 1;
  EXPECT_ERROR(with(std::move(attention)), expect("attention", "out not to overlap value"));
  PartLaunch slice;
  slice.source = at(0, {8, 4}).build();
  slice.dest = at(0, {8, 4}).build();
  slice.axes = ProcedureBuilder::axisRefs({"tp"});
  EXPECT_ERROR(with(std::move(slice)), expect("part", "dest not to overlap source"));
}

/// The check of a call's arguments depends on what the caller passes.
TEST(NoAlias, RefusesCallsWhoseArgumentsOverlap) {
  auto copied = [](uint64_t to) {
    return loaded([&](ProgramBuilder &b, ProcedureBuilder &p) {
      p.call("layer", 1, {local(0, f32, {8, 4}), local(to, f32, {8, 4})}, 4096, 0, 0);
      auto callee = b.procedure("layer", 2, 0, 0, 0);
      callee.copy("c", argument(0, f32, {8, 4}), argument(1, f32, {8, 4}));
    });
  };
  EXPECT_ERROR(copied(124),
               "copy 'c' in @layer on the compute queue expects dest not to overlap source");
  EXPECT_OK(copied(128));
}

TEST(NoAlias, LetsKernelsWorkInPlaceWhereTheySayThatTheyCan) {
  auto launched = [](std::vector<uint32_t> inPlace, uint64_t out) {
    return loaded([&](ProgramBuilder &b, ProcedureBuilder &p) {
      uint32_t kernel = b.kernel("add", 3, [](void *const *) {});
      b.program.kernels[kernel]->in_place = std::move(inPlace);
      p.launch("c", kernel,
               {local(0, f32, {8, 4}), local(256, f32, {8, 4}), local(out, f32, {8, 4})},
               {true, true, true}, 8);
    });
  };
  auto message = [](const char *read) {
    return std::string(
               "kernel 'c' in @main on the compute queue expects operand 2 not to overlap ") +
           read;
  };
  EXPECT_OK(launched({0, 2}, 0));
  EXPECT_OK(launched({0, 2, 1, 2}, 0));
  EXPECT_OK(launched({0, 2, 1, 2}, 256));
  EXPECT_OK(launched({}, 128));
  EXPECT_ERROR(launched({1, 2}, 0), message("operand 0"));
  EXPECT_ERROR(launched({0, 2}, 16), message("operand 0"));
  EXPECT_ERROR(launched({}, 256), message("operand 1"));
}

} // namespace
