//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A check of every access to memory in a procedure, against the order that queues and events give.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CONVERSION_BUFFERCHECK_H
#define BRAID_CONVERSION_BUFFERCHECK_H

#include "dialects/RT/IR/RT.h"

namespace braid {

/// Of two commands that touch one buffer or argument, one of them writing it, the first must be
/// ordered before the second by the order on a queue and by events; what a command reads, another
/// must have written before, and every result must be written. Two things of a frame (buffers,
/// callees' frames) may share bytes only if every command that touches one is ordered before every
/// command that touches the other, or if a kernel that can run in place reads the one and writes
/// the other. Also: what runs on the communication queue is ordered after the procedure's begin and
/// before its end on the compute queue, so that a call can be taken as one compute command; and no
/// two events share a number. Errors name the commands.
mlir::LogicalResult checkBuffers(rt::ProcedureOp procedure);

} // namespace braid
#endif // BRAID_CONVERSION_BUFFERCHECK_H
