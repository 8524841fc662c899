//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Conversion/BufferCheck.h"

#include <array>
#include <tuple>

using namespace mlir;
using namespace braid;
using rt::Queue;

namespace {

/// How many commands of each queue are known to have ended.
using Clock = std::array<int64_t, 2>;

/// A command with its place in the order.
struct Command {
  Operation *op;
  Queue queue;
  int64_t index; ///< on its queue, from 0
  Clock before;  ///< what has ended when it begins
};

/// A buffer or a callee's frame: bytes of an arena and the commands that touch them.
struct Extent {
  Operation *owner; ///< rt.alloc or rt.call
  rt::Space space;
  int64_t begin, end;
  SmallVector<const Command *> uses;
};

class Checker {
public:
  explicit Checker(rt::ProcedureOp procedure) : procedure(procedure) {}

  LogicalResult run() {
    order();
    if (failed(checkJoined()) || failed(checkEvents()))
      return failure();
    collect();
    for (size_t i = 0; i < extents.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (failed(checkPair(extents[j], extents[i])))
          return failure();
    return success();
  }

private:
  void order() {
    // Commands are referred to by address.
    commands.reserve(procedure.getBody().front().getOperations().size());
    std::array<Clock, 2> now = {};
    DenseMap<Value, Clock> events;
    for (Operation &op : procedure.getBody().front()) {
      if (isa<rt::AllocOp, rt::ViewOp>(op))
        continue;
      Queue queue = rt::queueOf(&op);
      Clock &clock = now[static_cast<int>(queue)];
      // A wait takes over what was known where its event was set.
      if (isa<rt::AwaitOp, rt::WaitOp>(op))
        for (auto [mine, theirs] : llvm::zip(clock, events.lookup(op.getOperand(0))))
          mine = std::max(mine, theirs);
      commands.push_back({&op, queue, clock[static_cast<int>(queue)], clock});
      ++clock[static_cast<int>(queue)];
      if (isa<rt::RecordOp, rt::StartOp>(op))
        events[op.getResult(0)] = clock;
    }
  }

  static bool isBefore(const Command &a, const Command &b) {
    return b.before[static_cast<int>(a.queue)] > a.index;
  }

  LogicalResult checkJoined() {
    const Command &last = commands.back(); // rt.return
    for (const Command &command : commands) {
      SmallVector<Value> reads, writes;
      rt::getAccesses(command.op, reads, writes);
      if (command.queue == Queue::Compute || (reads.empty() && writes.empty()))
        continue;
      // Something of the compute queue precedes it exactly when it has awaited one of this
      // procedure's events.
      if (command.before[static_cast<int>(Queue::Compute)] == 0)
        return command.op->emitOpError(
            "expects to come after an rt.await of an event of the compute queue, since the "
            "communication queue may be ahead of the procedure's begin");
      if (!isBefore(command, last))
        return command.op->emitOpError(
            "expects the compute queue to wait for it before the procedure ends");
    }
    return success();
  }

  LogicalResult checkEvents() {
    struct Taken {
      int64_t begin, count; // of a callee there may be more than can be gone through
      size_t command;
    };
    SmallVector<Taken> taken;
    for (auto [i, command] : llvm::enumerate(commands)) {
      if (auto record = dyn_cast<rt::RecordOp>(command.op))
        taken.push_back({static_cast<int64_t>(*record.getEvent()), 1, i});
      else if (auto start = dyn_cast<rt::StartOp>(command.op))
        taken.push_back({static_cast<int64_t>(*start.getEvent()), 1, i});
      else if (auto call = dyn_cast<rt::CallOp>(command.op))
        taken.push_back(
            {call.getBaseAttr().getEvents(), call.getProcedure().getFrameAttr().getEvents(), i});
    }
    llvm::erase_if(taken, [](const Taken &events) { return events.count == 0; });
    llvm::sort(taken, [](const Taken &a, const Taken &b) {
      return std::tie(a.begin, a.command) < std::tie(b.begin, b.command);
    });
    for (size_t i = 1; i < taken.size(); ++i) {
      const Taken &a = taken[i - 1], &b = taken[i];
      if (b.begin - a.begin >= a.count)
        continue;
      auto [first, second] = std::minmax(a.command, b.command);
      InFlightDiagnostic diag = commands[second].op->emitOpError("uses event ")
                                << b.begin << ", which is taken";
      diag.attachNote(commands[first].op->getLoc()) << "by this operation";
      return diag;
    }
    return success();
  }

  void collect() {
    DenseMap<Value, size_t> extentOf;
    for (auto alloc : procedure.getBody().front().getOps<rt::AllocOp>()) {
      extentOf[alloc.getBuffer()] = extents.size();
      int64_t begin = *alloc.getOffset();
      extents.push_back({alloc, alloc.getSpace(), begin, begin + alloc.getSizeInBytes(), {}});
    }
    for (const Command &command : commands) {
      SmallVector<Value> reads, writes;
      rt::getAccesses(command.op, reads, writes);
      for (Value value : llvm::concat<Value>(reads, writes))
        if (auto it = extentOf.find(rt::getRoot(value)); it != extentOf.end())
          extents[it->second].uses.push_back(&command);
      if (auto call = dyn_cast<rt::CallOp>(command.op)) {
        rt::FrameAttr base = call.getBaseAttr(), frame = call.getProcedure().getFrameAttr();
        extents.push_back({call,
                           rt::Space::Local,
                           base.getLocal(),
                           base.getLocal() + frame.getLocal(),
                           {&command}});
        extents.push_back({call,
                           rt::Space::Symmetric,
                           base.getSymmetric(),
                           base.getSymmetric() + frame.getSymmetric(),
                           {&command}});
      }
    }
  }

  /// The one command both extents share may be a kernel that reads one and writes the other in
  /// place.
  static bool isInPlace(const Command &command, const Extent &a, const Extent &b) {
    auto launch = dyn_cast<rt::LaunchOp>(command.op);
    if (!launch || a.begin != b.begin || a.end != b.end)
      return false;
    rt::KernelOp kernel = launch.getKernelOp();
    bool shares = false;
    for (auto [i, input] : llvm::enumerate(launch.getInputs()))
      for (auto [o, output] : llvm::enumerate(launch.getOutputs())) {
        Operation *reads = rt::getRoot(input).getDefiningOp(),
                  *writes = rt::getRoot(output).getDefiningOp();
        if ((reads == a.owner && writes == b.owner) || (reads == b.owner && writes == a.owner)) {
          if (!kernel.canShare(i, o))
            return false;
          shares = true;
        }
      }
    return shares;
  }

  static bool allBefore(const Extent &a, const Extent &b) {
    for (const Command *x : a.uses)
      for (const Command *y : b.uses)
        if (!isBefore(*x, *y) && !(x == y && isInPlace(*x, a, b)))
          return false;
    return true;
  }

  LogicalResult checkPair(const Extent &a, const Extent &b) {
    bool overlap = a.space == b.space && a.begin < b.end && b.begin < a.end;
    if (!overlap || a.owner == b.owner || allBefore(a, b) || allBefore(b, a))
      return success();
    InFlightDiagnostic diag = b.owner->emitOpError("shares bytes [")
                              << std::max(a.begin, b.begin) << ", " << std::min(a.end, b.end)
                              << ") of " << rt::stringifySpace(a.space)
                              << " memory with something that is live at the same time";
    diag.attachNote(a.owner->getLoc()) << "the other one";
    return diag;
  }

  rt::ProcedureOp procedure;
  std::vector<Command> commands;
  std::vector<Extent> extents;
};

} // namespace

LogicalResult braid::checkBuffers(rt::ProcedureOp procedure) {
  if (!procedure.getFrameAttr())
    return procedure.emitOpError("expects a frame: buffers are not assigned yet");
  for (auto call : procedure.getBody().front().getOps<rt::CallOp>()) {
    rt::FrameAttr inner = call.getProcedure().getFrameAttr(), base = call.getBaseAttr(),
                  frame = procedure.getFrameAttr();
    if (!inner)
      return call.emitOpError("expects the callee to have a frame");
    if (base.getLocal() % rt::kBufferAlignment != 0 ||
        base.getSymmetric() % rt::kBufferAlignment != 0)
      return call.emitOpError("expects a place that is a multiple of ") << rt::kBufferAlignment;
    // None is negative: a sum could overflow, a difference cannot.
    if (base.getLocal() > frame.getLocal() - inner.getLocal() ||
        base.getSymmetric() > frame.getSymmetric() - inner.getSymmetric() ||
        base.getEvents() > frame.getEvents() - inner.getEvents())
      return call.emitOpError("expects the callee's frame to lie within the caller's");
  }
  return Checker(procedure).run();
}
