//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ArenaPacker.h"
#include "CommandOrder.h"

#include "braid/Conversion/BufferCheck.h"
#include "braid/Conversion/Passes.h"

#include "mlir/Analysis/CallGraph.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SCCIterator.h"

namespace braid {
#define GEN_PASS_DEF_ASSIGNBUFFERS
#include "braid/Conversion/Passes.h.inc"
} // namespace braid

using namespace mlir;
using namespace braid;

namespace {

/// First and last place in the compute queue's order at which memory is in use.
struct Life {
  int64_t begin = -1, end = -1;
  void extend(Life other) {
    begin = begin < 0 ? other.begin : std::min(begin, other.begin);
    end = std::max(end, other.end);
  }
};

/// When commands run, in places of the compute queue. The life of a command of another queue begins
/// at the last compute command that must precede it, and ends at the first one that must follow it.
class Timeline {
public:
  explicit Timeline(Block &block) : order(orderCommands(block)) {
    for (const Command &command : order.commands)
      byOperation[command.op] = &command;
    SmallVector<SmallVector<Operation *>, 4> waiting(order.queues.size()); // for their ends
    SmallVector<int64_t, 4> ended(order.queues.size(), 0);
    int64_t count = 0;
    for (const Command &command : order.commands) {
      if (!command.isCompute()) {
        lives[command.op].begin = std::max<int64_t>(command.before[0] - 1, 0);
        waiting[command.queue].push_back(command.op);
        continue;
      }
      lives[command.op] = {command.index, command.index};
      for (size_t queue = 1; queue < ended.size(); ++queue)
        for (; ended[queue] < command.before[queue]; ++ended[queue])
          lives[waiting[queue][ended[queue]]].end = command.index;
      count = command.index + 1;
    }
    for (size_t queue = 1; queue < ended.size(); ++queue)
      for (Operation *never : ArrayRef(waiting[queue]).drop_front(ended[queue]))
        lives[never].end = count;
  }

  Life operator[](Operation *op) const { return lives.lookup(op); }
  bool isBefore(Operation *a, Operation *b) const {
    return byOperation.lookup(a)->isBefore(*byOperation.lookup(b));
  }

private:
  CommandOrder order;
  DenseMap<Operation *, const Command *> byOperation;
  DenseMap<Operation *, Life> lives;
};

/// Plans one procedure whose callees are planned.
class Planner {
public:
  Planner(rt::ProcedureOp procedure, bool inPlace)
      : procedure(procedure), timeline(procedure.getBody().front()), inPlace(inPlace) {}

  LogicalResult run() {
    numberEvents();
    findLives();
    if (inPlace)
      shareInPlace();
    std::optional<int64_t> local = pack(rt::Space::Local), symmetric = pack(rt::Space::Symmetric);
    if (!local || !symmetric)
      return procedure.emitOpError("needs more than 2^61 bytes of memory");
    auto frame = rt::FrameAttr::getChecked([&] { return procedure.emitOpError("frame: "); },
                                           procedure.getContext(), *local, *symmetric, numEvents);
    if (!frame)
      return failure();
    procedure.setFrameAttr(frame);
    for (auto [call, base] : bases)
      call.setBaseAttr(
          rt::FrameAttr::get(procedure.getContext(), base.local, base.symmetric, base.events));
    return success();
  }

  int64_t numShared = 0;
  std::array<int64_t, 2> sumOfBuffers = {};

private:
  struct Base {
    int64_t local = 0, symmetric = 0, events = 0;
  };

  /// Every call gets its own numbers for its callee's events: none is used twice in a run.
  void numberEvents() {
    OpBuilder builder(procedure);
    for (Operation &op : procedure.getBody().front()) {
      if (isa<rt::RecordOp, rt::StartOp>(op))
        op.setAttr("event", builder.getI64IntegerAttr(numEvents++));
      else if (auto call = dyn_cast<rt::CallOp>(op)) {
        bases[call].events = numEvents;
        numEvents += call.getProcedure().getFrameAttr().getEvents();
      }
    }
  }

  void findLives() {
    for (Operation &op : procedure.getBody().front()) {
      auto [reads, writes] = rt::getAccesses(&op);
      for (Value root : llvm::concat<Value>(reads, writes))
        if (auto alloc = root.getDefiningOp<rt::AllocOp>(); alloc && alloc != &op) {
          lives[alloc].extend(timeline[&op]);
          users[alloc].push_back(&op);
        }
    }
    for (auto alloc : procedure.getBody().front().getOps<rt::AllocOp>()) {
      allocs.push_back(alloc);
      lives.try_emplace(alloc, Life{0, 0}); // of an unused one
      sharing.insert(alloc);
    }
  }

