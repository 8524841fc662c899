//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which codecs the row kernels of a target can have at their borders. Kernels are formed by this,
// and code for them is printed by it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ANALYSIS_CODECFUSION_H
#define BRAID_ANALYSIS_CODECFUSION_H

#include "braid/Base/Encoding.h"
#include "dialects/RT/IR/RT.h"

namespace braid {

/// What kernels are compiled for.
enum class KernelTarget { CPU, CUDA };

/// A codec at the border of a row kernel.
struct RowCodec {
  runtime::Encoding encoding;
  runtime::DType encoded; ///< type of the tensor that is or was encoded
  runtime::DType rows;    ///< type of the rows in the kernel
  int64_t columns;
  bool encodes;
};

/// Those of a kernel, in the order of its operands.
llvm::SmallVector<RowCodec> rowCodecsOf(rt::KernelOp kernel);

/// The shared memory that a block may have without asking for more, on every architecture.
constexpr int64_t kCUDASharedBytes = 48 * 1024;
/// What a block takes of it that has `rows` rows, each of which `warps` warps share: the rows, what
/// warps collect of payloads, and partial results of reductions (runtime/kernels/cuda).
int64_t cudaSharedBytes(llvm::ArrayRef<RowCodec> codecs, int64_t rows, int64_t warps);

/// Why the kernels of a target cannot have these codecs together; empty if they can.
std::string whyNotFused(KernelTarget target, llvm::ArrayRef<RowCodec> codecs);

} // namespace braid
#endif // BRAID_ANALYSIS_CODECFUSION_H
