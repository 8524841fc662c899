//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels with reductions, several results and several row dimensions.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace braid;
using namespace braid::test;

namespace {
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Adds two matrices, then normalizes rows; returns the sum and the normalized rows.
const char *kAddLayerNorm = R"(
  #rc = affine_map<(r, c) -> (r, c)>
  #r = affine_map<(r, c) -> (r)>
  #c = affine_map<(r, c) -> (c)>
  #row = affine_map<(r) -> (r)>
  rt.kernel @add_layer_norm(%x: tensor<?x$Cxf32>, %y: tensor<?x$Cxf32>, %w: tensor<$Cxf32>, %b: tensor<$Cxf32>)
      -> (tensor<?x$Cxf32>, tensor<?x$Cxf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %count = arith.constant $COUNT : f32
    %eps = arith.constant 1.0e-12 : f32
    %n = tensor.dim %x, %c0 : tensor<?x$Cxf32>
    %e = tensor.empty(%n) : tensor<?x$Cxf32>
    %er = tensor.empty(%n) : tensor<?xf32>
    %h = linalg.generic {indexing_maps = [#rc, #rc, #rc], iterator_types = ["parallel", "parallel"]}
        ins(%x, %y : tensor<?x$Cxf32>, tensor<?x$Cxf32>) outs(%e : tensor<?x$Cxf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %0 = arith.addf %p, %q : f32
        linalg.yield %0 : f32
    } -> tensor<?x$Cxf32>
    %init = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
    %sum = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
        ins(%h : tensor<?x$Cxf32>) outs(%init : tensor<?xf32>) {
      ^bb0(%p: f32, %acc: f32):
        %0 = arith.addf %acc, %p : f32
        linalg.yield %0 : f32
    } -> tensor<?xf32>
    %mean = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
        ins(%sum : tensor<?xf32>) outs(%er : tensor<?xf32>) {
      ^bb0(%p: f32, %o: f32):
        %0 = arith.divf %p, %count : f32
        linalg.yield %0 : f32
    } -> tensor<?xf32>
    %squares = linalg.generic {indexing_maps = [#rc, #r, #r], iterator_types = ["parallel", "reduction"]}
        ins(%h, %mean : tensor<?x$Cxf32>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
      ^bb0(%p: f32, %m: f32, %acc: f32):
        %0 = arith.subf %p, %m : f32
        %1 = arith.mulf %0, %0 : f32
        %2 = arith.addf %acc, %1 : f32
        linalg.yield %2 : f32
    } -> tensor<?xf32>
    %out = linalg.generic {indexing_maps = [#rc, #r, #r, #c, #c, #rc], iterator_types = ["parallel", "parallel"]}
        ins(%h, %mean, %squares, %w, %b
            : tensor<?x$Cxf32>, tensor<?xf32>, tensor<?xf32>, tensor<$Cxf32>, tensor<$Cxf32>)
        outs(%e : tensor<?x$Cxf32>) {
      ^bb0(%p: f32, %m: f32, %s: f32, %g: f32, %d: f32, %o: f32):
        %0 = arith.divf %s, %count : f32
        %1 = arith.addf %0, %eps : f32
        %2 = math.rsqrt %1 : f32
        %3 = arith.subf %p, %m : f32
        %4 = arith.mulf %3, %2 : f32
        %5 = arith.mulf %4, %g : f32
        %6 = arith.addf %5, %d : f32
        linalg.yield %6 : f32
    } -> tensor<?x$Cxf32>
    rt.yield %out, %h : tensor<?x$Cxf32>, tensor<?x$Cxf32>
  })";

/// Softmax along columns, and the maximum of each row.
const char *kSoftmax = R"(
  #rc = affine_map<(r, c) -> (r, c)>
  #r = affine_map<(r, c) -> (r)>
  rt.kernel @softmax(%x: tensor<?x$Cxf32>) -> (tensor<?x$Cxf32>, tensor<?xf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %n = tensor.dim %x, %c0 : tensor<?x$Cxf32>
    %e = tensor.empty(%n) : tensor<?x$Cxf32>
    %er = tensor.empty(%n) : tensor<?xf32>
    %m0 = linalg.fill ins(%low : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
    %m = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<?x$Cxf32>) outs(%m0 : tensor<?xf32>) {
      ^bb0(%p: f32, %acc: f32):
        %0 = arith.maximumf %acc, %p : f32
        linalg.yield %0 : f32
    } -> tensor<?xf32>
    %exp = linalg.generic {indexing_maps = [#rc, #r, #rc], iterator_types = ["parallel", "parallel"]}
        ins(%x, %m : tensor<?x$Cxf32>, tensor<?xf32>) outs(%e : tensor<?x$Cxf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %0 = arith.subf %p, %q : f32
        %1 = math.exp %0 : f32
        linalg.yield %1 : f32
    } -> tensor<?x$Cxf32>
    %s0 = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
    %s = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
        ins(%exp : tensor<?x$Cxf32>) outs(%s0 : tensor<?xf32>) {
      ^bb0(%p: f32, %acc: f32):
        %0 = arith.addf %acc, %p : f32
        linalg.yield %0 : f32
    } -> tensor<?xf32>
    %out = linalg.generic {indexing_maps = [#rc, #r, #rc], iterator_types = ["parallel", "parallel"]}
        ins(%exp, %s : tensor<?x$Cxf32>, tensor<?xf32>) outs(%e : tensor<?x$Cxf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %0 = arith.divf %p, %q : f32
        linalg.yield %0 : f32
    } -> tensor<?x$Cxf32>
    rt.yield %out, %m : tensor<?x$Cxf32>, tensor<?xf32>
  })";

std::string withColumns(const char *source, int64_t columns) {
  return substitute(source,
                    {{"COUNT", std::to_string(columns) + ".0"}, {"C", std::to_string(columns)}});
}
} // namespace

TEST(Rows, AddLayerNorm) {
  for (int64_t columns : {1, 7, 16, 31, 33, 383, 384, 385, 4097}) {
    SCOPED_TRACE(columns);
    forEachISA(withColumns(kAddLayerNorm, columns), [&](const LoadedKernels &kernels) {
      for (int64_t rows : {0, 1, 6}) {
        auto x = Tensor<float>::random({rows, columns}, 1),
             y = Tensor<float>::random({rows, columns}, 2);
        auto w = Tensor<float>::random({columns}, 3), b = Tensor<float>::random({columns}, 4);
        Tensor<float> out({rows, columns}), h({rows, columns});
        kernels.call("add_layer_norm", {x.descriptor(), y.descriptor(), w.descriptor(),
                                        b.descriptor(), out.descriptor(), h.descriptor()});
        for (int64_t r = 0; r < rows; ++r) {
          double mean = 0, variance = 0;
          for (int64_t c = 0; c < columns; ++c) {
            ASSERT_EQ(h.data[r * columns + c], x.data[r * columns + c] + y.data[r * columns + c]);
            mean += h.data[r * columns + c];
          }
          mean /= columns;
          for (int64_t c = 0; c < columns; ++c)
            variance += std::pow(h.data[r * columns + c] - mean, 2);
          double scale = 1 / std::sqrt(variance / columns + 1e-12);
          for (int64_t c = 0; c < columns; ++c)
            ASSERT_NEAR(out.data[r * columns + c],
                        (h.data[r * columns + c] - mean) * scale * w.data[c] + b.data[c], 4e-6)
                << "row " << r << " column " << c;
        }
      }
    });
  }
}

TEST(Rows, Softmax) {
  for (int64_t columns : {1, 7, 31, 383, 384, 385, 4097}) {
    SCOPED_TRACE(columns);
    forEachISA(withColumns(kSoftmax, columns), [&](const LoadedKernels &kernels) {
      auto x = Tensor<float>::random({5, columns}, 9, -20, 20);
      if (columns > 1)
        for (int64_t c = 0; c < columns; c += 3) // a mask
          x.data[2 * columns + c] = -kInf;
      Tensor<float> out({5, columns}), top({5});
      kernels.call("softmax", {x.descriptor(), out.descriptor(), top.descriptor()});
      for (int64_t r = 0; r < 5; ++r) {
        const float *row = &x.data[r * columns];
        double high = *std::max_element(row, row + columns), sum = 0;
        ASSERT_EQ(top.data[r], float(high));
        for (int64_t c = 0; c < columns; ++c)
          sum += std::exp(row[c] - high);
        for (int64_t c = 0; c < columns; ++c) {
          double expected = std::exp(row[c] - high) / sum;
          // Half a unit in the last place of a difference below 64, and the error of the functions.
          ASSERT_NEAR(out.data[r * columns + c], expected, (1.91e-6 + 6e-7) * expected + 1e-38)
              << "row " << r << " column " << c;
        }
      }
    });
  }
}

TEST(Rows, SpecialValuesStayInTheirRow) {
  forEachISA(withColumns(kSoftmax, 21), [&](const LoadedKernels &kernels) {
    auto x = Tensor<float>::random({4, 21}, 3);
    x.data[1 * 21 + 20] = std::nanf(""); // in the masked vector
    x.data[2 * 21 + 4] = kInf;
    Tensor<float> out({4, 21}), top({4});
    kernels.call("softmax", {x.descriptor(), out.descriptor(), top.descriptor()});
    for (int64_t c = 0; c < 21; ++c) {
      EXPECT_TRUE(std::isfinite(out.data[c]));
      EXPECT_TRUE(std::isnan(out.data[21 + c])) << c;
      // inf - inf at the position itself, and 0 / NaN at the others.
      EXPECT_TRUE(std::isnan(out.data[42 + c])) << c;
      EXPECT_TRUE(std::isfinite(out.data[63 + c]));
    }
    EXPECT_TRUE(std::isnan(top.data[1]));
    EXPECT_EQ(top.data[2], kInf);
  });
}

TEST(Rows, AnyRangeGivesTheSameBits) {
  for (int64_t columns : {384, 385}) {
    forEachISA(withColumns(kAddLayerNorm, columns), [&](const LoadedKernels &kernels) {
      auto x = Tensor<float>::random({13, columns}, 1), y = Tensor<float>::random({13, columns}, 2);
      auto w = Tensor<float>::random({columns}, 3), b = Tensor<float>::random({columns}, 4);
      Tensor<float> whole({13, columns}), cut({13, columns}), h({13, columns});
      kernels.call("add_layer_norm", {x.descriptor(), y.descriptor(), w.descriptor(),
                                      b.descriptor(), whole.descriptor(), h.descriptor()});
      for (auto [first, count] :
           {std::pair(0, 1), std::pair(1, 5), std::pair(6, 0), std::pair(6, 7)})
        kernels.call("add_layer_norm",
                     {x.descriptor(first, count), y.descriptor(first, count), w.descriptor(),
                      b.descriptor(), cut.descriptor(first, count), h.descriptor(first, count)});
      EXPECT_EQ(std::memcmp(whole.data.data(), cut.data.data(), whole.data.size() * sizeof(float)),
                0);
    });
  }
}

TEST(Rows, SeveralRowDimensions) {
  // Adds an operand of [3, C] to one of [rows, 3, C] and scales the sum by one of [rows, 3].
  // Returns the scaled sum and, for each row of [rows, 3], the minimum and the product of its
  // elements.
  const char *source = R"(
    #full = affine_map<(b, r, c) -> (b, r, c)>
    #table = affine_map<(b, r, c) -> (r, c)>
    #rows = affine_map<(b, r, c) -> (b, r)>
    rt.kernel @rows(%x: tensor<?x3x$Cxf32>, %t: tensor<3x$Cxf32>, %k: tensor<?x3xf32>)
        -> (tensor<?x3x$Cxf32>, tensor<?x3xf32>, tensor<?x3xf32>) attributes {row_dims = 2 : i64} {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1.0 : f32
      %high = arith.constant 0x7F800000 : f32
      %n = tensor.dim %x, %c0 : tensor<?x3x$Cxf32>
      %e = tensor.empty(%n) : tensor<?x3x$Cxf32>
      %er = tensor.empty(%n) : tensor<?x3xf32>
      %h = linalg.generic {indexing_maps = [#full, #table, #rows, #full],
                           iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%x, %t, %k : tensor<?x3x$Cxf32>, tensor<3x$Cxf32>, tensor<?x3xf32>) outs(%e : tensor<?x3x$Cxf32>) {
        ^bb0(%p: f32, %q: f32, %s: f32, %o: f32):
          %0 = arith.addf %p, %q : f32
          %1 = arith.mulf %0, %s : f32
          linalg.yield %1 : f32
      } -> tensor<?x3x$Cxf32>
      %l0 = linalg.fill ins(%high : f32) outs(%er : tensor<?x3xf32>) -> tensor<?x3xf32>
      %l = linalg.generic {indexing_maps = [#full, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%h : tensor<?x3x$Cxf32>) outs(%l0 : tensor<?x3xf32>) {
        ^bb0(%p: f32, %acc: f32):
          %0 = arith.minimumf %acc, %p : f32
          linalg.yield %0 : f32
      } -> tensor<?x3xf32>
      %p0 = linalg.fill ins(%one : f32) outs(%er : tensor<?x3xf32>) -> tensor<?x3xf32>
      %all = linalg.generic {indexing_maps = [#full, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%h : tensor<?x3x$Cxf32>) outs(%p0 : tensor<?x3xf32>) {
        ^bb0(%p: f32, %acc: f32):
          %0 = arith.mulf %p, %acc : f32
          linalg.yield %0 : f32
      } -> tensor<?x3xf32>
      rt.yield %h, %l, %all : tensor<?x3x$Cxf32>, tensor<?x3xf32>, tensor<?x3xf32>
    })";
  for (int64_t columns : {1, 7, 70}) {
    SCOPED_TRACE(columns);
    forEachISA(withColumns(source, columns), [&](const LoadedKernels &kernels) {
      auto x = Tensor<float>::random({4, 3, columns}, 1, 0.4, 0.6),
           t = Tensor<float>::random({3, columns}, 2, 0.4, 0.6);
      auto k = Tensor<float>::random({4, 3}, 3, 0.9, 1.1);
      Tensor<float> h(x.shape), least(k.shape), product(k.shape);
      kernels.call("rows", {x.descriptor(), t.descriptor(), k.descriptor(), h.descriptor(),
                            least.descriptor(), product.descriptor()});
      for (int64_t row = 0; row < 12; ++row) {
        float low = kInf;
        double all = 1;
        for (int64_t c = 0; c < columns; ++c) {
          float expected =
              (x.data[row * columns + c] + t.data[row % 3 * columns + c]) * k.data[row];
          ASSERT_EQ(h.data[row * columns + c], expected) << "row " << row << " column " << c;
          low = std::min(low, expected);
          all *= expected;
        }
        EXPECT_EQ(least.data[row], low);
        EXPECT_NEAR(product.data[row], all, 1e-5 * all);
      }
    });
  }
}
