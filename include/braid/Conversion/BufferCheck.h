//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks every memory access of a procedure against the order of queues and events.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CONVERSION_BUFFERCHECK_H
#define BRAID_CONVERSION_BUFFERCHECK_H

#include "dialects/RT/IR/RT.h"

namespace braid {

/// Checks the rules of braid-verify-buffers, which Passes.td lists. Communication that is ordered
/// after the procedure's begin and before its end on the compute queue lets callers treat a call as
/// one compute command. Errors name the commands.
mlir::LogicalResult checkBuffers(rt::ProcedureOp procedure);

} // namespace braid
#endif // BRAID_CONVERSION_BUFFERCHECK_H
