//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each operation of program.fbs twice: from tensors to a command with addresses, and the execution
// of that command.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_OPERATIONS_H
#define BRAID_KERNELS_OPERATIONS_H

#include "KernelCommands.h"
#include "Tensor.h"
#include "runtime/lib/Sync/Team.h"

namespace braid::runtime {

/// How many members of a team share `work` (elements, or multiply-adds) so that each has at least
/// `grain`.
int64_t shareOut(int64_t work, int64_t grain, int64_t members);

Result<LaunchCommand> resolveLaunch(KernelFunction function, const std::vector<Tensor> &operands,
                                    const std::vector<bool> &rowOperand, int64_t rows,
                                    int64_t threads);
Result<ProductCommand> resolveProduct(const Tensor &lhs, const Tensor &rhs, const Tensor *bias,
                                      const Tensor &out, int64_t threads, ProductCache &products);
/// One dimension of i32 or i64.
Integers integersOf(const Tensor &tensor);
struct AttentionOperands {
  Tensor query, key, value, out;
  const Tensor *mask = nullptr, *validLength = nullptr, *positionOffset = nullptr;
  float scale = 1;
  bool causal = false;
};
/// What floating-point operands of a library's operations may be: all f32, or all of one type of
/// f32, f16 and bf16, of which only devices have kernels.
enum class Storage { f32, halves };
Result<AttentionCommand> resolveAttention(const AttentionOperands &operands, int64_t threads,
                                          int64_t queryBlock, Storage storage = Storage::f32);
Result<RotaryTableCommand> resolveRotaryTable(const std::vector<double> &frequencies, double scale,
                                              const Tensor *positionOffset, const Tensor &cos,
                                              const Tensor &sin, int64_t threads,
                                              Storage storage = Storage::f32);
Result<RotaryCommand> resolveRotary(const Tensor &input, const Tensor &cos, const Tensor &sin,
                                    const Tensor &out, int64_t threads,
                                    Storage storage = Storage::f32);
/// The type of the others, by `tensor`'s.
Result<DType> storedType(const char *what, const Tensor &tensor, Storage storage);
/// `source` is the `part`-th of `parts` equal parts of a table, which ends with padding after
/// `rows` rows where that is not 0.
Result<GatherCommand> resolveGather(const Tensor &source, const Tensor &ids, const Tensor &out,
                                    int64_t part, int64_t parts, int64_t rows, int64_t threads);
Result<PositionIdsCommand> resolvePositionIds(const Tensor &ids, int64_t padding,
                                              const Tensor &out);
Result<CopyCommand> resolveCopy(const Tensor &source, const Tensor &dest);
void runCopy(const CopyCommand &command);

// Execution on the queue's thread and its team; they report failures through `control`.
struct ExecutionContext {
  RunControl &control;
  QueueState &self;
  Team &team;
  const VectorKernels &kernels;
  /// Scratch memory of each member, 64-byte aligned.
  std::vector<std::vector<std::byte>> &scratch;
};
void execute(const LaunchCommand &command, const NamedCommand &source, ExecutionContext &context);
void execute(const ProductCommand &command, const NamedCommand &source, ExecutionContext &context);
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
