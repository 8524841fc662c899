//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The happens-before order of the commands that a rank runs of a procedure and its callees, by
// vector clocks over its queues, and the memory that each command accesses. Buffer assignment, the
// check of its result and the placing of collectives use it; the check of the serialized program
// does not.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ANALYSIS_HAPPENSBEFORE_H
#define BRAID_ANALYSIS_HAPPENSBEFORE_H

#include "braid/Analysis/Lifetime.h"
#include "braid/Analysis/MemoryRegion.h"
#include "braid/Base/RankSet.h"

namespace braid {

/// An operand in memory of a command.
struct MemoryUse {
  MemoryRegion region; ///< without a root where the memory is of a callee's frame
  bool reads = false, writes = false;
  /// The call whose callee's frame holds the memory, and the arena; null for other memory.
  rt::CallOp frame;
  rt::Space space = rt::Space::Local;
  unsigned operand = 0; ///< of the command
};

/// A command of the procedure or, where `op` is in another procedure, of a callee.
struct OrderedCommand {
  mlir::Operation *op;
  mlir::Operation *top; ///< the operation of the procedure itself: `op`, or the call
  unsigned queue;       ///< its number in HappensBefore::queues
  int64_t index;        ///< on its queue, from 0
  /// For each queue, how many of its commands have ended when this one begins.
  llvm::SmallVector<int64_t, 4> before;
  llvm::SmallVector<MemoryUse, 4> uses;
  bool waitsForever = false; ///< for an event that the rank does not set

  /// Whether it has ended whenever `other` begins.
  bool isBefore(const OrderedCommand &other) const { return other.before[queue] > index; }
  /// For messages: "all_reduce 'mlp.down' on the communication queue".
  std::string describe() const;
  Lifetime getLifetime() const {
    Lifetime life({before.begin(), before.end()}, std::vector<int64_t>(before.size(), 0));
    life.last[queue] = index + 1;
    return life;
  }
};

class HappensBefore {
public:
  /// How many commands a procedure may have with all of its calls expanded.
  static constexpr uint64_t kMaxCommands = uint64_t(1) << 20;
  /// An error where it has more, or where too many ranks run different commands; asked before the
  /// order is made.
  static mlir::LogicalResult checkSize(rt::ProcedureOp procedure);
  /// For each set of commands that ranks run of the procedure, and of entry values that they have,
  /// one of these ranks.
  static llvm::SmallVector<int64_t> differingRanks(rt::ProcedureOp procedure);

  explicit HappensBefore(rt::ProcedureOp procedure, int64_t rank = 0);

  /// Whether the rank is at a place (all are, without one).
  bool isOn(comm::PlaceAttr place) const;
  int64_t rank() const { return ownRank; }

  /// Those that commands stand on: first the compute queue, which is always there.
  llvm::ArrayRef<rt::QueueAttr> queues() const { return queueList; }
  /// In the order of the body, which respects the happens-before order, without rt.alloc and views.
  llvm::ArrayRef<OrderedCommand> commands() const { return list; }
  const OrderedCommand &end() const { return list.back(); } ///< the procedure's rt.return

private:
  using Clock = llvm::SmallVector<int64_t, 4>;
  /// What the values of a procedure are in one execution.
  struct Frame {
    mlir::Operation *top = nullptr; ///< null for the analysed procedure
    llvm::SmallVector<MemoryRegion> arguments;
    llvm::SmallVector<MemoryUse> argumentUses; ///< for arguments that are in a callee's frame
    llvm::DenseMap<mlir::Value, Clock> events; ///< empty clocks where the rank does not set them
  };
  unsigned numberOf(rt::QueueAttr queue);
  void walk(rt::ProcedureOp procedure, Frame &frame);
  void enter(rt::CallOp call, Frame &caller);
  void add(mlir::Operation *op, Frame &frame);
  /// The memory of an operand in terms of the analysed procedure.
  MemoryUse useOf(mlir::Value memory, const Frame &frame) const;

  runtime::Mesh mesh;
  int64_t ownRank;
  llvm::SmallVector<rt::QueueAttr, 4> queueList;
  llvm::SmallVector<Clock, 4> now; ///< by queue
  std::vector<OrderedCommand> list;
};

} // namespace braid
#endif // BRAID_ANALYSIS_HAPPENSBEFORE_H
