//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A proof about the order of a program's commands, for all of its legal orders at once. Queues and
// events order commands partly; what that order leaves open must not matter.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_CORE_PROGRAMORDER_H
#define BRAID_INTERPRETER_CORE_PROGRAMORDER_H

#include "braid/Interpreter/Core/ExpandedProgram.h"

namespace braid::interp {

/// Every two commands that touch the same bytes, one of them writing, are ordered by queues and
/// events; every byte that is read was last written as the buffer that it is read as; no command
/// reads and writes the same bytes unless it can work in place. Gives one message for each pair of
/// commands at fault, which names both and the buffer; empty: all holds. `without` leaves out one
/// wait, wherever it is executed.
std::vector<std::string> checkOrder(const ExpandedProgram &program,
                                    const program::OperationUnion *without = nullptr);

/// An await, or a wait for a collective, without which checkOrder finds nothing either.
struct RedundantWait {
  const program::OperationUnion *op;
  std::string what; ///< of its first execution
  /// What it waits for has always happened already, by other waits; otherwise it orders commands
  /// that share no memory.
  bool implied;
};
std::vector<RedundantWait> findRedundantWaits(const ExpandedProgram &program);

} // namespace braid::interp
#endif // BRAID_INTERPRETER_CORE_PROGRAMORDER_H
