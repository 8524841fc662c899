//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Positions of starts and waits among the operations of a block.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_COMM_SCHEDULE_H
#define BRAID_DIALECTS_COMM_SCHEDULE_H

#include "dialects/Comm/IR/Comm.h"

namespace braid::comm {

/// Moves a wait down to the first operation of its block that uses one of its results, directly or
/// within a region. The operations before that overlap with the collective.
void sinkWait(WaitOp wait);

} // namespace braid::comm
#endif // BRAID_DIALECTS_COMM_SCHEDULE_H