  /// A kernel's result reuses the bytes of an input whose last use the kernel is.
  void shareInPlace() {
    for (auto launch : procedure.getBody().front().getOps<rt::LaunchOp>()) {
      rt::KernelOp kernel = launch.getKernelOp();
      auto otherUsesAre = [&](rt::AllocOp buffer, bool before) {
        return llvm::all_of(users[buffer], [&](Operation *user) {
          return user == launch ||
                 (before ? timeline.isBefore(user, launch) : timeline.isBefore(launch, user));
        });
      };
      llvm::SmallPtrSet<Operation *, 4> taken;
      for (auto [o, output] : llvm::enumerate(launch.getOutputs())) {
        auto to = rt::getRoot(output).getDefiningOp<rt::AllocOp>();
        if (!to || !otherUsesAre(to, /*before=*/false))
          continue;
        for (auto [i, input] : llvm::enumerate(launch.getInputs())) {
          auto from = rt::getRoot(input).getDefiningOp<rt::AllocOp>();
          if (!from || from.getSpace() != to.getSpace() ||
              from.getSizeInBytes() != to.getSizeInBytes() ||
              !otherUsesAre(from, /*before=*/true) || taken.contains(from) ||
              !kernel.canShare(i, o) || !isOneInput(launch, from))
            continue;
          sharing.unionSets(from, to);
          taken.insert(from);
          ++numShared;
          break;
        }
      }
    }
  }

  /// Whether one input only is in the buffer: the kernel may read others' elements later.
  static bool isOneInput(rt::LaunchOp launch, rt::AllocOp buffer) {
    return llvm::count_if(launch.getInputs(), [&](Value input) {
             return rt::getRoot(input) == buffer.getBuffer();
           }) == 1;
  }

  /// The arena's size; nullopt where it is too large.
  std::optional<int64_t> pack(rt::Space space) {
    std::vector<ArenaItem> items;
    DenseMap<Operation *, size_t> itemOf; // of the leader of what shares bytes
    for (rt::AllocOp alloc : allocs) {
      if (alloc.getSpace() != space)
        continue;
      sumOfBuffers[static_cast<int>(space)] += alloc.getSizeInBytes();
      Operation *leader = sharing.getLeaderValue(alloc);
      auto [it, inserted] = itemOf.try_emplace(leader, items.size());
      if (inserted)
        items.push_back({alloc.getSizeInBytes(), lives[alloc].begin, lives[alloc].end, 0});
      ArenaItem &item = items[it->second];
      item.begin = std::min(item.begin, lives[alloc].begin);
      item.end = std::max(item.end, lives[alloc].end);
    }
    size_t numBuffers = items.size();
    for (auto &[call, base] : bases) {
      Life now = timeline[call];
      rt::FrameAttr frame = call.getProcedure().getFrameAttr();
      int64_t size = space == rt::Space::Local ? frame.getLocal() : frame.getSymmetric();
      items.push_back({size, now.begin, now.end, 0});
    }
    std::optional<int64_t> total = packArena(items, rt::kBufferAlignment);
    if (!total)
      return std::nullopt;
    OpBuilder builder(procedure);
    for (rt::AllocOp alloc : allocs)
      if (alloc.getSpace() == space)
        alloc.setOffsetAttr(
            builder.getI64IntegerAttr(items[itemOf[sharing.getLeaderValue(alloc)]].offset));
    for (auto [i, entry] : llvm::enumerate(bases))
      (space == rt::Space::Local ? entry.second.local : entry.second.symmetric) =
          items[numBuffers + i].offset;
    return total;
  }

  rt::ProcedureOp procedure;
  Timeline timeline;
  bool inPlace;
  int64_t numEvents = 0;
  SmallVector<rt::AllocOp> allocs;
  DenseMap<Operation *, Life> lives;
  DenseMap<Operation *, SmallVector<Operation *>> users;
  llvm::EquivalenceClasses<Operation *> sharing; ///< buffers that are the same bytes
  llvm::MapVector<rt::CallOp, Base> bases;
};

struct AssignBuffers : braid::impl::AssignBuffersBase<AssignBuffers> {
  using AssignBuffersBase::AssignBuffersBase;

  void runOnOperation() override {
    CallGraph graph(getOperation());
    // Callees before their callers.
    for (auto it = llvm::scc_begin<const CallGraph *>(&graph); !it.isAtEnd(); ++it) {
      const CallGraphNode *node = it->back(); // the member of a cycle that is reached first
      if (node->isExternal())
        continue;
      auto procedure = dyn_cast<rt::ProcedureOp>(node->getCallableRegion()->getParentOp());
      if (procedure && it.hasCycle()) {
        procedure.emitOpError("calls itself, so that its frame has no end");
        return signalPassFailure();
      }
      if (procedure && failed(assign(procedure)))
        return signalPassFailure();
    }
  }

  LogicalResult assign(rt::ProcedureOp procedure) {
    Planner planner(procedure, inPlace);
    if (failed(planner.run()))
      return failure();
    report(procedure, planner);
    return checkBuffers(procedure);
  }

  void report(rt::ProcedureOp procedure, const Planner &planner) {
    rt::FrameAttr frame = procedure.getFrameAttr();
    numShared += planner.numShared;
    if (procedure.getEntry()) {
      localBytes += frame.getLocal();
      symmetricBytes += frame.getSymmetric();
    }
    remark::analysis(procedure.getLoc(), remark::RemarkOpts::name("buffers").category("buffers"))
        << ("@" + procedure.getSymName() + ": local " + Twine(frame.getLocal()) +
            " bytes (buffers " + Twine(planner.sumOfBuffers[0]) + "), symmetric " +
            Twine(frame.getSymmetric()) + " bytes (buffers " + Twine(planner.sumOfBuffers[1]) +
            "), " + Twine(planner.numShared) + " in place")
               .str();
  }
};

} // namespace
