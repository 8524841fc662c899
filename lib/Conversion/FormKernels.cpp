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

/// A collective between the positions of its start and its wait.
struct PendingCollective {
  comm::WaitOp wait;
  size_t begin, end;
  llvm::SmallPtrSet<Operation *, 16> dependents; ///< operations that need the wait's results
};

/// Decides which row operations of a block share a kernel. Works backwards, so that the place of a
/// user's kernel is known before its producers are assigned.
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

  /// Members in the block's order; the kernel runs at the place of the last one.
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

  /// The position at which the operation will run: its own, or its kernel's.
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

  /// Whether `op` can move to the kernel of `user`, the first of its users to run. All other users
  /// are after that kernel or in it.
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
    return true;
  }

  bool miss(Operation *op, Operation *user, StringRef why) {
    missed.push_back({op, user, why});
    return false;
  }

  /// Moves the end of each collective down to the first kernel that needs it, so that operations
  /// before that kernel hide it if they are not joined with it. True if grouping must be repeated.
  bool sinkWaits() {
    bool changed = false;
    for (PendingCollective &pending : llvm::reverse(pendingCollectives)) {
      size_t first = position.size();
      for (Operation *user : pending.wait->getUsers())
        if (Operation *here = pending.wait->getBlock()->findAncestorOpInBlock(*user))
          first = std::min(first, runsAt(here));
      // An end only moves down, so that the repetition terminates.
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
      const size_t count = members.size();
      ResultRange results =
          launch(members.back(), count == 1 ? members.front()->getLoc() : kernel.getLoc(),
                 ValueRange(group.outputs).getTypes(), kernel, group.getRows(), group.inputs,
                 "kernel", "joins " + Twine(count) + " operations");
      for (auto [output, result] : llvm::zip_equal(group.outputs, results))
        output.replaceUsesWithIf(
            result, [&](OpOperand &use) { return !llvm::is_contained(members, use.getOwner()); });
    }
    // Erases unused operations, and producers whose users are all in kernels.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isRowOperation(&op) && op.use_empty())
        op.erase();
    // A kernel runs at the place of its last operation, so the waits of its first ones may sink;
    // from the last wait on, since the first user of a wait may be another wait.
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
    op->replaceAllUsesWith(launch(op, op->getLoc(), op->getResultTypes(), kernel, rows,
                                  op->getOperands(), "library",
                                  "calls " + *kernel.getLibrarySymbol()));
    op->erase();
    return success();
  }

  /// Creates a launch before `before`, and a remark `name` that says what the kernel does.
  ResultRange launch(Operation *before, Location loc, TypeRange types, rt::KernelOp kernel,
                     int64_t rows, ValueRange inputs, StringRef name, const Twine &what) {
    OpBuilder builder(before);
    ++numLaunches;
    remark::passed(loc, remark::RemarkOpts::name(name).category("kernels"))
        << ("@" + kernel.getSymName() + " " + what + " over " + Twine(rows) + " rows").str();
    return rt::LaunchOp::create(builder, loc, types, FlatSymbolRefAttr::get(kernel), rows, inputs)
        .getResults();
  }

  /// An equal existing kernel, or this one under a unique name.
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
};

} // namespace
