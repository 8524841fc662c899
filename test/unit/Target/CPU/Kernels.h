//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles kernels given as text and calls them on matrices.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_TARGET_CPU_KERNELS_H
#define BRAID_TEST_UNIT_TARGET_CPU_KERNELS_H

#include "braid/Target/CPU/CPUTarget.h"
#include "test/unit/Target/KernelText.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace braid::test {

/// A strided tensor, passed as the memref descriptor that kernels take.
template <typename T> struct Tensor {
  std::vector<int64_t> shape, strides;
  int64_t offset = 0;
  std::vector<T> data;

  explicit Tensor(std::vector<int64_t> shape, T value = T()) : shape(std::move(shape)) {
    int64_t size = 1;
    strides.resize(this->shape.size());
    for (size_t dim = this->shape.size(); dim-- > 0; size *= this->shape[dim])
      strides[dim] = size;
    data.assign(size, value);
  }
  /// Uniform values in [low, high), the same for the same seed.
  static Tensor random(std::vector<int64_t> shape, uint64_t seed, double low = -2,
                       double high = 2) {
    Tensor tensor(std::move(shape));
    for (T &value : tensor.data) {
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      value = static_cast<T>(low + (high - low) * static_cast<double>(seed >> 40) / (1 << 24));
    }
    return tensor;
  }
  /// The descriptor of rows [first, first + count) of the outermost dimension, on the same memory.
  std::vector<int64_t> descriptor(int64_t first, int64_t count) const {
    auto *base = const_cast<T *>(data.data());
    std::vector<int64_t> words{reinterpret_cast<int64_t>(base), reinterpret_cast<int64_t>(base),
                               offset + (shape.empty() ? 0 : first * strides[0])};
    for (size_t dim = 0; dim < shape.size(); ++dim)
      words.push_back(dim == 0 ? count : shape[dim]);
    words.insert(words.end(), strides.begin(), strides.end());
    return words;
  }
  std::vector<int64_t> descriptor() const { return descriptor(0, shape.empty() ? 0 : shape[0]); }
};

/// The kernels of a module, compiled for one instruction set and loaded.
class LoadedKernels {
public:
  LoadedKernels(const CPUKernelLibrary &library);
  ~LoadedKernels();
  LoadedKernels(const LoadedKernels &) = delete;
  void call(const std::string &kernel, std::vector<std::vector<int64_t>> descriptors) const;
  const std::string isa;

private:
  void *handle = nullptr;
};

struct CompileResult {
  bool ok = false;
  std::string messages; ///< Errors and remarks, one on each line.
  std::vector<CPUKernelLibrary> libraries;
  /// Optimized LLVM IR for the last instruction set that compileKernels compiled for.
  std::string ir;
};
CompileResult compileKernels(const std::string &source, const CPUTargetOptions &options = {});

/// Compiles and runs `body` for each instruction set of this machine. A failure names the
/// instruction set.
void forEachISA(const std::string &source, const std::function<void(const LoadedKernels &)> &body);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_TARGET_CPU_KERNELS_H
