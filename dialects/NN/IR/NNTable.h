//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_NN_NNTABLE_H
#define BRAID_DIALECTS_NN_NNTABLE_H

#include "dialects/NN/IR/NN.h"

#define GET_OP_CLASSES
#include "dialects/NN/IR/NNTableOps.h.inc"

#endif // BRAID_DIALECTS_NN_NNTABLE_H
