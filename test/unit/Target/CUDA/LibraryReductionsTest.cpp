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

TEST_F(Library, ReduceDims) {
  const Shape shape{5, 3, 40};
  for (DType storage : kStorages)
    for (int64_t kind = 0; kind < 3; ++kind)
      for (int64_t dims = 1; dims < 8; ++dims) {
        SCOPED_TRACE(std::string(runtime::name(storage)) + ", kind " + std::to_string(kind) +
                     ", dims " + std::to_string(dims));
        Tensor input = floats(shape, storage);
        Shape kept;
        for (size_t d = 0; d < shape.size(); ++d)
          if ((dims >> d & 1) == 0)
            kept.push_back(shape[d]);
        const bool pair = kind == 1;
        Buffer in(input, 3), out(storage, kept, 1), expSum(DType::f32, kept, 2);
        library::Call a{};
        a.operands[0] = operandOf(in, storage, shape);
        a.operands[1] = operandOf(out, storage, kept);
        if (pair)
          a.operands[2] = operandOf(expSum, DType::f32, kept);
        a.integers[0] = kind;
        a.integers[1] = dims;
        a.rows = interp::numElements(kept);
        launch("braid_reduce_dims", a.rows * 32, a);
        interp::KernelCall call;
        call.inputs = {&input, nullptr};
        call.integers = {kind, dims};
        call.outputs = {{storage, kept}};
        if (pair)
          call.outputs.push_back({DType::f32, kept});
        auto expected = interp::computeLibraryKernel("reduce_dims", call);
        ASSERT_TRUE(expected.ok());
        EXPECT_TRUE(out.guardsHold() && expSum.guardsHold());
        if (pair)
          EXPECT_LE(interp::relativeL2(expSum.read(), expected->at(1)), 1e-6);
        EXPECT_LE(interp::relativeL2(out.read(), expected->at(0)), storage == DType::f32   ? 1e-6
                                                                   : storage == DType::f16 ? 1e-3
                                                                                           : 1e-2);
      }
}

TEST_F(Library, ReductionsOfEveryType) {
  constexpr int64_t count = 300;
  for (DType type :
       {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64, DType::i8})
    for (int test = 0; test < 6; ++test) {
      const int kind = test % 3;
      const bool transposed = test >= 3; // the second half of [20, 15] to columns
      SCOPED_TRACE(std::string(runtime::name(type)) + ", kind " + std::to_string(kind) +
                   (transposed ? ", transposed" : ""));
      std::vector<Buffer> sources;
      std::vector<Tensor> values;
      for (int i = 0; i < 4; ++i) {
        values.push_back(interp::isFloat(type) ? floats({count}, type)
                                               : integers({count}, -30, 30, type));
        sources.emplace_back(values.back(), 0);
      }
      Buffer out(type, {count}, 0);
      library::Reduce a{};
      for (int i = 0; i < 4; ++i)
        a.sources[i] = sources[i].address();
      a.out = out.address();
      a.count = a.run = count;
      if (transposed) {
        a.first = a.count = count / 2;
        a.run = 1;
        a.rank = 2;
        a.counts[0] = a.outStrides[1] = 20;
        a.counts[1] = a.sourceStrides[0] = 15;
        a.sourceStrides[1] = a.outStrides[0] = 1;
      }
      a.numSources = 4;
      a.kind = kind;
      a.dtype = static_cast<int>(type);
      launch("braid_reduce", a.count, a);
      EXPECT_TRUE(out.guardsHold());
      Tensor got = out.read();
      auto combined = [&](auto of) {
        auto total = of(values[0]);
        for (int i = 1; i < 4; ++i) {
          auto next = of(values[i]);
          total = kind == 0   ? total + next
                  : kind == 1 ? std::max(total, next)
                              : std::min(total, next);
        }
        return total;
      };
      for (int64_t i = a.first; i < count; ++i) {
        const int64_t to = transposed ? i % 15 * 20 + i / 15 : i;
        if (!interp::isFloat(type)) {
          ASSERT_EQ(got.ints()[to], combined([&](const Tensor &one) { return one.ints()[i]; }))
              << i;
          continue;
        }
        // Computed in f32 or f64 and rounded once: the result is at most the other neighbor.
        const double sum = combined([&](const Tensor &one) { return one.floats()[i]; });
        const double unit = type == DType::bf16 ? 8e-3 : type == DType::f16 ? 1e-3 : 2e-7;
        ASSERT_NEAR(got.floats()[to], sum, std::abs(sum) * unit + 1e-6) << i;
      }
    }
}
