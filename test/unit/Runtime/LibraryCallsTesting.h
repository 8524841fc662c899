//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Calls of library kernels without a program, for tests that compare them with plain loops.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_LIBRARYCALLSTESTING_H
#define BRAID_TEST_UNIT_RUNTIME_LIBRARYCALLSTESTING_H

#include "Streams.h"
#include "Testing.h"
#include "braid/Base/StridedCopy.h"
#include "runtime/lib/Executor/Commands.h"
#include "runtime/lib/Kernels/Operations.h"

#include <random>
#include <thread>

namespace braid::runtime::testing {

inline std::vector<const VectorKernels *> allKernels() {
  std::vector<const VectorKernels *> kernels = {vectorKernelsGeneric()};
  const std::string best = vectorKernels().isa;
  if (best == "avx2" || best == "avx512")
    kernels.push_back(vectorKernelsAvx2());
  if (best == "avx512")
    kernels.push_back(vectorKernelsAvx512());
  return kernels;
}

/// Runs a command as an executor's queue does, with a team of threads.
class Bench {
public:
  explicit Bench(int64_t threads, const VectorKernels &kernels)
      : team(threads), scratch(static_cast<size_t>(threads)),
        control(1, computeAndCommunication(), 60, {50, false}),
        context{control, control.queue(0, kComputeQueue), team, kernels, scratch} {
    useOneThread();
    for (int64_t member = 1; member < threads; ++member)
      helpers.emplace_back([this, member] {
        useOneThread();
        team.serve(member, {50, false});
      });
  }
  ~Bench() {
    team.stop();
    for (std::thread &t : helpers)
      t.join();
  }
  template <typename Op> void run(const Op &op) {
    Command source;
    execute(op, source, context);
    EXPECT_FALSE(control.failed());
  }

  Team team;
  std::vector<std::vector<std::byte>> scratch;
  RunControl control;
  ExecutionContext context;
  std::vector<std::thread> helpers;
};

/// A tensor in memory that may have gaps between its rows, filled with a value that must not
/// change.
struct Strided {
  Strided(std::vector<int64_t> shape, int64_t gap, std::mt19937 &random) {
    tensor.shape = shape;
    tensor.strides.resize(shape.size());
    int64_t next = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      tensor.strides[d] = next;
      next *= shape[d];
      if (d + 1 == shape.size())
        next += gap;
    }
    std::normal_distribution<float> normal;
    data.resize(static_cast<size_t>(next));
    for (float &x : data)
      x = normal(random);
    tensor.data = reinterpret_cast<std::byte *>(data.data());
  }
  float &at(std::initializer_list<int64_t> index) {
    int64_t offset = 0;
    size_t d = 0;
    for (int64_t i : index)
      offset += i * tensor.strides[d++];
    return data[static_cast<size_t>(offset)];
  }
  Tensor tensor;
  std::vector<float> data;
};

inline Tensor integers(std::vector<int64_t> &data, std::vector<int64_t> shape) {
  return {reinterpret_cast<std::byte *>(data.data()), DType::i64, shape, rowMajorStrides(shape)};
}

/// The same numbers as i32.
struct Narrow {
  explicit Narrow(const Tensor &wide) : tensor(wide) {
    for (int64_t i = 0; i < wide.numElements(); ++i)
      data.push_back(static_cast<int32_t>(wide.as<int64_t>()[i]));
    tensor.dtype = DType::i32;
    tensor.data = reinterpret_cast<std::byte *>(data.data());
  }
  std::vector<int32_t> data;
  Tensor tensor;
};

/// A call of a library kernel. Operands are in the order of its descriptor; absent ones are null.
inline LibraryArguments call(const char *kernel, const std::vector<const Tensor *> &operands,
                             std::vector<int64_t> integers = {}, std::vector<double> numbers = {}) {
  LibraryArguments a;
  a.kernel = findLibraryKernel(kernel);
  for (const Tensor *t : operands) {
    a.operands.emplace_back();
    a.data.push_back(t ? t->data : nullptr);
    if (t)
      a.operands.back() = OperandType{t->dtype, t->shape, t->strides};
  }
  a.integers = std::move(integers);
  a.numbers = std::move(numbers);
  return a;
}

struct AttentionOperands {
  Tensor query, key, value, out;
  const Tensor *mask = nullptr, *validLength = nullptr, *positionOffset = nullptr;
  const Tensor *logSum = nullptr;
  double scale = 1;
  bool causal = false;
};
inline Result<AttentionCommand> resolveAttention(const AttentionOperands &o, int64_t threads,
                                                 int64_t queryBlock) {
  return resolveAttention(
      call("attention",
           {&o.query, &o.key, &o.value, o.mask, o.validLength, o.positionOffset, &o.out, o.logSum},
           {o.causal}, {o.scale}),
      threads, queryBlock);
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_LIBRARYCALLSTESTING_H
