//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks on a serialized program (runtime/program.fbs) that the executor relies on.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_PROGRAM_H
#define BRAID_RUNTIME_PROGRAM_H

#include "braid/Runtime/Bundle.h"

namespace braid::runtime {

/// FlatBuffers structure; indices in range; the call tree acyclic; every view inside of its frame
/// or argument; frames of callees inside of their callers'; every event recorded once; calls alike
/// in both streams; shapes that fit each operation; collectives on symmetric memory with groups of
/// the mesh; entries that match the manifest's parameters, operands and results in number, type and
/// size. The message names procedure, queue and command.
Status verifyProgram(const Bytes &program, const Manifest &manifest);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_PROGRAM_H
