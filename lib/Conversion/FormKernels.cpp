//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "KernelBuilder.h"

#include "braid/Conversion/Passes.h"

#include "dialects/Comm/IR/Schedule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Remarks.h"

namespace braid {
#define GEN_PASS_DEF_FORMKERNELS
#include "braid/Conversion/Passes.h.inc"
} // namespace braid

using namespace mlir;
using namespace braid;

namespace {

/// From a start to its wait, and what of the block needs the wait's results.
struct PendingCollective {
  comm::WaitOp wait;
  size_t begin, end;
  llvm::SmallPtrSet<Operation *, 16> dependents;
};

/// Decides which row operations of a block share a kernel. Works backwards, so that the place where
/// a user's kernel will run is known when its producers are looked at.
class Grouping {
public:
  Grouping(Block &block, bool fuse) : fuse(fuse) {
    for (auto [i, op] : llvm::enumerate(block)) {
      position[&op] = i;
      if (auto wait = dyn_cast<comm::WaitOp>(op))
        if (Operation *start = wait.getHandle().getDefiningOp(); start && position.contains(start))
          pendingCollectives.push_back({wait, position[start], i, {}});
      for (PendingCollective &pending : pendingCollectives)
        if (pending.wait == &op || readsAny(op, pending.dependents))
          pending.dependents.insert(&op);
    }
    do {
      groups.clear();
      groupOf.clear();
      missed.clear();
      for (Operation &op : llvm::reverse(block))
        if (isRowOperation(&op) && !op.use_empty())
          place(&op);
    } while (sinkWaits());
    for (SmallVector<Operation *> &members : groups) {
      std::reverse(members.begin(), members.end());
      numJoined += members.size() - 1;
    }
    for (const Miss &miss : missed)
      remark::missed(miss.op->getLoc(), remark::RemarkOpts::name("join").category("kernels"))
          << (miss.op->getName().getStringRef() + " is not joined with " +
              miss.user->getName().getStringRef() + ": " + miss.why)
                 .str();
  }

  /// Members in the order they stand in; the kernel runs at the last one's place.
  SmallVector<SmallVector<Operation *>> groups;
  unsigned numJoined = 0;

private:
  struct Miss {
    Operation *op, *user;
    StringRef why;
  };

  static bool readsAny(Operation &op, const llvm::SmallPtrSetImpl<Operation *> &producers) {
    return op
        .walk([&](Operation *nested) {
          bool reads = llvm::any_of(nested->getOperands(), [&](Value operand) {
            return producers.contains(operand.getDefiningOp());
          });
          return reads ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Where the operation will run: its own place, or its kernel's.
  size_t runsAt(Operation *op) const {
    auto it = groupOf.find(op);
    return position.lookup(it == groupOf.end() ? op : groups[it->second].front());
  }

  void place(Operation *op) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers())
      if (!first || runsAt(user) < runsAt(first))
        first = user;
    if (fuse && groupOf.contains(first) && canJoin(op, first)) {
      size_t group = groupOf[first];
      groups[group].push_back(op);
      groupOf[op] = group;
      return;
    }
    groupOf[op] = groups.size();
    groups.push_back({op});
  }

  /// `user` is the first to run of all users of `op`, and in a kernel; all others of this value are
  /// then after it or in the same kernel, so that moving `op` there breaks no order.
  bool canJoin(Operation *op, Operation *user) {
    auto shape = [](Operation *of) {
      return cast<RankedTensorType>(of->getResult(0).getType()).getShape();
    };
    if (shape(op) != shape(user))
      return miss(op, user, "of another shape");
    size_t from = position.lookup(op), to = runsAt(user);
    for (const PendingCollective &pending : pendingCollectives)
      if (pending.begin < from && from < pending.end && pending.end <= to &&
          !pending.dependents.contains(op))
        return miss(op, user, "it hides a collective that the user waits for");
    // Another operation that reads the value at the same place can only be a member of the same
    // kernel.
    return true;
  }

  bool miss(Operation *op, Operation *user, StringRef why) {
    missed.push_back({op, user, why});
    return false;
  }

  /// A wait goes down to the kernel that needs it first. What stands before that kernel then hides
  /// the collective, unless it is joined with it: true where that is to be looked at again.
  bool sinkWaits() {
    bool changed = false;
    for (PendingCollective &pending : llvm::reverse(pendingCollectives)) {
      size_t first = position.size();
      for (Operation *user : pending.wait->getUsers())
        if (Operation *here = pending.wait->getBlock()->findAncestorOpInBlock(*user))
          first = std::min(first, runsAt(here));
      // No earlier than it stood before, so that this comes to an end.
      if (first < position.size() && first > pending.end) {
        pending.end = first;
        changed = true;
      }
    }
    return changed;
  }

  bool fuse;
  DenseMap<Operation *, size_t> position;
  DenseMap<Operation *, size_t> groupOf;
  SmallVector<PendingCollective> pendingCollectives;
  SmallVector<Miss> missed;
};

struct FormKernels : braid::impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<rt::KernelOp> kernels(getOperation().getOps<rt::KernelOp>());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      for (Block &block : function.getBody())
        if (failed(runOnBlock(function, block, symbols, kernels)))
          return signalPassFailure();
  }

