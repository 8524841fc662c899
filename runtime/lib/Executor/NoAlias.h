//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Outputs of a command must not alias its inputs or each other, except where it works in place:
// commands write while they read.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXECUTOR_NOALIAS_H
#define BRAID_EXECUTOR_NOALIAS_H

#include "runtime/lib/Kernels/Tensor.h"

#include "braid/Program/program_generated.h"

#include <functional>

namespace braid::runtime {

/// Whether two tensors may have a byte in common. Exact for interleaved tensors where a stride of
/// either one repeats both of them: windows of columns, of heads, of rows of each batch. For other
/// interleaved tensors the answer is yes.
bool mayOverlap(const Tensor &a, const Tensor &b);
/// Whether both are the same view of the same memory.
bool isSameMemory(const Tensor &a, const Tensor &b);

/// Checks that no output of the operation overlaps an input or another output. A kernel may write
/// an input where its entry in the program says so and the two are the same memory. Collectives
/// have a rule of their own (Resolve.cpp). `tensor` gives the address of a view.
Status verifyNoAlias(const program::OperationUnion &op, const program::ProgramT &program,
                     const std::function<Tensor(const program::ViewT &)> &tensor);

} // namespace braid::runtime
#endif // BRAID_EXECUTOR_NOALIAS_H
