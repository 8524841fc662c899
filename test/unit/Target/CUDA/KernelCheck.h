//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares the results of a module's emitted kernels with the interpreter's.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_TARGET_CUDA_KERNELCHECK_H
#define BRAID_TEST_UNIT_TARGET_CUDA_KERNELCHECK_H

#include "HostKernels.h"

#include "braid/Interpreter/Core/Tensor.h"
#include "braid/Target/CUDA/CUDATarget.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/IR/OwningOpRef.h"

#include "gtest/gtest.h"

#include <map>

namespace braid::test {

/// Elements in strided memory with guards around each row. All other bytes hold a pattern that
/// reads as NaN and must not change.
class Buffer {
public:
  /// Rows of the innermost dimension are `padding` elements apart.
  Buffer(const interp::Tensor &elements, int64_t padding);
  /// Uninitialized memory for results.
  Buffer(interp::DType type, interp::Shape shape, int64_t padding);

  void *address() { return bytes.data() + offset; }
  const std::vector<long long> &strides() const { return elementStrides; }
  interp::Tensor read() const;
  /// Whether all guards are unchanged.
  bool guardsHold() const;

private:
  void place(int64_t padding);
  size_t positionOf(const interp::Shape &index) const;

  interp::DType type;
  interp::Shape shape;
  std::vector<long long> elementStrides;
  std::vector<std::byte> bytes;
  size_t offset = 0;
};

struct CheckOptions {
  int64_t rows = 5;
  int64_t padding = 0;
  uint64_t seed = 1;
  /// Result i shares the memory of argument j, for a pair for which the kernel allows this.
  bool inPlace = false;
};

/// A module's kernels as CUDA source, compiled for the host.
class KernelModule {
public:
  /// `source` is a module at any level that has rt.kernel operations.
  explicit KernelModule(const std::string &source);
  explicit KernelModule(mlir::ModuleOp module);

  /// False after a failure, which has been reported.
  bool ok() const { return kernels != nullptr; }
  const CUDASource &cuda() const { return emitted; }
  std::vector<std::string> symbols() const;

  /// Runs a kernel on random operands and compares each result with the interpreter's.
  void check(const std::string &symbol, const CheckOptions &options = {});
  /// Same, with given operands.
  void check(const std::string &symbol, const std::vector<interp::Tensor> &inputs,
             const CheckOptions &options);

  /// Compiles all kernels (below).
  void compileForGPUs(llvm::ArrayRef<llvm::StringRef> architectures, bool tightly = false);

  /// The largest relative L2 by storage type so far.
  std::map<std::string, double> worst;

private:
  void compile();
  /// The CUDA names of the kernels.
  std::vector<std::string> functions() const;

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  CUDASource emitted;
  std::unique_ptr<HostKernels> kernels;
};

/// Compiles `source`, which defines these kernels, with NVRTC if this machine has it. `tightly`:
/// checks that each uses at most so many registers and spills none.
void compileForGPUs(const std::string &source, const std::vector<std::string> &kernels,
                    llvm::ArrayRef<llvm::StringRef> architectures, bool tightly = false,
                    int64_t mostRegisters = 64);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_TARGET_CUDA_KERNELCHECK_H
