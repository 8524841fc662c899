//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/HappensBefore.h"

using namespace mlir;
using namespace braid;

/// Adds the queues that a procedure and its callees use.
static void collectQueues(rt::ProcedureOp procedure, SmallVectorImpl<rt::QueueAttr> &queues,
                          llvm::SmallPtrSetImpl<Operation *> &seen) {
  if (!seen.insert(procedure).second)
    return;
  for (Operation &op : procedure.getBody().front()) {
    if (isa<rt::AllocOp, rt::ViewOp, rt::SubviewOp>(op))
      continue;
    if (auto call = dyn_cast<rt::CallOp>(op))
      collectQueues(call.getProcedure(), queues, seen);
    else if (rt::QueueAttr queue = rt::queueOf(&op); !llvm::is_contained(queues, queue))
      queues.push_back(queue);
  }
}

/// Saturates above HappensBefore::kMaxCommands.
static uint64_t countCommands(rt::ProcedureOp procedure, DenseMap<Operation *, uint64_t> &counts) {
  if (auto it = counts.find(procedure); it != counts.end())
    return it->second;
  uint64_t count = 0;
  for (Operation &op : procedure.getBody().front()) {
    auto call = dyn_cast<rt::CallOp>(op);
    count += call ? countCommands(call.getProcedure(), counts) : 1;
    count = std::min(count, HappensBefore::kMaxCommands + 1);
  }
  return counts[procedure] = count;
}

/// The places at which a procedure and its callees have commands, and an entry has values.
static void collectPlaces(rt::ProcedureOp procedure, llvm::SetVector<comm::PlaceAttr> &places,
                          llvm::SmallPtrSetImpl<Operation *> &seen) {
  if (!seen.insert(procedure).second)
    return;
  for (unsigned i = 0; i < procedure.getNumArguments(); ++i)
    if (comm::PlaceAttr place = procedure.getPlace(i))
      places.insert(place);
  for (Operation &op : procedure.getBody().front()) {
    if (comm::PlaceAttr place = comm::placeOf(&op))
      places.insert(place);
    if (auto call = dyn_cast<rt::CallOp>(op))
      collectPlaces(call.getProcedure(), places, seen);
  }
}

static runtime::Mesh meshOf(rt::ProcedureOp procedure) {
  auto meshes = procedure->getParentOfType<ModuleOp>().getOps<comm::MeshOp>();
  return meshes.empty() ? runtime::Mesh() : comm::toRuntime(*meshes.begin());
}

static runtime::Result<runtime::RankRoles> rolesOf(rt::ProcedureOp procedure) {
  llvm::SetVector<comm::PlaceAttr> places;
  llvm::SmallPtrSet<Operation *, 8> seen;
  collectPlaces(procedure, places, seen);
  std::vector<runtime::RankSet> sets;
  for (comm::PlaceAttr place : places)
    sets.push_back(comm::toRuntime(place));
  return runtime::RankRoles::of(meshOf(procedure), sets);
}

SmallVector<int64_t> HappensBefore::differingRanks(rt::ProcedureOp procedure) {
  const runtime::RankRoles roles = *rolesOf(procedure); // checkSize has passed
  SmallVector<int64_t> ranks;
  for (size_t role = 0; role < roles.count(); ++role)
    ranks.push_back(roles.rank(role));
  return ranks;
}

bool HappensBefore::isOn(comm::PlaceAttr place) const {
  return !place || comm::toRuntime(place).contains(mesh, ownRank);
}

LogicalResult HappensBefore::checkSize(rt::ProcedureOp procedure) {
  if (auto roles = rolesOf(procedure); !roles.ok())
    return procedure.emitOpError(roles.status().message());
  DenseMap<Operation *, uint64_t> counts;
  if (countCommands(procedure, counts) <= kMaxCommands)
    return success();
  return procedure.emitOpError("expects at most ")
         << kMaxCommands << " commands with all calls expanded";
}

std::string OrderedCommand::describe() const {
  std::string text;
  if (auto launch = dyn_cast<rt::LaunchOp>(op))
    text = "launch of @" + launch.getKernel().str();
  else if (auto start = dyn_cast<rt::StartOp>(op))
    text = rt::stringifyCollectiveKind(start.getKind()).str();
  else
    text = op->getName().stripDialect().str();
  if (auto role = op->getAttrOfType<StringAttr>("role"))
    text += " '" + role.str() + "'";
  else if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    text += " '" + name.getName().str() + "'";
  if (top != op)
    text += " in @" + op->getParentOfType<rt::ProcedureOp>().getSymName().str();
  return text + " on the " + rt::queueOf(op).str() + " queue";
}

