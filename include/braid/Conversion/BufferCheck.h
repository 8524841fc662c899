//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks every memory access of a procedure against the order of queues and events.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CONVERSION_BUFFERCHECK_H
#define BRAID_CONVERSION_BUFFERCHECK_H

#include "dialects/RT/IR/RT.h"

namespace braid {

/// The rules of braid-verify-buffers. Every one refuses programs that all others accept.
enum class BufferRule : unsigned {
  Frame,     ///< a callee's frame lies within its caller's, at a multiple of the alignment
  Events,    ///< no event is used twice
  Arguments, ///< what a callee writes is no other argument too
  Once,      ///< a command does not write memory twice
  InPlace,   ///< only a command that can run in place writes memory that it reads
  Race,      ///< of two commands that access memory and of which one writes it, one is first
  Unwritten, ///< what is read has been written
  Result,    ///< every result is written, whole
  Joined,    ///< an entry waits for all that it starts
  Sharing    ///< what shares bytes is not live at the same time
};
/// By its name in the option `skip`.
std::optional<BufferRule> symbolizeBufferRule(llvm::StringRef name);

/// Checks the rules but those in `skip`, which tests use to show that each is needed. Errors name
/// the commands.
mlir::LogicalResult checkBuffers(rt::ProcedureOp procedure, llvm::ArrayRef<BufferRule> skip = {});

} // namespace braid
#endif // BRAID_CONVERSION_BUFFERCHECK_H
