//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks all legal orders of a program's commands at once. Queues and events order commands
// partially; results must not depend on how the others are ordered.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_CORE_PROGRAMORDER_H
#define BRAID_INTERPRETER_CORE_PROGRAMORDER_H

#include "braid/Interpreter/Core/ExpandedProgram.h"

namespace braid::interp {

/// Checks that queues and events order every two commands that access the same bytes, one of them
/// writing; that every byte that is read was last written as part of the same buffer; and that no
/// command reads and writes the same bytes unless it can compute in place. Returns one message for
/// each pair of commands at fault, which names both and the buffer. All executions of the wait
/// `without` are ignored.
std::vector<std::string> checkOrder(const ExpandedProgram &program,
                                    const program::OperationUnion *without = nullptr);
/// The same for every role.
std::vector<std::string> checkOrder(const ProgramRoles &program);

/// An await, or a wait for a collective, without which checkOrder finds no fault either.
struct RedundantWait {
  const program::OperationUnion *op;
  std::string what; ///< of its first execution
  /// Other waits already imply its order; otherwise it orders commands that share no memory.
  bool implied;
};
std::vector<RedundantWait> findRedundantWaits(const ExpandedProgram &program);
/// The waits that are redundant in every role that has them.
std::vector<RedundantWait> findRedundantWaits(const ProgramRoles &program);

} // namespace braid::interp
#endif // BRAID_INTERPRETER_CORE_PROGRAMORDER_H