  LogicalResult runOnBlock(func::FuncOp function, Block &block, SymbolTable &symbols,
                           SmallVectorImpl<rt::KernelOp> &kernels) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isRowOperation(&op) && failed(verifyRowOperation(&op)))
        return failure();
      if (auto library = dyn_cast<nn::LibraryKernelOpInterface>(op))
        if (failed(launchLibraryKernel(function, library, symbols, kernels)))
          return failure();
    }
    Grouping grouping(block, fuse);
    numJoined += grouping.numJoined;
    for (ArrayRef<Operation *> members : llvm::reverse(grouping.groups)) {
      KernelGroup group;
      group.ops.assign(members.begin(), members.end());
      group.findInterface();
      OpBuilder builder(function);
      FailureOr<rt::KernelOp> built = buildKernel(builder, group);
      if (failed(built))
        return failure();
      rt::KernelOp kernel = unique(*built, symbols, kernels);
      launch(kernel, group);
    }
    // What nobody reads, and producers whose users have all gone into kernels.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isRowOperation(&op) && op.use_empty())
        op.erase();
    // A kernel runs where its last operation stood, so what its first one waited for is needed
    // later now. From the last wait on, as the first user of one may be another.
    SmallVector<comm::WaitOp> waits(block.getOps<comm::WaitOp>());
    for (comm::WaitOp wait : llvm::reverse(waits))
      comm::sinkWait(wait);
    return success();
  }

  LogicalResult launchLibraryKernel(func::FuncOp function, nn::LibraryKernelOpInterface op,
                                    SymbolTable &symbols, SmallVectorImpl<rt::KernelOp> &kernels) {
    OpBuilder builder(function);
    int64_t rows = 1;
    FailureOr<rt::KernelOp> declared = declareKernel(builder, op, rows);
    if (failed(declared))
      return failure();
    rt::KernelOp kernel = unique(*declared, symbols, kernels);
    builder.setInsertionPoint(op);
    auto launch = rt::LaunchOp::create(builder, op->getLoc(), op->getResultTypes(),
                                       FlatSymbolRefAttr::get(kernel.getSymNameAttr()), rows,
                                       op->getOperands());
    ++numLaunches;
    remark::passed(launch.getLoc(), remark::RemarkOpts::name("library").category("kernels"))
        << ("@" + kernel.getSymName() + " calls " + *kernel.getLibrarySymbol() + " over " +
            Twine(rows) + " rows")
               .str();
    op->replaceAllUsesWith(launch.getResults());
    op->erase();
    return success();
  }

  /// An equal kernel that is there already, or this one under a name of its own.
  rt::KernelOp unique(rt::KernelOp kernel, SymbolTable &symbols,
                      SmallVectorImpl<rt::KernelOp> &kernels) {
    for (rt::KernelOp other : kernels)
      if (areEquivalent(kernel, other)) {
        kernel.erase();
        return other;
      }
    symbols.insert(kernel);
    kernels.push_back(kernel);
    ++numKernels;
    return kernel;
  }

  void launch(rt::KernelOp kernel, const KernelGroup &group) {
    OpBuilder builder(group.ops.back());
    SmallVector<Type> types;
    for (Value output : group.outputs)
      types.push_back(output.getType());
    auto launch = rt::LaunchOp::create(
        builder, group.ops.size() == 1 ? group.ops.front()->getLoc() : kernel.getLoc(), types,
        FlatSymbolRefAttr::get(kernel.getSymNameAttr()), group.getRows(), group.inputs);
    ++numLaunches;
    remark::passed(launch.getLoc(), remark::RemarkOpts::name("kernel").category("kernels"))
        << ("@" + kernel.getSymName() + " joins " + Twine(group.ops.size()) + " operations over " +
            Twine(group.getRows()) + " rows")
               .str();
    llvm::SmallPtrSet<Operation *, 8> members(group.ops.begin(), group.ops.end());
    for (auto [output, result] : llvm::zip_equal(group.outputs, launch.getResults()))
      Value(output).replaceUsesWithIf(
          result, [&](OpOperand &use) { return !members.contains(use.getOwner()); });
  }
};

} // namespace
