//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Conversion/BufferCheck.h"

#include "braid/Analysis/HappensBefore.h"

using namespace mlir;
using namespace braid;

namespace {

/// A buffer or a callee's frame: bytes of an arena and the commands that touch them.
struct Extent {
  Operation *owner; ///< rt.alloc or rt.call
  rt::Space space;
  int64_t begin, end;
  Lifetime life;
  SmallVector<const OrderedCommand *> uses;

  void use(const OrderedCommand &command) {
    life.extend(command.getLifetime());
    uses.push_back(&command);
  }
};

/// A command's access to a buffer or an argument.
struct Access {
  const OrderedCommand *command;
  const MemoryUse *use;
};

class Checker {
public:
  /// Checks what one rank runs; `alone`: the ranks run different commands.
  Checker(rt::ProcedureOp procedure, int64_t rank, bool alone, ArrayRef<BufferRule> skip)
      : procedure(procedure), order(procedure, rank), alone(alone), skip(skip) {}

  LogicalResult run() {
    for (const OrderedCommand &command : order.commands())
      if (command.waitsForever)
        return report(command, "waits for an event that the rank does not set");
    // A race is reported rather than that a command is not waited for at all.
    if ((isChecked(BufferRule::Events) && failed(checkEvents())) || failed(checkAccesses()) ||
        (isChecked(BufferRule::Joined) && failed(checkJoined())))
      return failure();
    if (!isChecked(BufferRule::Sharing))
      return success();
    collect();
    for (size_t i = 0; i < extents.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (failed(checkPair(extents[j], extents[i])))
          return failure();
    return success();
  }

private:
  bool isChecked(BufferRule rule) const { return !llvm::is_contained(skip, rule); }

  /// An entry ends when all is done that it has begun. Other procedures may leave commands to their
  /// callers, who wait for the events that are handed out.
  LogicalResult checkJoined() {
    if (!procedure.getEntry())
      return success();
    for (const OrderedCommand &command : order.commands())
      if (command.queue != 0 && !command.uses.empty() && !command.isBefore(order.end()))
        return report(command, "expects the compute queue to wait for it before the entry ends");
    return success();
  }

  LogicalResult checkEvents() {
    struct Taken {
      int64_t begin, count; // a callee's may be too many to enumerate
      Operation *command;
    };
    SmallVector<Taken> taken;
    for (Operation &op : procedure.getBody().front()) {
      if (isa<rt::RecordOp, rt::StartOp>(op))
        taken.push_back({op.getAttrOfType<IntegerAttr>("event").getInt(), 1, &op});
      else if (auto call = dyn_cast<rt::CallOp>(op))
        taken.push_back(
            {call.getBaseAttr().getEvents(), call.getProcedure().getFrameAttr().getEvents(), &op});
    }
    llvm::erase_if(taken, [](const Taken &events) { return events.count == 0; });
    llvm::sort(taken, [](const Taken &a, const Taken &b) {
      return a.begin != b.begin ? a.begin < b.begin : a.command->isBeforeInBlock(b.command);
    });
    for (size_t i = 1; i < taken.size(); ++i) {
      const Taken &a = taken[i - 1], &b = taken[i];
      if (b.begin - a.begin >= a.count)
        continue;
      const bool inOrder = a.command->isBeforeInBlock(b.command);
      Operation *first = inOrder ? a.command : b.command, *second = inOrder ? b.command : a.command;
      InFlightDiagnostic diag = second->emitOpError("uses event ") << b.begin << ", which is taken";
      diag.attachNote(first->getLoc()) << "by this operation";
      return diag;
    }
    return success();
  }

  /// Within one buffer or argument: accesses to the same bytes of which one writes are ordered, and
  /// what is read has been written.
  LogicalResult checkAccesses() {
    llvm::MapVector<Value, SmallVector<Access>> accesses;
    for (auto call : procedure.getBody().front().getOps<rt::CallOp>())
      if (isChecked(BufferRule::Arguments) && failed(checkArguments(call)))
        return failure();
    for (const OrderedCommand &command : order.commands()) {
      if (command.top == command.op && failed(checkOperands(command)))
        return failure();
      for (const MemoryUse &use : command.uses)
        if (!use.frame)
          accesses[use.region.root].push_back({&command, &use});
    }
    for (auto &[root, list] : accesses)
      if (failed(checkRoot(root, list)))
        return failure();
    for (BlockArgument argument : procedure.getBody().getArguments()) {
      if (!isa<MemRefType>(argument.getType()) || procedure.isRead(argument.getArgNumber()) ||
          !order.isOn(procedure.getPlace(argument.getArgNumber())))
        continue;
      SmallVector<const MemoryRegion *> written;
      for (const Access &access : accesses.lookup(argument))
        if (access.use->writes)
          written.push_back(&access.use->region);
      if (isChecked(BufferRule::Result) && !cover(written, regionOf(argument)))
        return procedure.emitOpError("expects result argument ")
               << argument.getArgNumber() << " to be written" << (written.empty() ? "" : " whole");
    }
    return success();
  }

  LogicalResult checkRoot(Value root, ArrayRef<Access> list) {
    auto argument = dyn_cast<BlockArgument>(root);
    const bool given = argument && procedure.isRead(argument.getArgNumber());
    if (argument && !order.isOn(procedure.getPlace(argument.getArgNumber()))) {
      InFlightDiagnostic diag = report(*list.front().command, "uses a value of other ranks");
      diag.attachNote(root.getLoc()) << "argument " << argument.getArgNumber() << " is on "
                                     << procedure.getPlace(argument.getArgNumber());
      return diag;
    }
    if (llvm::none_of(list, [](const Access &access) { return access.use->writes; }))
      return given || !isChecked(BufferRule::Unwritten) ? success()
                                                        : reportUnwritten(list.front(), root);
    for (auto [i, access] : llvm::enumerate(list)) {
      SmallVector<const MemoryRegion *> written;
      for (const Access &earlier : list.take_front(i)) {
        if (earlier.command == access.command || (!earlier.use->writes && !access.use->writes))
          continue;
        if (earlier.command->isBefore(*access.command)) {
          if (earlier.use->writes)
            written.push_back(&earlier.use->region);
        } else if (isChecked(BufferRule::Race) &&
                   mayOverlap(earlier.use->region, access.use->region)) {
          return reportRace(earlier, access);
        }
      }
      if (isChecked(BufferRule::Unwritten) && access.use->reads && !given &&
          !cover(written, access.use->region))
        return reportUnwritten(access, root);
    }
    return success();
  }

  /// A callee takes its arguments for different memory.
  static LogicalResult checkArguments(rt::CallOp call) {
    rt::ProcedureOp callee = call.getProcedure();
    SmallVector<MemoryRegion> regions;
    for (auto [i, argument] : llvm::enumerate(call.getArguments())) {
      if (!isa<MemRefType>(argument.getType()))
        break;
      regions.push_back(regionOf(argument));
      for (size_t k = 0; k < i; ++k)
        if ((callee.isWritten(i) || callee.isWritten(k)) && mayOverlap(regions[k], regions[i]))
          return call.emitOpError("expects arguments ")
                 << k << " and " << i << " not to overlap, since the callee writes "
                 << (callee.isWritten(i) ? i : k);
    }
    return success();
  }

  /// The operands of one command: no memory is written twice, and only a command that can run in
  /// place writes memory that it reads.
  LogicalResult checkOperands(const OrderedCommand &command) const {
    for (auto [i, a] : llvm::enumerate(command.uses))
      for (const MemoryUse &b : ArrayRef(command.uses).take_front(i)) {
        if ((!a.writes && !b.writes) || a.frame || b.frame || !mayOverlap(a.region, b.region))
          continue;
        if (a.writes && b.writes) {
          if (isChecked(BufferRule::Once))
            return command.op->emitOpError("writes one memory twice");
          continue;
        }
        const MemoryUse &read = a.writes ? b : a, &written = a.writes ? a : b;
        if (isChecked(BufferRule::InPlace) && !canRunInPlace(command.op, read, written))
          return command.op->emitOpError("writes memory that it reads, and cannot run in place");
      }
    return success();
  }

  /// An error on the operation of this procedure, with a note on the callee's command.
  InFlightDiagnostic report(const OrderedCommand &command, const Twine &what) const {
    InFlightDiagnostic diag = command.top->emitOpError("(" + command.describe() + ") " + what);
    if (alone)
      diag.attachNote(command.top->getLoc()) << "on rank " << order.rank();
    if (command.top != command.op)
      diag.attachNote(command.op->getLoc()) << "in the callee, at this command";
    return diag;
  }

  LogicalResult reportUnwritten(const Access &access, Value root) const {
    InFlightDiagnostic diag =
        report(*access.command, "reads memory that nothing has written before");
    diag.attachNote(root.getLoc()) << "the memory";
    return diag;
  }

  LogicalResult reportRace(const Access &earlier, const Access &later) const {
    // Of a command that reads and writes, the write is reported.
    auto does = [](const Access &access) { return access.use->writes ? "writes" : "reads"; };
    InFlightDiagnostic diag =
        report(*later.command, Twine(does(later)) + " memory that " + earlier.command->describe() +
                                   " " + does(earlier) + ", and no event orders the two");
    diag.attachNote(earlier.command->top->getLoc()) << "the other command";
    if (earlier.command->top != earlier.command->op)
      diag.attachNote(earlier.command->op->getLoc()) << "in the callee, at this command";
    return diag;
  }

  void collect() {
    DenseMap<Value, size_t> extentOf;
    DenseMap<Operation *, size_t> framesOf;
    for (Operation &op : procedure.getBody().front()) {
      if (auto alloc = dyn_cast<rt::AllocOp>(op)) {
        extentOf[alloc.getBuffer()] = extents.size();
        int64_t begin = *alloc.getOffset();
        extents.push_back({alloc,
                           alloc.getSpace(),
                           begin,
                           begin + alloc.getSizeInBytes(),
                           Lifetime(order.queues().size()),
                           {}});
      } else if (auto call = dyn_cast<rt::CallOp>(op)) {
        framesOf[call] = extents.size(); // by rt::Space from here
        rt::FrameAttr base = call.getBaseAttr(), frame = call.getProcedure().getFrameAttr();
        auto add = [&](rt::Space space, int64_t begin, int64_t size) {
          extents.push_back(
              {call, space, begin, begin + size, Lifetime(order.queues().size()), {}});
        };
        add(rt::Space::Local, base.getLocal(), frame.getLocal());
        add(rt::Space::Symmetric, base.getSymmetric(), frame.getSymmetric());
      }
    }
    for (const OrderedCommand &command : order.commands())
      for (const MemoryUse &use : command.uses)
        if (use.frame)
          extents[framesOf[use.frame] + static_cast<size_t>(use.space)].use(command);
        else if (auto it = extentOf.find(use.region.root); it != extentOf.end())
          extents[it->second].use(command);
  }

  /// Whether the command may write the bytes of one operand that it reads to those of another.
  static bool canRunInPlace(Operation *command, const MemoryUse &read, const MemoryUse &written) {
    if (auto start = dyn_cast<rt::StartOp>(command))
      return start.getKind() == rt::CollectiveKind::AllReduce && read.region == written.region &&
             read.operand + start.getInputs().size() == written.operand;
    auto launch = dyn_cast<rt::LaunchOp>(command);
    if (!launch)
      return false;
    const auto numInputs = static_cast<unsigned>(launch.getInputs().size());
    return read.operand < numInputs && written.operand >= numInputs &&
           launch.getKernelOp().canShare(read.operand, written.operand - numInputs);
  }

  /// Whether a command that uses both extents reads one and writes the other in place.
  static bool isInPlace(const OrderedCommand &command, const Extent &a, const Extent &b) {
    if (!isa<rt::LaunchOp>(command.op) || a.begin != b.begin || a.end != b.end)
      return false;
    auto isIn = [](const MemoryUse &use, const Extent &extent) {
      return isa<rt::AllocOp>(extent.owner) && use.region.root == extent.owner->getResult(0);
    };
    bool any = false;
    for (const MemoryUse &x : command.uses)
      for (const MemoryUse &y : command.uses)
        if (isIn(x, a) && isIn(y, b) && (x.writes || y.writes)) {
          if (!canRunInPlace(command.op, x.writes ? y : x, x.writes ? x : y))
            return false;
          any = true;
        }
    return any;
  }

  static bool allBefore(const Extent &a, const Extent &b) {
    if (a.life.endsBefore(b.life))
      return true;
    if (a.begin != b.begin || a.end != b.end) // no command can use both in place
      return false;
    for (const OrderedCommand *x : a.uses)
      for (const OrderedCommand *y : b.uses)
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
    diag.attachNote(a.owner->getLoc()) << "the other one: " << conflict(a, b);
    return diag;
  }

  /// Two commands that use the extents and that the order does not keep apart.
  static std::string conflict(const Extent &a, const Extent &b) {
    for (const OrderedCommand *x : a.uses)
      for (const OrderedCommand *y : b.uses)
        if (x != y && !x->isBefore(*y) && !y->isBefore(*x))
          return "no event orders " + x->describe() + ", which uses it, and " + y->describe();
    return b.uses.front()->describe() + " runs before " + a.uses.back()->describe() +
           ", which uses it";
  }

  rt::ProcedureOp procedure;
  HappensBefore order;
  bool alone;
  ArrayRef<BufferRule> skip;
  std::vector<Extent> extents;
};

} // namespace

/// Whether the frames of callees lie within the procedure's.
static LogicalResult checkFrames(rt::ProcedureOp procedure) {
  for (auto call : procedure.getBody().front().getOps<rt::CallOp>()) {
    rt::FrameAttr inner = call.getProcedure().getFrameAttr(), base = call.getBaseAttr(),
                  frame = procedure.getFrameAttr();
    if (base.getLocal() % rt::kBufferAlignment != 0 ||
        base.getSymmetric() % rt::kBufferAlignment != 0)
      return call.emitOpError("expects a place that is a multiple of ") << rt::kBufferAlignment;
    // None is negative: a sum could overflow, a difference cannot.
    if (base.getLocal() > frame.getLocal() - inner.getLocal() ||
        base.getSymmetric() > frame.getSymmetric() - inner.getSymmetric() ||
        base.getEvents() > frame.getEvents() - inner.getEvents())
      return call.emitOpError("expects the callee's frame to lie within the caller's");
  }
  return success();
}

LogicalResult braid::checkBuffers(rt::ProcedureOp procedure, ArrayRef<BufferRule> skip) {
  if (!procedure.getFrameAttr())
    return procedure.emitOpError("expects a frame: buffers are not assigned yet");
  for (auto call : procedure.getBody().front().getOps<rt::CallOp>())
    if (!call.getProcedure().getFrameAttr())
      return call.emitOpError("expects the callee to have a frame");
  if (!llvm::is_contained(skip, BufferRule::Frame) && failed(checkFrames(procedure)))
    return failure();
  if (failed(HappensBefore::checkSize(procedure)))
    return failure();
  const SmallVector<int64_t> ranks = HappensBefore::differingRanks(procedure);
  return success(llvm::all_of(ranks, [&](int64_t rank) {
    return succeeded(Checker(procedure, rank, ranks.size() > 1, skip).run());
  }));
}
