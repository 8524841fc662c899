//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The operations of the tensor dialect that take or replace parts of values.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_TENSORPARTS_H
#define BRAID_LIB_TRANSFORMS_TENSORPARTS_H

#include "mlir/IR/Operation.h"

namespace braid {

/// Whether this is tensor.extract_slice, tensor.insert_slice or tensor.concat.
bool isTensorPart(mlir::Operation *op);
/// What keeps such an operation from being nn.slice and nn.concat; empty when nothing does.
llvm::StringRef whyNoPart(mlir::Operation *op);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_TENSORPARTS_H
