//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Comm/IR/Schedule.h"

using namespace mlir;

void braid::comm::sinkWait(WaitOp wait) {
  Block *block = wait->getBlock();
  Operation *first = block->getTerminator();
  for (Operation *user : wait->getUsers())
    if (Operation *here = block->findAncestorOpInBlock(*user); here->isBeforeInBlock(first))
      first = here;
  // Waits with the same first user keep their order.
  for (Operation *before = first->getPrevNode(); before != wait && isa_and_nonnull<WaitOp>(before);
       before = before->getPrevNode())
    first = before;
  wait->moveBefore(first);
}
