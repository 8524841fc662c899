//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "MemoryPlan.h"

using namespace mlir;
using namespace braid;

//===----------------------------------------------------------------------===//
// Operations that move no data
//===----------------------------------------------------------------------===//

std::optional<PartPlace> braid::partOf(Operation *op) {
  if (auto part = dyn_cast<comm::PartOp>(op)) {
    PartPlace place;
    place.offsets.assign(cast<RankedTensorType>(part.getInput().getType()).getRank(), 0);
    place.dim = part.getDim();
    place.shift = part.getShift();
    place.group = part.getGroup();
    return place;
  }
  auto slice = dyn_cast<nn::SliceOp>(op);
  if (!slice)
    return std::nullopt;
  PartPlace place;
  place.offsets.assign(cast<RankedTensorType>(slice.getType()).getRank(), 0);
  place.offsets[slice.getDim()] = slice.getFrom();
  return place;
}

SmallVector<PartPlace> braid::joinedParts(Operation *op) {
  SmallVector<PartPlace> places;
  if (auto assemble = dyn_cast<comm::AssembleOp>(op))
    for (int64_t shift : assemble.getShifts()) {
      PartPlace &place = places.emplace_back();
      place.offsets.assign(cast<RankedTensorType>(assemble.getType()).getRank(), 0);
      place.dim = assemble.getDim();
      place.shift = shift;
      place.group = assemble.getGroup();
    }
  auto concat = dyn_cast<nn::ConcatOp>(op);
  if (!concat)
    return places;
  for (int64_t offset : concat.getOffsets()) {
    PartPlace &place = places.emplace_back();
    place.offsets.assign(cast<RankedTensorType>(concat.getType()).getRank(), 0);
    place.offsets[concat.getDim()] = offset;
  }
  return places;
}

bool braid::isReshape(Operation *op) {
  return isa_and_nonnull<nn::SplitHeadsOp, nn::MergeHeadsOp, tensor::CollapseShapeOp,
                         tensor::ExpandShapeOp>(op);
}

SmallVector<RankedTensorType> braid::flattenTypes(TypeRange types) {
  SmallVector<RankedTensorType> flat;
  for (Type type : types)
    if (auto handle = dyn_cast<comm::HandleType>(type))
      for (Type value : handle.getValueTypes())
        flat.push_back(cast<RankedTensorType>(value));
    else
      flat.push_back(cast<RankedTensorType>(type));
  return flat;
}

/// The memory of values, as flattenTypes lists it.
static SmallVector<Stored> flatten(ValueRange values) {
  SmallVector<Stored> flat;
  for (Value value : values)
    for (size_t i = 0, count = flattenTypes(value.getType()).size(); i < count; ++i)
      flat.emplace_back(value, i);
  return flat;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

MemoryPlan::MemoryPlan(func::FuncOp function, const llvm::StringMap<Signature> &callees)
    : function(function), block(function.getBody().front()),
      entry(function->hasAttr(nn::NNDialect::kEntryAttrName)) {
  findAccumulators(callees);
  findParts();
  findJoins();
  findSymmetric(callees);
  findResults();
  for (Stored argument : flatten(block.getArguments()))
    signature.arguments.push_back(isSymmetric(argument));
}

Stored MemoryPlan::rootOf(Value value) const {
  while (Operation *producer = value.getDefiningOp()) {
    Value below = isReshape(producer) ? producer->getOperand(0) : accumulatorOf(value);
    if (!below)
      break;
    value = below;
  }
  if (auto wait = value.getDefiningOp<comm::WaitOp>())
    return {wait.getHandle(), cast<OpResult>(value).getResultNumber()};
  return {value, 0};
}

/// The operand that the operation changes to give `result`, and null for other results.
static Value changedOperand(OpResult result, const llvm::StringMap<Signature> &callees) {
  if (auto kernel = dyn_cast<nn::KernelCallOpInterface>(result.getOwner()))
    return result.getResultNumber() == 0 ? kernel.getKernelCall().accumulator : Value();
  auto call = dyn_cast<func::CallOp>(result.getOwner());
  auto callee = call ? callees.find(call.getCallee()) : callees.end();
  if (callee == callees.end())
    return {};
  const SmallVector<Stored> results = flatten(call.getResults());
  for (auto [stored, taken] : llvm::zip_equal(results, callee->second.results))
    if (stored.first == result && taken.argument)
      return flatten(call.getOperands())[*taken.argument].first;
  return {};
}

/// Whether the operation reads its operands completely on the compute queue, without giving a view
/// of them.
static bool readsAtOnce(Operation *op) {
  auto launch = dyn_cast<rt::LaunchOp>(op);
  return isa<nn::KernelCallOpInterface>(op) || (launch && launch.getQueue().isCompute());
}

/// Whether the operation is the last one to use the value, and may write its memory.
static bool isLastUse(Value value, Operation *op) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return user == op ? llvm::count(op->getOperands(), value) == 1
                      : readsAtOnce(user) && user->isBeforeInBlock(op);
  });
}

