//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the tables of a machine file must be to be interpolated.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_MACHINETABLES_H
#define BRAID_COST_MACHINETABLES_H

#include "braid/Cost/Machine.h"

namespace braid::cost {

/// Points in order, every combination where a table has two sizes, and no more than one of a kind.
/// Messages name the field and what it expects.
Status checkTables(const Machine &machine);
/// In few digits, for messages.
std::string shortNumber(double value);

} // namespace braid::cost
#endif // BRAID_COST_MACHINETABLES_H
