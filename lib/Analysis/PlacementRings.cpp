//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "PlacementRings.h"

#include "dialects/NN/IR/NN.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

namespace {

/// How far parts travel: on every rank the value is that of the rank `distance` positions below.
struct Rotation {
  Value source;
  int64_t distance;
};

/// The source of a value that a rotation over the whole group gives, directly or by a wait.
std::optional<Rotation> rotationOf(Value value, GroupAttr group, int64_t ranks) {
  Operation *producer = value.getDefiningOp();
  auto permute = dyn_cast_or_null<PermuteOp>(producer);
  unsigned number = cast<OpResult>(value).getResultNumber();
  Value source;
  if (auto wait = dyn_cast_or_null<WaitOp>(producer)) {
    auto start = wait.getHandle().getDefiningOp<StartOp>();
    permute = start ? dyn_cast<PermuteOp>(*start.getCollective()) : PermuteOp();
    if (permute)
      source = start.getInputs()[number];
  } else if (permute) {
    source = producer->getOperand(number);
  }
  if (!permute || permute.getGroup() != group ||
      static_cast<int64_t>(permute.getPairs().size()) != 2 * ranks)
    return std::nullopt;
  std::optional<int64_t> distance;
  ArrayRef<int64_t> pairs = permute.getPairs();
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const int64_t travels = (pairs[i + 1] - pairs[i] + ranks) % ranks;
    if (distance.value_or(travels) != travels)
      return std::nullopt;
    distance = travels;
  }
  return Rotation{source, *distance};
}

class Ring {
public:
  Ring(const MeshLayouts &layouts, AssembleOp op, const FunctionContext &context)
      : layouts(layouts), op(op), context(context), group(op.getGroup()),
        axes(layouts.subAxes(group.getAxes())), ranks(groupSize(op, group)) {}

  std::optional<std::variant<Placements, Contradiction>> run() {
    for (Value operand : op.getInputs())
      if (!findBase(operand))
        return std::nullopt;
    if (!base)
      return std::nullopt;
    std::optional<Block> first;
    std::optional<Contradiction> misplaced;
    for (auto [i, operand, shift] : llvm::enumerate(op.getInputs(), op.getShifts())) {
      std::optional<Block> block = follow(operand);
      if (!block || (first && first->formula != block->formula))
        return std::nullopt;
      if (!misplaced && (block->shift - shift) % ranks != 0)
        misplaced = Contradiction{
            "expects shift " + std::to_string(block->shift) + " of operand " + std::to_string(i) +
                ", as the part that a rank holds comes from there, got " + std::to_string(shift),
            "",
            {}};
      if (!first)
        first = std::move(block);
    }
    if (misplaced)
      return std::variant<Placements, Contradiction>(*misplaced);
    // The parts of the base must be those along the dimension that is assembled.
    if (!cutByGroup(first->parts, op.getDim()))
      return std::nullopt;
    return std::variant<Placements, Contradiction>(Placements{first->whole});
  }

private:
  /// A value that is `formula` of the base's part (position + shift) mod ranks. `whole` is the
  /// placement of the formula of the whole base, and `parts` that of its parts where all else that
  /// the formula depends on is the same on the ranks of the group.
  struct Block {
    int64_t shift = 0;
    std::string formula;
    Placement whole, parts;
  };

  /// Finds the value that is rotated, under `value`. False if there are several.
  bool findBase(Value value) {
    if (isa<BlockArgument>(value))
      return true;
    if (std::optional<Rotation> rotation = rotationOf(value, group, ranks)) {
      Value source = rotation->source;
      while (std::optional<Rotation> next =
                 isa<OpResult>(source) ? rotationOf(source, group, ranks) : std::nullopt)
        source = next->source;
      if (base && base != source)
        return false;
      base = source;
      return true;
    }
    Operation *producer = value.getDefiningOp();
    if (!computes(producer))
      return true;
    return llvm::all_of(producer->getOperands(), [&](Value operand) { return findBase(operand); });
  }

