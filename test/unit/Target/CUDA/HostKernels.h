//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiles CUDA source for the CPU and runs it with test/lib/cuda-on-host.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_TARGET_CUDA_HOSTKERNELS_H
#define BRAID_TEST_UNIT_TARGET_CUDA_HOSTKERNELS_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace braid::test {

class HostKernels {
public:
  /// Compiles `source`, whose functions `kernels` can be launched. Reports a failure and returns
  /// null if it does not compile.
  static std::unique_ptr<HostKernels> compile(const std::string &source,
                                              const std::vector<std::string> &kernels);
  ~HostKernels();
  HostKernels(const HostKernels &) = delete;

  /// Returns an error, or empty. `arguments` points to the addresses of the kernel's arguments.
  std::string launch(const std::string &kernel, uint64_t blocks, unsigned threads,
                     const std::vector<void *> &arguments, uint64_t seed) const;

private:
  HostKernels() = default;
  void *library = nullptr;
};

} // namespace braid::test
#endif // BRAID_TEST_UNIT_TARGET_CUDA_HOSTKERNELS_H
