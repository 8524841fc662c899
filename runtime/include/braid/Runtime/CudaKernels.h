//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The kernels of a bundle for one GPU architecture, and how they are launched. A bundle has, for
// each architecture, three members beside each other:
//   cuda-sm_90a/kernels.cubin   the code: every kernel of the program, and the library's
//                               (runtime/kernels/cuda/library.cu)
//   cuda-sm_90a/kernels.json    the launch table described here
//   cuda-sm_90a/kernels.cu      what it was compiled from, for people
// Written by the compiler, read by the executor.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_CUDAKERNELS_H
#define BRAID_RUNTIME_CUDAKERNELS_H

#include "braid/Program/Manifest.h"

#include <string>
#include <vector>

namespace braid::runtime {

/// An extent that each launch gives: its rows.
constexpr int64_t kLaunchRows = -1;

struct CudaOperand {
  std::string name; ///< for messages
  DType dtype = DType::f32;
  /// The first extent may be kLaunchRows; the others are the kernel's. The last dimension is
  /// contiguous.
  std::vector<int64_t> shape;
  /// The address is a multiple of this many bytes, a power of two, and so is every stride.
  int64_t alignment = 1;
  /// Of a payload, which the function decodes or encodes itself: the name of the kernel that does
  /// nothing else (CudaCodec::function). Type and shape are those of the rows, which are in no
  /// memory. Empty: the operand is in memory as it is.
  std::string codec = {};

  bool isRow() const { return !shape.empty() && shape[0] == kLaunchRows; }
  /// Strides that are handed over: all but the last dimension's.
  size_t numStrides() const { return shape.empty() || !codec.empty() ? 0 : shape.size() - 1; }
};

/// How one function is launched: `function(address, strides..., address, strides..., rows)`, for
/// each operand its address (8 bytes) and then its strides in elements (8 bytes each), outermost
/// first, or of a payload a library::Codec; at the end the rows (4 bytes). Blocks are
/// one-dimensional; there are ceil(rows * itemsPerRow / itemsPerBlock) of them.
struct CudaKernel {
  std::string symbol;                ///< of the program's kernel (program.fbs)
  std::string function;              ///< in the code, not mangled
  std::vector<CudaOperand> operands; ///< inputs, which are only read, then outputs
  int64_t outputs = 1;               ///< the number of outputs
  int64_t threads = 0;               ///< of a block
  int64_t sharedBytes = 0;           ///< of dynamic shared memory
  int64_t itemsPerRow = 1, itemsPerBlock = 1;

  int64_t blocks(int64_t rows) const {
    return (rows * itemsPerRow + itemsPerBlock - 1) / itemsPerBlock;
  }
  /// Bytes of each parameter of the function, in order.
  std::vector<size_t> parameterBytes() const;
};

struct CudaLaunchTable {
  static constexpr int64_t kFormatVersion = 1;
  std::string architecture; ///< "sm_90a"
  std::vector<CudaKernel> kernels;

  const CudaKernel *find(const std::string &symbol) const;
  /// Extents, alignments and sizes of blocks in range; no symbol and no function twice.
  Status verify() const;
  std::string toJson() const;
  /// Checks the form strictly, then as verify() does.
  static Result<CudaLaunchTable> fromJson(const std::string &text);
};

/// "cuda-sm_90a/kernels.cubin" and so on, with the names that the manifest gives them.
KernelLibrary cudaKernelLibrary(const std::string &architecture);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_CUDAKERNELS_H
