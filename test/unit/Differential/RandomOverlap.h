//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMOVERLAP_H
#define BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMOVERLAP_H

#include "RandomModel.h"
#include "Testing.h"

namespace braid::test {

/// Overlaps a partitioned module of one function in a random way that keeps its results: starts its
/// collectives on several queues, in any legal order with the other operations, waits for them
/// anywhere, and moves parts of the function to functions that it calls, which hand out and take
/// what is in flight. Counts what it did. False after an error.
bool overlap(mlir::ModuleOp module, Random &random, Tally &forms);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMOVERLAP_H
