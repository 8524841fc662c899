//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// CUDA source compiled for the CPU and run by test/lib/cuda-on-host.
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
  /// Null, with a failure reported, when the source does not compile. `kernels` are the functions
  /// to be launched.
  static std::unique_ptr<HostKernels> compile(const std::string &source,
                                              const std::vector<std::string> &kernels);
  ~HostKernels();
  HostKernels(const HostKernels &) = delete;

  /// Returns an error, or empty. `arguments` point at the kernel's arguments.
  std::string launch(const std::string &kernel, uint64_t blocks, unsigned threads,
                     const std::vector<void *> &arguments, uint64_t seed) const;

private:
  HostKernels() = default;
  void *library = nullptr;
};

} // namespace braid::test
#endif // BRAID_TEST_UNIT_TARGET_CUDA_HOSTKERNELS_H
