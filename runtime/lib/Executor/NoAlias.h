//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Commands write while they read, so what a command writes is apart from all else that it uses,
// but for what it can work on in place.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXECUTOR_NOALIAS_H
#define BRAID_EXECUTOR_NOALIAS_H

#include "runtime/lib/Kernels/Tensor.h"

#include "braid/Program/program_generated.h"

#include <functional>

namespace braid::runtime {

/// Whether two tensors have a byte in common. For tensors that lie in between each other this is
/// known where a stride of either repeats both of them: windows of columns, of heads, of rows of
/// each batch. For others the answer is yes.
bool mayOverlap(const Tensor &a, const Tensor &b);

/// That what the operation writes is apart from what it reads, and from what else it writes. A
/// kernel may write what it reads where its entry in the program says so, and the two are the same
/// memory. Collectives have a rule of their own. `tensor` gives a view's address.
Status verifyNoAlias(const program::OperationUnion &op, const program::ProgramT &program,
                     const std::function<Tensor(const program::ViewT &)> &tensor);

} // namespace braid::runtime
#endif // BRAID_EXECUTOR_NOALIAS_H
