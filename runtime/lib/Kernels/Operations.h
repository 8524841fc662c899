//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Launches and copies twice: from tensors to a command with addresses, and the execution of that
// command. Shapes are what the program's verifier let pass.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_OPERATIONS_H
#define BRAID_KERNELS_OPERATIONS_H

#include "KernelCommands.h"
#include "Library.h"

namespace braid::runtime {

/// How many members of a team share `work` (elements, or multiply-adds) so that each has at least
/// `grain`.
int64_t shareOut(int64_t work, int64_t grain, int64_t members);
int64_t shareOut(double flops, int64_t grain, int64_t members);

Result<LaunchCommand> resolveLaunch(KernelFunction function, const std::vector<Tensor> &operands,
                                    const std::vector<bool> &rowOperand, int64_t rows,
                                    int64_t threads);
Result<MatmulCommand> resolveMatmul(const LibraryArguments &a, int64_t threads,
                                    MatmulCache &matmuls);
/// One dimension of i32 or i64; null where the operand is not given.
Integers integersOf(const LibraryArguments &a, const char *operand);
Result<AttentionCommand> resolveAttention(const LibraryArguments &a, int64_t threads,
                                          int64_t queryBlock, Storage storage = Storage::f32);
Result<RotaryTableCommand> resolveRotaryTable(const LibraryArguments &a, int64_t threads,
                                              Storage storage = Storage::f32);
Result<RotaryCommand> resolveRotary(const LibraryArguments &a, int64_t threads,
                                    Storage storage = Storage::f32);
Result<GatherCommand> resolveGather(const LibraryArguments &a, int64_t threads);
Result<PositionIdsCommand> resolvePositionIds(const LibraryArguments &a);
Result<CopyCommand> resolveLocalSlice(const LibraryArguments &a);
Result<CopyCommand> resolveCopy(const Tensor &source, const Tensor &dest);
void runCopy(const CopyCommand &command);

// Execution on the queue's thread and its team; they report failures through `control`.
void execute(const LaunchCommand &command, const NamedCommand &source, ExecutionContext &context);
void execute(const MatmulCommand &command, const NamedCommand &source, ExecutionContext &context);
void execute(const AttentionCommand &command, const NamedCommand &source,
             ExecutionContext &context);
void execute(const RotaryTableCommand &command, const NamedCommand &source,
             ExecutionContext &context);
void execute(const RotaryCommand &command, const NamedCommand &source, ExecutionContext &context);
void execute(const GatherCommand &command, const NamedCommand &source, ExecutionContext &context);
void execute(const PositionIdsCommand &command, const NamedCommand &source,
             ExecutionContext &context);
void execute(const CopyCommand &command, const NamedCommand &source, ExecutionContext &context);

} // namespace braid::runtime
#endif // BRAID_KERNELS_OPERATIONS_H
