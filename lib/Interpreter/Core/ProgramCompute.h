//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Executes commands on the memory of a rank.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_INTERPRETER_CORE_PROGRAMCOMPUTE_H
#define BRAID_LIB_INTERPRETER_CORE_PROGRAMCOMPUTE_H

#include "ProgramMemory.h"
#include "braid/Interpreter/Core/Collectives.h"

namespace braid::interp {

/// Executes a launch or a copy. Commands on events do not access memory.
Status compute(const ProgramCommand &command, ProgramMemory &memory,
               const program::ProgramT &program, const runtime::Mesh &mesh, int64_t rank,
               const std::vector<runtime::KernelFunction> &kernels);

/// The collective that a command starts.
Collective collectiveOf(const ProgramCommand &command);
/// The axes of a serialized group.
std::vector<runtime::AxisRef> groupOf(const ProgramCommand &command);

} // namespace braid::interp
#endif // BRAID_LIB_INTERPRETER_CORE_PROGRAMCOMPUTE_H