  static bool computes(Operation *producer) {
    return !isa<StartOp, WaitOp, CollectiveOpInterface, AssembleOp, PartOp, nn::ParameterOp>(
               producer) &&
           !isa<CallOpInterface>(producer) && producer->getNumRegions() == 0;
  }

  bool cutByGroup(const Placement &placement, size_t dim) const {
    const SubAxes &cut = placement.dims[dim];
    return cut.size() >= axes.size() &&
           SubAxes(cut.end() - static_cast<std::ptrdiff_t>(axes.size()), cut.end()) == axes;
  }

  Placement withoutGroup(Placement placement) const {
    for (const SubAxis &axis : axes)
      placement.makeSame(axis);
    return placement;
  }

  std::optional<Block> follow(Value value) {
    if (value == base) {
      const Placements &held = context.values.at(value).front();
      if (held.size() != 1 || !held.front().varying.empty())
        return std::nullopt;
      return Block{0, "part", withoutGroup(held.front()), held.front()};
    }
    if (isa<BlockArgument>(value))
      return std::nullopt;
    if (std::optional<Rotation> rotation = rotationOf(value, group, ranks)) {
      std::optional<Block> block = follow(rotation->source);
      if (block)
        block->shift -= rotation->distance;
      return block;
    }
    Operation *producer = value.getDefiningOp();
    if (!computes(producer))
      return std::nullopt;
    return followComputation(producer, cast<OpResult>(value).getResultNumber());
  }

  std::optional<Block> followComputation(Operation *producer, unsigned result) {
    Block block;
    llvm::raw_string_ostream formula(block.formula);
    formula << producer->getName() << '#' << result;
    for (NamedAttribute attribute : producer->getAttrs())
      if (attribute.getName() != "role")
        formula << ' ' << attribute.getName() << '=' << attribute.getValue();
    std::vector<Placements> whole, parts;
    std::optional<int64_t> shift;
    for (Value operand : producer->getOperands()) {
      if (std::optional<Block> inner = follow(operand)) {
        if (shift.value_or(inner->shift) % ranks != inner->shift % ranks)
          return std::nullopt;
        shift = inner->shift;
        formula << " (" << inner->formula << ')';
        whole.push_back({inner->whole});
        parts.push_back({inner->parts});
        continue;
      }
      formula << ' ' << operand.getAsOpaquePointer();
      const Placements &held = context.values.at(operand).front();
      whole.push_back(held);
      parts.emplace_back();
      for (const Placement &placement : held)
        parts.back().push_back(withoutGroup(placement));
    }
    if (!shift)
      return std::nullopt;
    block.shift = *shift;
    for (auto [operands, placement] : {std::pair(&whole, &block.whole), {&parts, &block.parts}}) {
      Transfer transfer = transferComputation(layouts, producer, *operands, {});
      auto *results = std::get_if<ResultPlacements>(&transfer);
      if (!results || (*results)[result].size() != 1)
        return std::nullopt;
      *placement = (*results)[result].front();
    }
    return block;
  }

  const MeshLayouts &layouts;
  AssembleOp op;
  const FunctionContext &context;
  GroupAttr group;
  SubAxes axes;
  int64_t ranks;
  Value base; ///< the value whose parts travel
};

} // namespace

std::optional<std::variant<Placements, Contradiction>>
braid::assembledByRing(const MeshLayouts &layouts, AssembleOp op, const FunctionContext &context) {
  return Ring(layouts, op, context).run();
}

bool braid::isOfRing(Operation *op) {
  SmallVector<Operation *> pending(op->getUsers());
  llvm::SmallPtrSet<Operation *, 8> seen;
  if (pending.empty())
    return false;
  while (!pending.empty()) {
    Operation *user = pending.pop_back_val();
    if (isa<AssembleOp>(user) || !seen.insert(user).second)
      continue;
    if (user->getNumResults() == 0 || isa<StartOp, CollectiveOpInterface, CallOpInterface>(user) ||
        user->use_empty())
      return false;
    llvm::append_range(pending, user->getUsers());
  }
  return true;
}
