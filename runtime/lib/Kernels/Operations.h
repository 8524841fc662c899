//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernel launches and copies on the CPU: resolve functions make a command from tensors, execute
// functions run it. The program's verifier has checked the shapes.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_KERNELS_OPERATIONS_H
#define BRAID_KERNELS_OPERATIONS_H

#include "Int8.h"
#include "KernelCommands.h"
#include "Tensor.h"
#include "braid/Base/LibraryKernels.h"
#include "runtime/lib/Sync/Team.h"

namespace braid::runtime {

/// One rank's launch of a library kernel (braid/Base/LibraryKernels.h), with addresses.
struct LibraryArguments : LibraryCall {
  std::vector<std::byte *> data; ///< by the descriptor's operands
  int64_t part = 0;              ///< this rank's, below `parts`
  /// The addresses of the parts of a payload that is read; empty: they follow each other in `data`.
  std::vector<std::byte *> payloadParts;

  size_t place(const char *operand) const;
  bool has(const char *operand) const { return LibraryCall::has(place(operand)); }
  Tensor tensor(const char *operand) const;
};

/// What a queue's thread and its team run a command with.
struct ExecutionContext {
  RunControl &control;
  QueueState &self;
  Team &team;
  const VectorKernels &kernels;
  /// Scratch memory of each member, 64-byte aligned.
  std::vector<std::vector<std::byte>> &scratch;

  /// Runs `body(member)` for each member.
  template <typename Body> void share(int64_t members, Body body) const {
    team.run(members, body, control, self);
  }
};

/// What one half of a collective loses by the encodings that a table gives it: sums over runs of
/// the squares of what is encoded, and of what comes back less that.
struct EncodingErrors {
  std::string identity; ///< of the collective: "@main/@layer#3/mlp.down"
  bool gather = false;  ///< which half
  double squares = 0, errorSquares = 0;
};

/// A resolved launch of a library kernel.
class LibraryRun {
public:
  virtual ~LibraryRun() = default;
  /// Failures are reported through the context's control.
  virtual void run(const NamedCommand &source, ExecutionContext &context) const = 0;
  /// Those of a kernel that has them. Runs add to them.
  virtual EncodingErrors *errors() const { return nullptr; }
};
using LibraryCommand = std::shared_ptr<const LibraryRun>;

struct CpuResources {
  int64_t threads = 1;
  int64_t queryBlock = 1;         ///< of the VectorKernels in use
  MatmulCache *matmuls = nullptr; ///< for matmuls
  std::string identity = {};      ///< of the collective that the command belongs to
};
Result<LibraryCommand> resolveLibrary(const LibraryArguments &arguments,
                                      const CpuResources &resources);

/// The types that floating-point operands of a library kernel may have: f32, or one of f32, f16 and
/// bf16 for all of them. Only devices have kernels for half precision.
enum class Storage { f32, halves };
/// Checks the types of floating-point operands and that their last dimensions are contiguous.
/// Returns their type.
Result<DType> storedType(const LibraryArguments &arguments, Storage storage);

/// The number of team members that share `work` (elements or floating-point operations) so that
/// each has at least `grain` of it.
int64_t shareOut(int64_t work, int64_t grain, int64_t members);
int64_t shareOut(double flops, int64_t grain, int64_t members);

Result<LaunchCommand> resolveLaunch(KernelFunction function, const std::vector<Tensor> &operands,
                                    const std::vector<bool> &rowOperand, int64_t rows,
                                    int64_t threads);
/// The payload of an operand of a generated kernel; its rows have no address.
struct EncodedOperand {
  size_t operand;
  LibraryArguments codec;
};
/// As resolveLaunch, of a kernel with codecs. Their operands are payloads, not row operands. Runs
/// the kernel on blocks of rows that stay in a cache, between the codecs and memory of its own.
Result<LibraryCommand> resolveCodecLaunch(KernelFunction function,
                                          const std::vector<Tensor> &operands,
                                          const std::vector<bool> &rowOperand,
                                          const std::vector<EncodedOperand> &encoded, int64_t rows,
                                          int64_t threads);
Result<MatmulCommand> resolveMatmul(const LibraryArguments &a, int64_t threads,
                                    MatmulCache &matmuls);
/// Matrices of i8 that are multiplied by one rhs.
struct Int8Matrices {
  Int8Matmul first{};
  int64_t count = 1;
  int64_t lhsBatch = 0, outBatch = 0; ///< between matrices, in elements; scales follow each other
};
Result<Int8Matrices> int8Matrices(const LibraryArguments &a, const char *target);
/// A matmul of i8.
Result<LibraryCommand> resolveInt8Matmul(const LibraryArguments &a, int64_t threads);
Result<LibraryCommand> resolveQuantizeRows(const LibraryArguments &a, int64_t threads);
/// An operand of one dimension, i32 or i64; null if it is not given.
Integers integersOf(const LibraryArguments &a, const char *operand);
Result<AttentionCommand> resolveAttention(const LibraryArguments &a, int64_t threads,
                                          int64_t queryBlock, Storage storage = Storage::f32);
Result<RotaryTableCommand> resolveRotaryTable(const LibraryArguments &a, int64_t threads,
                                              Storage storage = Storage::f32);
Result<RotaryCommand> resolveRotary(const LibraryArguments &a, int64_t threads,
                                    Storage storage = Storage::f32);
Result<GatherCommand> resolveGather(const LibraryArguments &a, int64_t threads);
Result<PositionIdsCommand> resolvePositionIds(const LibraryArguments &a);
AppendCommand resolveAppend(const LibraryArguments &a);
Result<LibraryCommand> resolveEncode(const LibraryArguments &a, int64_t threads);
/// decode and decode_sum.
Result<LibraryCommand> resolveDecode(const LibraryArguments &a, int64_t threads);
Result<LibraryCommand> resolveFakeQuantize(const LibraryArguments &a, const CpuResources &r);
Result<CopyCommand> resolvePart(const LibraryArguments &a);
Result<CopyCommand> resolveCopy(const Tensor &source, const Tensor &dest);

// These run on the queue's thread and its team, and report failures through `control`.
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
