//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How far the results of a program may be from those without encodings.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TARGET_BUNDLE_ENCODINGERROR_H
#define BRAID_LIB_TARGET_BUNDLE_ENCODINGERROR_H

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace braid {

/// Three times the L2 norm of the expected errors of all encodings that an entry runs
/// (runtime::Encoding::expectedError), at most 0.9, of the entry for which it is largest: an
/// estimate, in which errors are independent and neither grow nor shrink on their way. None for a
/// module of level rt that encodes nothing.
std::optional<double> expectedTolerance(mlir::ModuleOp module);

} // namespace braid
#endif // BRAID_LIB_TARGET_BUNDLE_ENCODINGERROR_H