void MemoryPlan::findAccumulators(const llvm::StringMap<Signature> &callees) {
  // An argument is changed in place if it becomes a result, which then is no other memory.
  llvm::SmallDenseMap<Value, SmallVector<unsigned, 1>> returned;
  for (Operation &op : block)
    for (OpResult result : op.getResults()) {
      Value changed = changedOperand(result, callees);
      if (!changed || !isLastUse(changed, &op))
        continue;
      Operation *producer = changed.getDefiningOp();
      const bool own = producer && !isa<nn::ParameterOp>(producer) && !isReshape(producer) &&
                       !partOf(producer) && joinedParts(producer).empty();
      auto argument = dyn_cast<BlockArgument>(changed);
      if (own || (argument && (!entry || nn::getStateResult(function, argument.getArgNumber()))))
        accumulators[result] = changed;
    }
  for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands()))
    if (!isa<comm::HandleType>(value.getType()))
      returned[rootOf(value).first].push_back(i);
  SmallVector<Value> dropped;
  for (auto [result, changed] : accumulators)
    if (auto argument = dyn_cast<BlockArgument>(changed)) {
      const SmallVector<unsigned, 1> as = returned.lookup(changed);
      if (as.size() != 1 ||
          (entry && nn::getStateArgument(function, as.front()) != argument.getArgNumber()))
        dropped.push_back(result);
    }
  for (Value result : dropped)
    accumulators.erase(result);
}

bool MemoryPlan::isSymmetric(Stored value) const {
  auto leader = shared.findLeader(value);
  return symmetric.contains(leader == shared.member_end() ? value : *leader);
}

void MemoryPlan::markSymmetric(Stored value) {
  auto leader = shared.findLeader(value);
  symmetric.insert(leader == shared.member_end() ? value : *leader);
}

void MemoryPlan::findParts() {
  for (Operation &op : block) {
    if (isReshape(&op) || partOf(&op))
      shared.unionSets({op.getResult(0), 0}, {op.getOperand(0), 0});
    for (Value result : op.getResults())
      if (Value changed = accumulatorOf(result))
        shared.unionSets({result, 0}, {changed, 0});
    if (auto wait = dyn_cast<comm::WaitOp>(op))
      for (auto [i, output] : llvm::enumerate(wait.getOutputs()))
        shared.unionSets({output, 0}, {wait.getHandle(), i});
  }
}

/// Whether the function decides where the value is defined: it is neither given nor a part of
/// another one.
bool MemoryPlan::mayHaveDestination(Stored root) const {
  Operation *producer = root.first.getDefiningOp();
  return producer && !isa<nn::ParameterOp>(producer) && !partOf(producer) &&
         !destinations.contains(root);
}

/// Whether values of this type along `dim` are contiguous in what they are joined to.
static bool isJoinedContiguously(RankedTensorType type, int64_t dim) {
  return llvm::all_of(type.getShape().take_front(static_cast<size_t>(dim)),
                      [](int64_t size) { return size == 1; });
}

