//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Conversion/BufferCheck.h"

#include "CommandOrder.h"

#include <tuple>

using namespace mlir;
using namespace braid;
using rt::Queue;

namespace {

/// A buffer or a callee's frame: bytes of an arena and the commands that touch them.
struct Extent {
  Operation *owner; ///< rt.alloc or rt.call
  rt::Space space;
  int64_t begin, end;
  SmallVector<const Command *> uses;
};

/// What one command does with a buffer or an argument.
struct Access {
  const Command *command;
  bool reads = false, writes = false;
};

class Checker {
public:
  explicit Checker(rt::ProcedureOp procedure)
      : procedure(procedure), commands(orderCommands(procedure.getBody().front())) {}

  LogicalResult run() {
    if (failed(checkJoined()) || failed(checkEvents()) || failed(checkAccesses()))
      return failure();
    collect();
    for (size_t i = 0; i < extents.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (failed(checkPair(extents[j], extents[i])))
          return failure();
    return success();
  }

private:
  LogicalResult checkJoined() {
    const Command &last = commands.back(); // rt.return
    for (const Command &command : commands) {
      SmallVector<Value> reads, writes;
      rt::getAccesses(command.op, reads, writes);
      if (command.queue == Queue::Compute || (reads.empty() && writes.empty()))
        continue;
      // Something of the compute queue precedes it exactly when it has awaited one of this
      // procedure's events.
      if (command.endedOf(Queue::Compute) == 0)
        return command.op->emitOpError(
            "expects to come after an rt.await of an event of the compute queue, since the "
            "communication queue may be ahead of the procedure's begin");
      if (!command.isBefore(last))
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

  /// Within one buffer or argument: accesses of which one writes are ordered, and what is read has
  /// been written.
  LogicalResult checkAccesses() {
    llvm::MapVector<Value, SmallVector<Access>> accesses;
    for (const Command &command : commands)
      if (failed(collectAccesses(command, accesses)))
        return failure();
    for (auto &[root, list] : accesses) {
      auto argument = dyn_cast<BlockArgument>(root);
      bool given = argument && !procedure.isResult(argument.getArgNumber());
      for (auto [i, access] : llvm::enumerate(list)) {
        bool written = given;
        for (const Access &earlier : ArrayRef(list).take_front(i)) {
          if (!earlier.writes && !access.writes)
            continue;
          if (!earlier.command->isBefore(*access.command))
            return reportRace(earlier, access);
          written |= earlier.writes;
        }
        if (access.reads && !written) {
          InFlightDiagnostic diag =
              access.command->op->emitOpError("reads memory that nothing has written before");
          diag.attachNote(root.getLoc()) << "the memory";
          return diag;
        }
      }
    }
    for (BlockArgument argument : procedure.getBody().getArguments())
      if (procedure.isResult(argument.getArgNumber()) &&
          llvm::none_of(accesses.lookup(argument), [](const Access &a) { return a.writes; }))
        return procedure.emitOpError("expects result argument ")
               << argument.getArgNumber() << " to be written";
    return success();
  }

  /// Of memory that one command reads and writes only a kernel that can run in place makes sense.
  static LogicalResult collectAccesses(const Command &command,
                                       llvm::MapVector<Value, SmallVector<Access>> &accesses) {
    SmallVector<Value> reads, writes;
    rt::getAccesses(command.op, reads, writes);
    auto of = [&](Value memory) -> Access & {
      SmallVector<Access> &list = accesses[rt::getRoot(memory)];
      if (list.empty() || list.back().command != &command)
        list.push_back({&command});
      return list.back();
    };
    for (Value memory : reads)
      of(memory).reads = true;
    for (Value memory : writes) {
      Access &access = of(memory);
      Value root = rt::getRoot(memory);
      if (access.writes)
        return command.op->emitOpError("writes one memory twice");
      if (access.reads && !canRunInPlace(command.op, root, root))
        return command.op->emitOpError("writes memory that it reads, and cannot run in place");
      access.writes = true;
    }
    return success();
  }

  static LogicalResult reportRace(const Access &earlier, const Access &later) {
    // A write says more than a read of the same command.
    auto does = [](const Access &access) { return access.writes ? "writes" : "reads"; };
    InFlightDiagnostic diag = later.command->op->emitOpError(does(later))
                              << " memory that another command " << does(earlier)
                              << ", and no event orders the two";
    diag.attachNote(earlier.command->op->getLoc()) << "the other command";
    return diag;
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

  /// The command is a kernel that may write the one where it reads the other from the same bytes.
  static bool canRunInPlace(Operation *command, Value read, Value written) {
    auto launch = dyn_cast<rt::LaunchOp>(command);
    if (!launch)
      return false;
    rt::KernelOp kernel = launch.getKernelOp();
    for (auto [i, input] : llvm::enumerate(launch.getInputs()))
      for (auto [o, output] : llvm::enumerate(launch.getOutputs()))
        if (rt::getRoot(input) == read && rt::getRoot(output) == written && !kernel.canShare(i, o))
          return false;
    return true;
  }

  /// The one command that both extents share may run in place, one of them read and the other
  /// written.
  static bool isInPlace(const Command &command, const Extent &a, const Extent &b) {
    auto launch = dyn_cast<rt::LaunchOp>(command.op);
    if (!launch || a.begin != b.begin || a.end != b.end)
      return false;
    auto isOf = [](const Extent &extent) {
      return [&](Value memory) { return rt::getRoot(memory).getDefiningOp() == extent.owner; };
    };
    auto reads = [&](const Extent &extent) {
      return llvm::any_of(launch.getInputs(), isOf(extent));
    };
    auto writes = [&](const Extent &extent) {
      return llvm::any_of(launch.getOutputs(), isOf(extent));
    };
    Value first = a.owner->getResult(0), second = b.owner->getResult(0);
    return ((reads(a) && writes(b)) || (reads(b) && writes(a))) &&
           canRunInPlace(launch, first, second) && canRunInPlace(launch, second, first);
  }

  static bool allBefore(const Extent &a, const Extent &b) {
    for (const Command *x : a.uses)
      for (const Command *y : b.uses)
        if (!x->isBefore(*y) && !(x == y && isInPlace(*x, a, b)))
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
