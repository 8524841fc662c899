//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "LibraryTesting.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

using namespace braid;
using namespace braid::test;
using interp::DType;
using interp::Shape;
using interp::Tensor;

namespace {
struct AttentionCase {
  int64_t queries, keys, heads, group, dim, valueDim;
};
} // namespace

TEST_F(Library, AttentionUnderEveryRestriction) {
  const AttentionCase cases[] = {
      {5, 13, 6, 3, 20, 20},   {1, 40, 2, 1, 64, 64}, {7, 7, 4, 4, 1, 1},   {3, 2, 3, 1, 200, 200},
      {2, 33, 2, 2, 256, 256}, {3, 0, 2, 1, 16, 16},  {5, 9, 4, 2, 24, 40}, {3, 9, 4, 2, 65, 7}};
  const int64_t batch = 2;
  for (const AttentionCase &c : cases)
    for (DType storage : kStorages)
      for (int restrict = 0; restrict < 8; ++restrict) {
        const DType type = restrict % 2 ? DType::i32 : DType::i64;
        SCOPED_TRACE(std::string(runtime::name(storage)) + ", " + std::to_string(c.queries) +
                     " queries, " + std::to_string(c.keys) + " keys, " + std::to_string(c.heads) +
                     " heads of " + std::to_string(c.dim) + ", restrictions " +
                     std::to_string(restrict));
        const Shape keyShape{batch, c.keys, c.heads / c.group, c.dim},
            valueShape{batch, c.keys, c.heads / c.group, c.valueDim};
        Tensor q = floats({batch, c.queries, c.heads, c.dim}, storage),
               k = floats(keyShape, storage), v = floats(valueShape, storage);
        // The first sequence has no key at all; the first queries of the second sequence come
        // before all keys.
        Tensor mask = integers({batch, c.keys}, 0, 1, type),
               valid = Tensor::ofInts(type, {2}, {0, c.keys - 1}),
               offset = Tensor::ofInts(type, {2}, {8, -2});
        Buffer query(q, 3), key(k, 1), value(v, 2), masks(mask, 4), lengths(valid, 0),
            offsets(offset, 0), out(storage, {batch, c.queries, c.heads, c.valueDim}, 7),
            logSum(DType::f32, {batch, c.queries, c.heads}, 2);
        interp::AttentionOperands operands{&q, &k, &v};
        library::Attention a{};
        operands.scale = a.scale = 0.3125f;
        if (restrict & 1) {
          operands.mask = &mask;
          a.mask = integersOf(masks, type, 1);
          a.maskBatch = masks.strides()[0];
        }
        if (restrict & 2) {
          operands.validLength = &valid;
          a.validLength = integersOf(lengths, type);
        }
        if (restrict & 4) {
          operands.causal = true;
          operands.positionOffset = &offset;
          a.causal = 1;
          a.positionOffset = integersOf(offsets, type);
        }
        a.query = query.address();
        a.key = key.address();
        a.value = value.address();
        a.out = out.address();
        a.logSum = static_cast<float *>(logSum.address());
        a.logSumBatch = logSum.strides()[0];
        a.logSumRow = logSum.strides()[1];
        a.logSumHead = logSum.strides()[2];
        a.batch = batch;
        a.queries = c.queries;
        a.heads = c.heads;
        a.keys = c.keys;
        a.headDim = c.dim;
        a.valueDim = c.valueDim;
        a.group = c.group;
        a.queryBatch = query.strides()[0];
        a.queryRow = query.strides()[1];
        a.queryHead = query.strides()[2];
        a.keyBatch = key.strides()[0];
        a.keyRow = key.strides()[1];
        a.keyHead = key.strides()[2];
        a.valueBatch = value.strides()[0];
        a.valueRow = value.strides()[1];
        a.valueHead = value.strides()[2];
        a.outBatch = out.strides()[0];
        a.outRow = out.strides()[1];
        a.outHead = out.strides()[2];
        launch(ofType("braid_attention", storage), batch * c.queries * c.heads * 32, a);
        Tensor expectedSums;
        expectResult(out, interp::attention(operands, &expectedSums), allowed(storage, 1e-6));
        EXPECT_TRUE(logSum.guardsHold());
        const Tensor sums = logSum.read();
        for (int64_t i = 0; i < sums.numElements(); ++i) {
          const double x = sums.floats()[i], y = expectedSums.floats()[i];
          EXPECT_TRUE(x == y || std::abs(x - y) < 1e-5 * std::max(1.0, std::abs(y))) << i;
        }
      }
}

TEST_F(Library, AttentionOfOffsetsThatNoSumHolds) {
  for (int64_t offset :
       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    SCOPED_TRACE(offset);
    const Shape shape{1, 3, 1, 8};
    Tensor q = floats(shape), k = floats(shape), v = floats(shape),
           offsets = Tensor::ofInts(DType::i64, {1}, {offset});
    Buffer query(q, 0), key(k, 0), value(v, 0), out(DType::f32, shape, 0), given(offsets, 0);
    interp::AttentionOperands operands{&q, &k, &v};
    operands.causal = true;
    operands.positionOffset = &offsets;
    library::Attention a{};
    a.query = query.address();
    a.key = key.address();
    a.value = value.address();
    a.out = out.address();
    a.batch = a.heads = a.group = 1;
    a.queries = a.keys = 3;
    a.headDim = a.valueDim = 8;
    a.queryRow = a.keyRow = a.valueRow = a.outRow = 8;
    a.positionOffset = integersOf(given, DType::i64);
    a.scale = 1;
    a.causal = 1;
    launch("braid_attention_f32", 3 * 32, a);
    expectResult(out, interp::attention(operands), 1e-6);
  }
}
