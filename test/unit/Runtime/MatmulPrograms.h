//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs of one matmul in each of its forms, which several implementations run.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_MATMULPROGRAMS_H
#define BRAID_TEST_UNIT_RUNTIME_MATMULPROGRAMS_H

#include "ProgramBuilder.h"
#include "braid/Base/StatusMacros.h"

#include <map>
#include <optional>
#include <random>

namespace braid::runtime::testing {

/// An operand in memory with gaps.
struct StridedShape {
  Shape shape, strides;
  int64_t elements() const {
    int64_t end = 1;
    for (size_t d = 0; d < shape.size(); ++d)
      end += (shape[d] - 1) * strides[d];
    return end;
  }
};

struct MatmulCase {
  StridedShape lhs, rhs, out;
  bool transposeLhs = false, transposeRhs = false, accumulate = false, bias = false, counts = false;

  std::string describe() const {
    auto text = [](const StridedShape &s) {
      return shapeString(s.shape) + " strides " + shapeString(s.strides);
    };
    return "lhs " + text(lhs) + (transposeLhs ? " transposed" : "") + ", rhs " + text(rhs) +
           (transposeRhs ? " transposed" : "") + ", out " + text(out) +
           (accumulate ? ", accumulate" : "") + (bias ? ", bias" : "") + (counts ? ", counts" : "");
  }
};

class RandomMatmuls {
public:
  explicit RandomMatmuls(uint32_t seed) : random(seed) {}

  /// A matrix for all rows, in up to two levels; a matrix for each of a batch; or groups.
  MatmulCase next() {
    MatmulCase c;
    const int64_t k = size(), n = size(), m = size();
    const bool oneRhs = flip();
    c.counts = !oneRhs && flip();
    c.transposeLhs = !c.counts && flip();
    c.transposeRhs = flip();
    c.accumulate = !c.counts && flip();
    c.bias = flip();
    const size_t leading = c.counts ? 1 : oneRhs ? below(3) : 1 + below(2);
    Shape batch;
    for (size_t d = 0; d < leading; ++d)
      batch.push_back(1 + static_cast<int64_t>(below(4)));
    // Where the second level begins, the same for all operands.
    const size_t level = leading == 0 || c.transposeLhs || !oneRhs ? leading : below(leading + 1);
    auto operand = [&](bool hasBatch, int64_t rows, int64_t columns) {
      StridedShape s;
      if (hasBatch)
        s.shape = batch;
      s.shape.insert(s.shape.end(), {rows, columns});
      s.strides.resize(s.shape.size());
      int64_t stride = 1;
      for (size_t d = s.shape.size(); d-- > 0;) {
        const bool rowStride = d + 2 == s.shape.size(), levelStride = hasBatch && d + 1 == level;
        if (rowStride || levelStride)
          stride += static_cast<int64_t>(below(2) * below(7));
        s.strides[d] = stride;
        stride *= s.shape[d];
      }
      return s;
    };
    c.lhs = c.transposeLhs ? operand(true, k, m) : operand(true, m, k);
    c.rhs = c.transposeRhs ? operand(!oneRhs, n, k) : operand(!oneRhs, k, n);
    c.out = operand(true, m, n);
    return c;
  }

  /// Values for the program's operands, by name.
  std::map<std::string, HostTensor> inputs(const MatmulCase &c) {
    std::map<std::string, HostTensor> result;
    auto floats = [&](const char *name, const Shape &shape) {
      HostTensor &tensor = result[name] = HostTensor::zeros(DType::f32, shape);
      std::normal_distribution<float> normal;
      for (int64_t i = 0; i < tensor.numElements(); ++i)
        tensor.as<float>()[i] = normal(random);
    };
    floats("lhs", {c.lhs.elements()});
    floats("rhs", {c.rhs.elements()});
    if (c.bias)
      floats("bias", biasShape(c));
    if (c.accumulate)
      floats("before", c.out.shape);
    if (c.counts) {
      const int64_t groups = c.out.shape[0], capacity = c.out.shape[1];
      HostTensor &tensor = result["counts"] = HostTensor::zeros(DType::i32, {groups});
      for (int64_t g = 0; g < groups; ++g)
        tensor.as<int32_t>()[g] = static_cast<int32_t>(below(static_cast<size_t>(capacity) + 1));
    }
    return result;
  }

  static Shape biasShape(const MatmulCase &c) {
    Shape shape(c.rhs.shape.begin(), c.rhs.shape.end() - 2);
    shape.push_back(c.out.shape.back());
    return shape;
  }

private:
  size_t below(size_t limit) { return random() % limit; }
  bool flip() { return below(2) == 1; }
  int64_t size() {
    constexpr int64_t sizes[] = {1, 2, 3, 7, 16, 33, 70};
    return sizes[below(std::size(sizes))];
  }
  std::mt19937 random;
};

/// out = matmul of lhs and rhs, computed in memory with gaps. Inputs are those of RandomMatmuls.
inline ProgramBuilder matmulProgram(const MatmulCase &c) {
  constexpr DType f32 = DType::f32;
  ProgramBuilder b({{"a", 1}});
  uint32_t next = 0;
  auto operand = [&](const char *name, DType dtype, const Shape &shape) {
    b.operand(name, dtype, shape);
    return argument(next++, dtype, shape);
  };
  auto strided = [](V view, const StridedShape &s) {
    view.shape = s.shape;
    view.strides = s.strides;
    return view;
  };
  MatmulLaunch matmul;
  matmul.transpose_lhs = c.transposeLhs;
  matmul.transpose_rhs = c.transposeRhs;
  matmul.accumulate = c.accumulate;
  // Inputs are set by name, in the order of their names here.
  std::optional<V> before;
  if (c.accumulate)
    before = operand("before", f32, c.out.shape);
  if (c.bias)
    matmul.bias = operand("bias", f32, RandomMatmuls::biasShape(c)).build();
  if (c.counts)
    matmul.counts = operand("counts", DType::i32, {c.out.shape[0]}).build();
  matmul.lhs = strided(operand("lhs", f32, {c.lhs.elements()}), c.lhs).build();
  matmul.rhs = strided(operand("rhs", f32, {c.rhs.elements()}), c.rhs).build();
  b.result("out", f32, c.out.shape);
  const V out = argument(next++, f32, c.out.shape), memory = strided(local(0, f32, {}), c.out);
  auto p = b.procedure("main", next, static_cast<uint64_t>(4 * c.out.elements()), 0, 0);
  if (before)
    p.copy("before", *before, memory);
  matmul.out = memory.build();
  p.compute("product", std::move(matmul));
  p.copy("out", memory, out);
  return b;
}

/// What a session computes.
inline Result<HostTensor> runMatmul(Session &session,
                                    const std::map<std::string, HostTensor> &inputs) {
  for (const auto &[name, value] : inputs)
    RETURN_IF_ERROR(session.setInput(name, value));
  RETURN_IF_ERROR(session.run());
  return session.output("out");
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_MATMULPROGRAMS_H
