//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ArenaPacker.h"
#include "LivePeak.h"

#include "braid/Analysis/HappensBefore.h"
#include "braid/Conversion/BufferCheck.h"
#include "braid/Conversion/Passes.h"

#include "mlir/Analysis/CallGraph.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SCCIterator.h"

#include <map>

namespace braid {
#define GEN_PASS_DEF_ASSIGNBUFFERS
#include "braid/Conversion/Passes.h.inc"
} // namespace braid

using namespace mlir;
using namespace braid;

namespace {

/// Plans one procedure whose callees are planned.
class Planner {
public:
  Planner(rt::ProcedureOp procedure, bool inPlace) : procedure(procedure), inPlace(inPlace) {
    for (int64_t rank : HappensBefore::differingRanks(procedure))
      orders.emplace_back(procedure, rank);
  }

  LogicalResult run() {
    numberEvents();
    findLives();
    keepPayloads();
    keepArguments();
    // Procedures whose callees differ by rank have no kernels of their own that are worth it.
    if (inPlace && orders.size() == 1)
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
    for (auto alloc : procedure.getBody().front().getOps<rt::AllocOp>()) {
      allocs.push_back(alloc);
      lives.try_emplace(alloc, numClocks());
      sharing.insert(alloc);
    }
    for (auto &[call, base] : bases)
      for (auto &life : frameLives.try_emplace(call).first->second)
        life.emplace(numClocks());
    for (size_t role = 0; role < orders.size(); ++role)
      for (const OrderedCommand &command : orders[role].commands())
        for (const MemoryUse &use : command.uses) {
          if (use.frame) {
            frameLives[use.frame][static_cast<int>(use.space)]->extend(lifetimeIn(role, command));
          } else if (auto alloc = use.region.root.getDefiningOp<rt::AllocOp>()) {
            lives.at(alloc).extend(lifetimeIn(role, command));
            users[alloc].push_back(&command);
          }
        }
  }

  /// All ranks have the same frame, so that the lives of two buffers must be apart on each of them:
  /// a life counts the queues of every role.
  size_t numClocks() const { return orders.size() * orders.front().queues().size(); }
  Lifetime lifetimeIn(size_t role, const OrderedCommand &command) const {
    const Lifetime own = command.getLifetime();
    Lifetime life(numClocks());
    const auto at = static_cast<std::ptrdiff_t>(role * own.first.size());
    llvm::copy(own.first, life.first.begin() + at);
    llvm::copy(own.last, life.last.begin() + at);
    return life;
  }

  void keepPayloads() {
    for (auto [from, to] : decodedPayloads(procedure))
      lives.at(from).extend(lives.at(to));
  }

  /// What a call passes stays apart from the callee's frame, so that a procedure is right by
  /// itself.
  void keepArguments() {
    for (auto &[call, base] : bases)
      for (Value argument : call.getArguments())
        if (auto alloc = rt::getRoot(argument).getDefiningOp<rt::AllocOp>())
          for (const std::optional<Lifetime> &life : frameLives[call])
            lives.at(alloc).extend(*life);
  }

  /// A kernel's result reuses the bytes of an input whose last use the kernel is.
  void shareInPlace() {
    for (const OrderedCommand &command : orders.front().commands()) {
      auto launch = dyn_cast<rt::LaunchOp>(command.op);
      if (!launch || command.top != command.op)
        continue;
      rt::KernelOp kernel = launch.getKernelOp();
      auto otherUsesAre = [&](rt::AllocOp buffer, bool before) {
        return llvm::all_of(users[buffer], [&](const OrderedCommand *user) {
          return user == &command || (before ? user->isBefore(command) : command.isBefore(*user));
        });
      };
      llvm::SmallPtrSet<Operation *, 4> taken;
      for (auto [o, output] : llvm::enumerate(launch.getOutputs())) {
        rt::AllocOp to = wholeBuffer(output);
        if (!to || !otherUsesAre(to, /*before=*/false))
          continue;
        for (auto [i, input] : llvm::enumerate(launch.getInputs())) {
          rt::AllocOp from = wholeBuffer(input);
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

  /// The buffer that a view covers completely, or null.
  static rt::AllocOp wholeBuffer(Value view) {
    MemoryRegion region = regionOf(view);
    auto alloc = region.root.getDefiningOp<rt::AllocOp>();
    bool whole = alloc && region.steps.empty() && region.byRank.empty() &&
                 region.length == alloc.getSizeInBytes();
    return whole ? alloc : rt::AllocOp();
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
        items.push_back({alloc.getSizeInBytes(), lives.at(alloc)});
      items[it->second].life.extend(lives.at(alloc));
    }
    size_t numBuffers = items.size();
    for (auto &[call, base] : bases) {
      rt::FrameAttr frame = call.getProcedure().getFrameAttr();
      int64_t size = space == rt::Space::Local ? frame.getLocal() : frame.getSymmetric();
      items.push_back({size, *frameLives[call][static_cast<int>(space)]});
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
  std::vector<HappensBefore> orders; ///< by role
  bool inPlace;
  int64_t numEvents = 0;
  SmallVector<rt::AllocOp> allocs;
  std::map<Operation *, Lifetime> lives;
  DenseMap<Operation *, std::array<std::optional<Lifetime>, 2>> frameLives; ///< of calls, by Space
  DenseMap<Operation *, SmallVector<const OrderedCommand *>> users;
  llvm::EquivalenceClasses<Operation *> sharing; ///< buffers that are the same bytes
  llvm::MapVector<rt::CallOp, Base> bases;
};

struct AssignBuffers : braid::impl::AssignBuffersBase<AssignBuffers> {
  using AssignBuffersBase::AssignBuffersBase;

  void runOnOperation() override {
    peaks = LivePeaks();
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
    if (procedure.getFrameAttr())
      return checkBuffers(procedure);
    if (failed(HappensBefore::checkSize(procedure)))
      return failure();
    Planner planner(procedure, inPlace);
    if (failed(planner.run()))
      return failure();
    report(procedure, planner);
    return checkBuffers(procedure);
  }

  void report(rt::ProcedureOp procedure, const Planner &planner) {
    rt::FrameAttr frame = procedure.getFrameAttr();
    const ArenaBytes live = peaks.of(procedure);
    numShared += planner.numShared;
    if (procedure.getEntry()) {
      localBytes += frame.getLocal();
      symmetricBytes += frame.getSymmetric();
    }
    remark::analysis(procedure.getLoc(), remark::RemarkOpts::name("buffers").category("buffers"))
        << ("@" + procedure.getSymName() + ": local " + Twine(frame.getLocal()) + " bytes (" +
            Twine(live[0]) + " live at once, buffers " + Twine(planner.sumOfBuffers[0]) +
            "), symmetric " + Twine(frame.getSymmetric()) + " bytes (" + Twine(live[1]) +
            " live at once, buffers " + Twine(planner.sumOfBuffers[1]) + "), " +
            Twine(planner.numShared) + " in place")
               .str();
  }

  LivePeaks peaks;
};

} // namespace
