//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which row operations of a block share a kernel, and which codecs stand at its border.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_CONVERSION_KERNELGROUPS_H
#define BRAID_LIB_CONVERSION_KERNELGROUPS_H

#include "braid/Analysis/CodecFusion.h"
#include "braid/Schedule/Placement.h"

#include "dialects/Comm/IR/Comm.h"

#include "mlir/IR/BuiltinOps.h"

namespace braid {

/// Groups the row operations of a block. A decode joins the kernel that takes its rows, as a row
/// operation does; an encode, whose payload no kernel takes, is joined by the one that gives them.
/// A codec that no kernel joins, or that kernels of the target cannot have, stays an operation of
/// its own. Joining an operation with its user
/// moves it down to the user's kernel, which must not take it out of the time in which a collective
/// could be hidden.
///
/// A collective is in flight from the point at which the eager policy (braid/Schedule/Placement.h)
/// would start it in the block as it is, to the first operation that needs it. In a block with
/// starts and waits these are the points of the start and of the wait. Then
/// - an operation in flight with a collective that it does not need is not joined with a kernel
///   that runs after the flight;
/// - a collective uses its operands at the point at which it can start, and no operation moves
///   behind its first user.
class KernelGroups {
public:
  /// Without `fuse` every operation is a group of its own. Codecs are joined with both.
  KernelGroups(mlir::Block &block, const schedule::Communication &communication, bool fuse,
               bool fuseCodecs, KernelTarget target);

  /// Members in the block's order; the kernel runs at the place of the last one.
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *>> groups;
  unsigned numJoined = 0;
  /// The waits that stood right before their first user, in the block's order. Where the user now
  /// runs later, so should the wait.
  llvm::SmallVector<comm::WaitOp> lateWaits;

private:
  /// Points in the order of the block: 2i is the i-th operation, 2i - 1 the point before it.
  using Point = int64_t;

  /// A collective between the points of its start and its wait.
  struct Flight {
    mlir::Operation *op; ///< the collective, or the wait
    Point begin, end;
    bool sinks;                                               ///< whether the end is its first user
    llvm::SmallPtrSet<mlir::Operation *, 16> dependents = {}; ///< operations that need it
  };

  struct Miss {
    mlir::Operation *op, *user;
    std::string why;
  };

  void findFlights(mlir::Block &block, const schedule::Communication &communication);
  void addStarted(comm::WaitOp wait);
  void findDependents(mlir::Block &block);

  /// The point at which the operation will run: its own, its kernel's, or that of its start.
  Point runsAt(mlir::Operation *op) const;
  Point firstUse(mlir::Operation *op) const;
  void place(mlir::Operation *op);
  /// Whether `op` can move to the kernel of `user`, the first of its users to run. All other users
  /// are after that kernel or in it.
  bool canJoin(mlir::Operation *op, mlir::Operation *user);
  bool miss(mlir::Operation *op, mlir::Operation *user, std::string why);
  /// Why the target's kernels cannot have the codecs of a group and of an operation that would join
  /// it; empty if they can.
  std::string whyNotTogether(mlir::Operation *op, mlir::ArrayRef<mlir::Operation *> members) const;
  bool isMember(mlir::Operation *op) const;
  /// Says why a codec that is alone was not joined.
  void missCodec(mlir::Operation *codec);
  /// Moves the end of each flight down to the first kernel that needs the collective, so that
  /// operations before that kernel hide it if they are not joined with it. True if grouping must be
  /// repeated.
  bool sinkEnds();

  bool fuse, fuseCodecs;
  KernelTarget target;
  llvm::DenseMap<mlir::Operation *, Point> position;
  llvm::DenseMap<mlir::Operation *, Point> starts; ///< of collectives without a start
  llvm::DenseMap<mlir::Operation *, size_t> groupOf;
  llvm::SmallVector<Flight> flights;
  llvm::SmallVector<Miss> missed;
};

} // namespace braid
#endif // BRAID_LIB_CONVERSION_KERNELGROUPS_H