HappensBefore::HappensBefore(rt::ProcedureOp procedure, int64_t rank)
    : mesh(meshOf(procedure)), ownRank(rank) {
  queueList.push_back(rt::QueueAttr::get(procedure.getContext(), rt::QueueKind::Compute));
  llvm::SmallPtrSet<Operation *, 8> seen;
  collectQueues(procedure, queueList, seen);
  now.assign(queueList.size(), Clock(queueList.size(), 0));
  Frame frame;
  // An event that a caller passes says nothing about this procedure's own commands.
  for (BlockArgument argument : procedure.getBody().getArguments())
    if (isa<rt::EventType>(argument.getType()))
      frame.events[argument] = Clock(queueList.size(), 0);
  walk(procedure, frame);
}

unsigned HappensBefore::numberOf(rt::QueueAttr queue) {
  return static_cast<unsigned>(llvm::find(queueList, queue) - queueList.begin());
}

void HappensBefore::walk(rt::ProcedureOp procedure, Frame &frame) {
  for (Operation &op : procedure.getBody().front()) {
    if (isa<rt::AllocOp, rt::ViewOp, rt::SubviewOp>(op) || !isOn(comm::placeOf(&op)))
      continue;
    if (auto call = dyn_cast<rt::CallOp>(op))
      enter(call, frame);
    else if (!isa<rt::ReturnOp>(op) || !frame.top)
      add(&op, frame);
  }
}

void HappensBefore::enter(rt::CallOp call, Frame &caller) {
  rt::ProcedureOp procedure = call.getProcedure();
  Frame frame;
  frame.top = caller.top ? caller.top : call.getOperation();
  for (auto [operand, argument] :
       llvm::zip_equal(call.getArguments(), procedure.getBody().getArguments())) {
    if (isa<rt::EventType>(operand.getType())) {
      frame.events[argument] = caller.events.lookup(operand);
      continue;
    }
    MemoryUse use = useOf(operand, caller);
    frame.arguments.push_back(use.region);
    frame.argumentUses.push_back(std::move(use));
  }
  walk(procedure, frame);
  Operation *end = procedure.getBody().front().getTerminator();
  for (auto [result, event] : llvm::zip_equal(call.getEvents(), end->getOperands()))
    caller.events[result] = frame.events.lookup(event);
}

MemoryUse HappensBefore::useOf(Value memory, const Frame &frame) const {
  MemoryUse use;
  use.region = regionOf(memory);
  if (!frame.top)
    return use;
  if (auto argument = dyn_cast<BlockArgument>(use.region.root)) {
    const MemoryUse &passed = frame.argumentUses[argument.getArgNumber()];
    MemoryRegion region = inCaller(use.region, passed.region);
    use = passed;
    use.region = std::move(region);
    return use;
  }
  use.frame = cast<rt::CallOp>(frame.top);
  use.space = use.region.root.getDefiningOp<rt::AllocOp>().getSpace();
  use.region.root = {};
  return use;
}

void HappensBefore::add(Operation *op, Frame &frame) {
  const unsigned queue = numberOf(rt::queueOf(op));
  Clock &clock = now[queue];
  OrderedCommand command;
  // A wait adds the clock of its event.
  if (isa<rt::AwaitOp, rt::WaitOp>(op)) {
    const Clock set = frame.events.lookup(op->getOperand(0));
    command.waitsForever = set.empty();
    for (auto [mine, theirs] : llvm::zip(clock, set))
      mine = std::max(mine, theirs);
  }
  command.op = op;
  command.top = frame.top ? frame.top : op;
  command.queue = queue;
  command.index = clock[queue];
  command.before = clock;
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (auto accessing = dyn_cast<MemoryEffectOpInterface>(op)) // rt.return is none
    accessing.getEffects(effects);
  llvm::SmallDenseMap<unsigned, size_t, 8> useOfOperand;
  for (const MemoryEffects::EffectInstance &effect : effects) {
    auto *operand = effect.getEffectValue<OpOperand *>();
    if (!operand || !isa<MemRefType>(operand->get().getType()))
      continue;
    auto [it, isNew] = useOfOperand.try_emplace(operand->getOperandNumber(), command.uses.size());
    if (isNew) {
      command.uses.push_back(useOf(operand->get(), frame));
      command.uses.back().operand = operand->getOperandNumber();
      command.uses.back().reads = command.uses.back().writes = false;
    }
    command.uses[it->second].reads |= isa<MemoryEffects::Read>(effect.getEffect());
    command.uses[it->second].writes |= isa<MemoryEffects::Write>(effect.getEffect());
  }
  ++clock[queue];
  if (isa<rt::RecordOp, rt::StartOp>(op))
    frame.events[op->getResult(0)] = clock;
  list.push_back(std::move(command));
}
