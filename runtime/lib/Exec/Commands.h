//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A program as one rank runs it: a flat list of commands per queue, with absolute addresses.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXEC_COMMANDS_H
#define BRAID_EXEC_COMMANDS_H

#include "Products.h"
#include "Team.h"
#include "Tensor.h"
#include "Transport.h"
#include "VectorKernels.h"
#include "braid/Runtime/Session.h"
#include "braid/Runtime/program_generated.h"

#include <deque>
#include <optional>
#include <variant>

namespace braid::runtime {

/// A launch of a generated kernel, one part per member of the team.
struct LaunchCommand {
  struct Part {
    std::vector<int64_t> words; ///< the memref descriptors, one after the other
    std::vector<void *> descriptors;
  };
  KernelFunction function = nullptr;
  std::vector<Part> parts;
};

struct ProductCommand {
  struct Part {
    std::shared_ptr<const Product> product;
    const float *lhs, *rhs, *bias;
    float *out;
  };
  std::vector<Part> parts;
};

/// A vector of i32 or i64, read as the latter.
struct Integers {
  const std::byte *data; ///< or null
  bool wide;             ///< i64, else i32
  int64_t stride;        ///< in elements
  explicit operator bool() const { return data != nullptr; }
  int64_t operator[](int64_t i) const {
    return wide ? reinterpret_cast<const int64_t *>(data)[i * stride]
                : static_cast<int64_t>(reinterpret_cast<const int32_t *>(data)[i * stride]);
  }
};

// Addresses in the next three are of floats only where `dtype` is f32, which on the CPU it is.
struct AttentionCommand {
  AttentionBlock block; ///< strides and sizes; the addresses are of batch 0, head 0
  DType dtype;
  int64_t batch, kvHeads, rowsPerHead, blocksPerHead;
  int64_t queryBatch, keyBatch, valueBatch, outBatch; ///< strides in elements
  int64_t queryGroup, keyHead, valueHead, outGroup;   ///< from one key/value head to the next
  int64_t maskBatchBytes;
  Integers validLength, positionOffset;
  int64_t members;
  int64_t units() const { return batch * kvHeads * blocksPerHead; }
};

struct RotaryTableCommand {
  std::vector<double> frequencies;
  double scale;
  Integers positionOffset;
  float *cos, *sin;
  DType dtype;
  int64_t batch, seq;
  int64_t cosBatch, sinBatch, cosRow, sinRow; ///< strides in elements
  int64_t members;
};

struct RotaryCommand {
  RotaryRow row; ///< strides and sizes; the addresses are of batch 0, position 0
  DType dtype;
  int64_t batch, seq;
  int64_t inBatch, inRow, outBatch, outRow; ///< strides in elements
  int64_t cosBatch, cosRow, sinBatch, sinRow;
  int64_t members;
};

struct GatherCommand {
  const std::byte *source;
  int64_t tableRows, rowBytes, sourceStrideBytes;
  int64_t part, parts; ///< of the table that `source` is
  int64_t limit;       ///< ids are below it
  const std::byte *ids;
  bool wideIds; ///< i64, else i32
  std::byte *out;
  int64_t outStrideBytes, count;
  int64_t members;
};

struct PositionIdsCommand {
  const std::byte *ids;
  std::byte *out;
  bool wide; ///< i64, else i32
  int64_t padding, batch, seq;
  int64_t idsBatch, idsStride, outBatch, outStride; ///< strides in elements
};

/// Contiguous runs of bytes under a loop nest.
struct CopyCommand {
  const std::byte *source;
  std::byte *dest;
  int64_t runBytes;
  std::vector<int64_t> counts, sourceStrides, destStrides; ///< outermost first, strides in bytes
};

/// A launch and a product that a device makes of its own.
struct DeviceLaunchCommand {
  uint32_t kernel; ///< of the program
  std::vector<Tensor> operands;
  int64_t rows;
};
struct DeviceProductCommand {
  Tensor lhs, rhs, out;
  std::optional<Tensor> bias;
};

struct CollectiveCommand {
  Collective collective;
  uint32_t event;
  uint32_t roleIndex; ///< in RankProgram::roles
};
struct CollectiveWaitCommand {
  uint32_t event;
  uint32_t roleIndex;
};
struct RecordCommand {
  uint32_t event;
};
struct AwaitCommand {
  uint32_t event;
};

struct Command {
  std::string name;                  ///< of the source operation
  const char *operation = "";        ///< "kernel", "linear", "all_reduce", ...
  const std::string *path = nullptr; ///< calls from the entry down
  std::variant<LaunchCommand, ProductCommand, AttentionCommand, RotaryTableCommand, RotaryCommand,
               GatherCommand, PositionIdsCommand, CopyCommand, CollectiveCommand,
               CollectiveWaitCommand, RecordCommand, AwaitCommand, DeviceLaunchCommand,
               DeviceProductCommand>
      op;
};

/// "all_reduce 'attention.out' in @layer"
std::string describe(const Command &command);

/// What the commands of one role add up to; a role is the `role` of collectives.
struct RoleInfo {
  std::string role;
  std::string kind; ///< "all_reduce"; "all_gather and reduce_scatter" when a role has several
  int64_t count = 0, bytesSent = 0;
};

struct RankProgram {
  std::vector<Command> queues[2]; ///< by Queue
  uint32_t numEvents = 0;
  std::vector<RoleInfo> roles;
  std::deque<std::string> paths; ///< a deque, as commands point at them
  int64_t bytesSent = 0;         ///< in a run
};

/// Everything that addresses depend on.
struct ResolveInput {
  const program::ProgramT *program = nullptr;
  const Mesh *mesh = nullptr;
  const std::vector<KernelFunction> *kernels = nullptr; ///< by Program.kernels; null for a device
  std::string entry;
  int64_t rank = 0, threads = 1;
  std::vector<std::byte *> arguments; ///< of the entry's procedure
  std::byte *local = nullptr;
  SymmetricHeap symmetric;
  uint64_t localBytes = 0, symmetricBytes = 0;
  Transport *transport = nullptr;
  ProductCache *products = nullptr; ///< null for a device
  int64_t queryBlock = 1;           ///< of the VectorKernels in use
};

/// Must run on a thread for which useOneThread() was called.
Result<RankProgram> resolve(const ResolveInput &input);

} // namespace braid::runtime
#endif // BRAID_EXEC_COMMANDS_H
