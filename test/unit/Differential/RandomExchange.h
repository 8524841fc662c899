//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMEXCHANGE_H
#define BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMEXCHANGE_H

#include "RandomModel.h"

namespace braid::test {

/// A partitioned module of one function on a mesh of two axes. It has collectives of one or several
/// values, with and without uses, between slice-wise operations. `parts` adds slices of values and
/// concatenations, and `states` adds states to which values are added.
std::string buildExchange(Random &random, bool parts = false, bool states = false);

/// A pipeline of two or three stages: functions that the ranks of a stage run for each of some
/// batches, in any order of the calls that keeps each stage's own. They receive what the stage
/// before sends, compute and send on. Ranks of a stage may reduce among each other.
std::string buildStages(Random &random);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_DIFFERENTIAL_RANDOMEXCHANGE_H
