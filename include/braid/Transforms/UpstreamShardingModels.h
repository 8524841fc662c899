//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sharding rules for operations of upstream dialects, so that they take part in propagation and
// partitioning.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TRANSFORMS_UPSTREAMSHARDINGMODELS_H
#define BRAID_TRANSFORMS_UPSTREAMSHARDINGMODELS_H

#include "mlir/IR/DialectRegistry.h"

namespace braid {
/// linalg operations by their indexing maps, tensor.empty, and splat constants.
void registerUpstreamShardingModels(mlir::DialectRegistry &registry);
} // namespace braid
#endif // BRAID_TRANSFORMS_UPSTREAMSHARDINGMODELS_H