void MemoryPlan::findJoins() {
  // What a call leaves in flight lies in contiguous memory, as all of its arguments.
  llvm::SmallPtrSet<Operation *, 4> contiguous;
  // Outer concatenations come later in the block, and an operand belongs to the first one.
  for (Operation &op : block)
    for (auto [i, part] : llvm::enumerate(joinedParts(&op))) {
      Stored root = rootOf(op.getOperand(i));
      if (!mayHaveDestination(root))
        continue;
      Operation *producer = root.first.getDefiningOp();
      const bool inFlight =
          isa<comm::HandleType>(root.first.getType()) && isa<func::CallOp>(producer);
      if (inFlight || contiguous.contains(producer)) {
        auto concat = dyn_cast<nn::ConcatOp>(op);
        const auto type = cast<RankedTensorType>(op.getOperand(i).getType());
        if (!concat || !isJoinedContiguously(type, concat.getDim()))
          continue;
        contiguous.insert(&op);
      }
      destinations[root] = {&op, static_cast<unsigned>(i)};
      shared.unionSets(root, {op.getResult(0), 0});
    }
}

void MemoryPlan::findSymmetric(const llvm::StringMap<Signature> &callees) {
  for (Operation &op : block) {
    if (auto start = dyn_cast<comm::StartOp>(op)) {
      for (Value input : start.getInputs())
        markSymmetric({input, 0});
      for (Stored output : flatten(start.getHandle()))
        markSymmetric(output);
    }
    if (auto call = dyn_cast<func::CallOp>(op)) {
      auto callee = callees.find(call.getCallee());
      if (callee == callees.end())
        continue; // the lowering of the call reports it
      for (auto [operand, needed] :
           llvm::zip_equal(flatten(call.getOperands()), callee->second.arguments))
        if (needed)
          markSymmetric(operand);
      for (auto [result, needed] :
           llvm::zip_equal(flatten(call.getResults()), callee->second.results))
        if (needed.symmetric)
          markSymmetric(result);
    }
  }
}

/// Whether the memory of a state can hold the value from its definition on.
bool MemoryPlan::mayReplaceState(BlockArgument state, Stored root) const {
  Operation *producer = root.first.getDefiningOp();
  if (!mayHaveDestination(root) || (isSymmetric(root) && !isSymmetric({state, 0})) ||
      !readsAtOnce(producer) || !isLastUse(state, producer))
    return false;
  auto launch = dyn_cast<rt::LaunchOp>(producer);
  for (auto [i, input] : llvm::enumerate(producer->getOperands()))
    if (input == state &&
        !(launch && launch.getKernelOp().canShare(i, cast<OpResult>(root.first).getResultNumber())))
      return false;
  return true;
}

void MemoryPlan::findResults() {
  const SmallVector<Stored> arguments = flatten(block.getArguments());
  for (auto [i, value] : llvm::enumerate(flatten(block.getTerminator()->getOperands()))) {
    bool isHandle = isa<comm::HandleType>(value.first.getType());
    Stored root = isHandle ? value : rootOf(value.first);
    SignatureResult &result = signature.results.emplace_back();
    if (std::optional<unsigned> state =
            entry ? nn::getStateArgument(function, i) : std::optional<unsigned>()) {
      result.argument = *state;
      if (mayReplaceState(block.getArgument(*state), root))
        destinations[root] = {nullptr, static_cast<unsigned>(i)};
      continue;
    }
    if (isa<BlockArgument>(root.first) &&
        llvm::any_of(accumulators, [&](auto entry) { return entry.second == root.first; })) {
      result.argument = static_cast<size_t>(llvm::find(arguments, root) - arguments.begin());
      result.symmetric = isSymmetric(root);
      continue;
    }
    if (!mayHaveDestination(root))
      continue;
    destinations[root] = {nullptr, static_cast<unsigned>(i)};
    result.symmetric = isSymmetric(root);
  }
}
