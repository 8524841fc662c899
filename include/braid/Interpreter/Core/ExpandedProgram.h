//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A serialized program (runtime/program.fbs) with its calls expanded: the commands of one rank, and
// the bytes that each command accesses. The executor has its own, so that a fault of either shows.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_CORE_EXPANDEDPROGRAM_H
#define BRAID_INTERPRETER_CORE_EXPANDEDPROGRAM_H

#include "braid/Interpreter/Core/Tensor.h"
#include "braid/Program/Program.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::program {
struct ProgramT;
struct OperationUnion;
} // namespace braid::program

namespace braid::interp {

/// The regions of a rank's memory: the arenas, and each argument of the entry.
enum Region : uint32_t { kLocal = 0, kSymmetric, kFirstArgument };

using runtime::Queue;

/// A value's place in memory. Every call has its own, even where calls share bytes.
struct ValueBuffer {
  std::string name; ///< "buffer 'attention.query' in @layer (layer.3)", "result 'logits'"
  uint32_t region = 0;
  bool isArgument = false; ///< of the entry: its value outlives the run
  bool isInput = false;    ///< a parameter, state or operand: it has a value from the beginning
};

/// A strided view of a region.
struct MemoryView {
  uint32_t region = 0;
  uint64_t offset = 0; ///< in bytes
  DType dtype = DType::f32;
  Shape shape, strides; ///< strides in elements
  uint32_t buffer = 0;  ///< index into ExpandedProgram::buffers
};

/// An operand of a command: a view, and the segments that it covers.
struct Operand {
  MemoryView view;
  /// Ranges [first, second) of segment numbers.
  std::vector<std::pair<uint32_t, uint32_t>> segments;
  /// Of an output: the number of the input that may be the same memory, or -1.
  int inPlaceOf = -1;

  /// Calls body(number) for every segment.
  template <typename Fn> void forEachSegment(Fn body) const {
    for (auto [begin, end] : segments)
      for (uint32_t s = begin; s < end; ++s)
        body(s);
  }
};

struct ProgramCommand {
  const program::OperationUnion *op = nullptr; ///< of the serialized program; equal for all calls
  const char *kind = "";                       ///< "matmul", "all_reduce", ...
  std::string name, place;                     ///< 'attention.query', @layer (layer.3)
  Queue queue = runtime::kComputeQueue;
  const char *queueName = ""; ///< in the program
  uint32_t index = 0;         ///< on its queue
  std::vector<Operand> reads, writes;
  /// Of record, await, collectives (set when done) and waits for them.
  std::optional<uint32_t> event;
  bool isCollective = false;
  bool waits = false; ///< for `event`, instead of setting it

  /// "all_reduce 'mlp.down' in @layer (layer.3) on the communication queue"
  std::string describe() const;
};

/// The commands of an entry as the ranks of one role run them, with all calls expanded.
class ExpandedProgram {
public:
  const std::vector<ProgramCommand> &commands(Queue queue) const { return queues[queue]; }
  size_t numQueues() const { return queues.size(); }
  const program::ProgramT &program() const { return *source; }
  size_t numCommands() const {
    size_t count = 0;
    for (const auto &commands : queues)
      count += commands.size();
    return count;
  }

  std::vector<std::vector<ProgramCommand>> queues;
  std::vector<ValueBuffer> buffers;
  std::vector<uint64_t> regionBytes;
  uint32_t numEvents = 0;

  /// A range of bytes that every operand covers either completely or not at all: two operands share
  /// bytes exactly when they share a segment.
  struct Segment {
    uint32_t region;
    uint64_t begin, end; ///< bytes
  };
  std::vector<Segment> segments;
  /// By segment: the input that it holds when the program begins, or -1.
  std::vector<int64_t> inputsOfSegments() const;
  /// "symmetric bytes [0, 64)"
  std::string describeBytes(uint32_t segment) const;
  /// "result 'logits' (symmetric bytes [0, 64))": the operand's value, and a segment of it.
  std::string describe(const Operand &operand, uint32_t segment) const {
    return buffers[operand.view.buffer].name + " (" + describeBytes(segment) + ")";
  }

  std::shared_ptr<const program::ProgramT> source;
};

/// An entry as every rank runs it. Ranks that run the same commands and have the same values, and
/// for which all views have the same places, play one role.
struct ProgramRoles {
  std::vector<ExpandedProgram> roles;
  std::vector<size_t> roleOf; ///< by rank

  const ExpandedProgram &of(int64_t rank) const { return roles[roleOf[static_cast<size_t>(rank)]]; }
};

/// Checks the program (runtime::verifyProgram) and expands an entry of it.
Result<ProgramRoles> expandProgram(const runtime::Bytes &program, const runtime::Manifest &manifest,
                                   const runtime::Entry &entry);

} // namespace braid::interp
#endif // BRAID_INTERPRETER_CORE_EXPANDEDPROGRAM_H
