//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_CONVERSION_QUEUEORDER_H
#define BRAID_LIB_CONVERSION_QUEUEORDER_H

#include "dialects/RT/IR/RT.h"

namespace braid {

/// Orders the queues where a command reads what a command of another queue has written: inserts a
/// record behind the writer and an await before the reader, unless events order the two already. At
/// its end, a procedure waits for what nobody has waited for and for which it hands out no event.
/// Every value is written once, so that nothing else needs an order before buffers are assigned.
/// What a callee leaves in flight is not ordered: its caller waits for the event that is handed
/// out.
llvm::LogicalResult orderQueues(rt::ProcedureOp procedure);

} // namespace braid
#endif // BRAID_LIB_CONVERSION_QUEUEORDER_H
