//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Registers every dialect and pass of Braid, and the upstream ones that they build on.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INITALL_H
#define BRAID_INITALL_H

#include "mlir/IR/DialectRegistry.h"

namespace braid {
void registerAllDialects(mlir::DialectRegistry &registry);
void registerAllPasses();
} // namespace braid
#endif // BRAID_INITALL_H
