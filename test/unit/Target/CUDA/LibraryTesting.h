//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the kernels of library.cuh on the CPU, with threads in several random orders, on operands
// with gaps between rows and guards around them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_TARGET_CUDA_LIBRARYTESTING_H
#define BRAID_TEST_UNIT_TARGET_CUDA_LIBRARYTESTING_H

#include "KernelCheck.h"

#include "braid/Interpreter/Core/Kernels.h"
#include "lib/Target/CUDA/Compilers.h"
#include "runtime/kernels/cuda/braid/library_arguments.h"
#include "test/lib/cuda-on-host/HostCompiler.h"

#include <random>

namespace braid::test {

inline constexpr const char *kLibrarySource = "#include <braid/library.cuh>\n";

struct Library : ::testing::Test {
  static void SetUpTestSuite() {
    kernels = HostKernels::compile(kLibrarySource,
                                   {std::begin(kLibraryKernels), std::end(kLibraryKernels)})
                  .release();
  }
  static void TearDownTestSuite() {
    delete kernels;
    kernels = nullptr;
  }
  void SetUp() override { ASSERT_TRUE(kernels); }

  /// Launches a kernel with the number of blocks that this number of threads fills.
  template <class Arguments>
  void launch(const std::string &kernel, int64_t threads, Arguments arguments) {
    for (uint64_t seed : {1, 2, 3})
      ASSERT_EQ(kernels->launch(kernel, (threads + library::kThreads - 1) / library::kThreads,
                                library::kThreads, {&arguments}, seed),
                "");
  }

  interp::Tensor floats(const interp::Shape &shape, interp::DType type = interp::DType::f32) {
    std::vector<double> values(interp::numElements(shape));
    for (double &value : values)
      value = interp::roundTo(type, std::uniform_real_distribution<double>(-2, 2)(random));
    return interp::Tensor::ofFloats(type, shape, std::move(values));
  }
  interp::Tensor integers(const interp::Shape &shape, int64_t least, int64_t most,
                          interp::DType type = interp::DType::i64) {
    std::vector<int64_t> values(interp::numElements(shape));
    for (int64_t &value : values)
      value = std::uniform_int_distribution<int64_t>(least, most)(random);
    return interp::Tensor::ofInts(type, shape, std::move(values));
  }

  static inline HostKernels *kernels = nullptr;
  std::mt19937_64 random{7};
};

/// The storage types of kernels that compute; the other kernels move bytes.
inline constexpr interp::DType kStorages[] = {interp::DType::f32, interp::DType::f16,
                                              interp::DType::bf16};
inline std::string ofType(const char *kernel, interp::DType type) {
  return std::string(kernel) + "_" + runtime::name(type);
}
/// Results may be computed in f32 and rounded once, which rounds a few to the other neighbor. Sums
/// in a 16-bit type and truncated results exceed this bound.
inline double allowed(interp::DType type, double inF32) {
  return type == interp::DType::f32 ? inF32 : type == interp::DType::f16 ? 1e-4 : 1e-3;
}

/// One dimension of `buffer` as the integers that a kernel reads.
inline library::Integers integersOf(Buffer &buffer, interp::DType type, size_t dim = 0) {
  return {buffer.address(), buffer.strides()[dim], static_cast<int>(type == interp::DType::i64)};
}

inline void expectResult(const Buffer &got, const interp::Result<interp::Tensor> &expected,
                         double allowed) {
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  EXPECT_TRUE(got.guardsHold()) << "memory outside of the result was written";
  EXPECT_LE(interp::relativeL2(got.read(), expected->roundedToStorage()), allowed);
}

/// A buffer as an operand of kernels that take any shape.
inline library::Operand operandOf(Buffer &buffer, interp::DType type,
                                  const std::vector<int64_t> &shape) {
  library::Operand operand{};
  operand.data = buffer.address();
  operand.dtype = static_cast<int>(type);
  operand.rank = static_cast<int>(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    operand.sizes[d] = shape[d];
    operand.strides[d] = buffer.strides()[d];
  }
  return operand;
}

} // namespace braid::test
#endif // BRAID_TEST_UNIT_TARGET_CUDA_LIBRARYTESTING_H
