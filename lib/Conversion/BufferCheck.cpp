//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Conversion/BufferCheck.h"

#include "CommandOrder.h"

#include <tuple>

using namespace mlir;
using namespace braid;

namespace {

/// A buffer or a callee's frame: bytes of an arena and the commands that touch them.
struct Extent {
  Operation *owner; ///< rt.alloc or rt.call
  rt::Space space;
  int64_t begin, end;
  SmallVector<const Command *> uses;
};

/// A command's access to a buffer or an argument.
struct Access {
  const Command *command;
  bool reads = false, writes = false;
};

class Checker {
public:
  explicit Checker(rt::ProcedureOp procedure)
      : procedure(procedure), order(orderCommands(procedure.getBody().front())) {}

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
      auto [reads, writes] = rt::getAccesses(command.op);
      if (command.isCompute() || (reads.empty() && writes.empty()))
        continue;
      // A compute command precedes it exactly when its queue has awaited, perhaps by way of a third
      // queue, an event of this procedure's compute queue.
      if (command.before[0] == 0)
        return command.op->emitOpError(
                   "expects to come after an rt.await of an event of the compute queue, since the "
                   "queue ")
               << order.queues[command.queue].str() << " may be ahead of the procedure's begin";
      if (!command.isBefore(last))
        return command.op->emitOpError(
            "expects the compute queue to wait for it before the procedure ends");
    }
    return success();
  }

  LogicalResult checkEvents() {
    struct Taken {
      int64_t begin, count; // a callee's may be too many to enumerate
      size_t command;
    };
    SmallVector<Taken> taken;
    for (auto [i, command] : llvm::enumerate(commands)) {
      if (isa<rt::RecordOp, rt::StartOp>(command.op))
        taken.push_back({command.op->getAttrOfType<IntegerAttr>("event").getInt(), 1, i});
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

  /// Only a kernel that can run in place may read and write the same memory.
  static LogicalResult collectAccesses(const Command &command,
                                       llvm::MapVector<Value, SmallVector<Access>> &accesses) {
    auto [reads, writes] = rt::getAccesses(command.op);
    auto of = [&](Value root) -> Access & {
      SmallVector<Access> &list = accesses[root];
      if (list.empty() || list.back().command != &command)
        list.push_back({&command});
      return list.back();
    };
    for (Value root : reads)
      of(root).reads = true;
    for (Value root : writes) {
      Access &access = of(root);
      if (access.writes)
        return command.op->emitOpError("writes one memory twice");
      if (access.reads && !canRunInPlace(command.op, root, root))
        return command.op->emitOpError("writes memory that it reads, and cannot run in place");
      access.writes = true;
    }
    return success();
  }

  static LogicalResult reportRace(const Access &earlier, const Access &later) {
    // Of a command that reads and writes, the write is reported.
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
      auto [reads, writes] = rt::getAccesses(command.op);
      for (Value root : llvm::concat<Value>(reads, writes))
        if (auto it = extentOf.find(root); it != extentOf.end())
          extents[it->second].uses.push_back(&command);
      if (auto call = dyn_cast<rt::CallOp>(command.op)) {
        rt::FrameAttr base = call.getBaseAttr(), frame = call.getProcedure().getFrameAttr();
        auto add = [&](rt::Space space, int64_t begin, int64_t size) {
          extents.push_back({call, space, begin, begin + size, {&command}});
        };
        add(rt::Space::Local, base.getLocal(), frame.getLocal());
        add(rt::Space::Symmetric, base.getSymmetric(), frame.getSymmetric());
      }
    }
  }

  /// Whether the command is a kernel that may write `written` to the bytes of `read`.
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

  /// Whether a command that uses both extents reads one and writes the other in place.
  static bool isInPlace(const Command &command, const Extent &a, const Extent &b) {
    if (!isa<rt::LaunchOp>(command.op) || a.begin != b.begin || a.end != b.end)
      return false;
    Value first = a.owner->getResult(0), second = b.owner->getResult(0);
    auto [reads, writes] = rt::getAccesses(command.op);
    return ((llvm::is_contained(reads, first) && llvm::is_contained(writes, second)) ||
            (llvm::is_contained(reads, second) && llvm::is_contained(writes, first))) &&
           canRunInPlace(command.op, first, second) && canRunInPlace(command.op, second, first);
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
  CommandOrder order;
  const std::vector<Command> &commands = order.commands;
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
