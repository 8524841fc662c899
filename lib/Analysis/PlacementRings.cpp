//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "PlacementRings.h"

#include "dialects/NN/IR/NN.h"

#include "llvm/ADT/Sequence.h"

#include <numeric>

using namespace mlir;
using namespace braid;
using namespace braid::comm;

namespace {

/// Of every position of a group, the position whose part it holds; kNothing where it holds zeros.
using Sources = std::vector<int64_t>;
constexpr int64_t kNothing = -1;

/// How parts travel in a permutation.
struct Travel {
  Value source;
  Sources from;
};

/// How the parts of a value travel that a permutation over the group gives, directly or by a wait.
std::optional<Travel> travelOf(Value value, GroupAttr group, int64_t ranks) {
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
  if (!permute || permute.getGroup() != group)
    return std::nullopt;
  Travel travel{source, Sources(static_cast<size_t>(ranks), kNothing)};
  ArrayRef<int64_t> pairs = permute.getPairs();
  for (size_t i = 0; i < pairs.size(); i += 2)
    travel.from[static_cast<size_t>(pairs[i + 1])] = pairs[i];
  return travel;
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
      if (!misplaced)
        misplaced = contradict(i, shift, block->sources);
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
  /// What is wrong with an operand's shift, where parts do not belong to the places that they are
  /// put to.
  std::optional<Contradiction> contradict(size_t operand, int64_t shift,
                                          const Sources &sources) const {
    auto place = [&](int64_t position) { return (((position + shift) % ranks) + ranks) % ranks; };
    const auto at = [&](int64_t position) { return sources[static_cast<size_t>(position)]; };
    const auto positions = llvm::seq<int64_t>(0, ranks);
    if (llvm::all_of(positions, [&](int64_t p) { return at(p) == place(p); }))
      return std::nullopt;
    const int64_t distance = at(0); // how far all parts have travelled, if they have together
    const bool rotated =
        llvm::all_of(positions, [&](int64_t p) { return at(p) == (p + distance) % ranks; });
    const std::string which = std::to_string(operand);
    if (rotated)
      return Contradiction{PlacementRule::Shift,
                           "expects shift " + std::to_string(distance == 0 ? 0 : distance - ranks) +
                               " of operand " + which +
                               ", as the part that a rank holds comes from there, got " +
                               std::to_string(shift),
                           "",
                           {}};
    const int64_t wrong = *llvm::find_if(positions, [&](int64_t p) { return at(p) != place(p); });
    return Contradiction{
        PlacementRule::Ring,
        "expects part " + std::to_string(place(wrong)) + " in operand " + which +
            " on the rank at position " + std::to_string(wrong) + ", got " +
            (at(wrong) == kNothing ? "zeros" : "part " + std::to_string(at(wrong))),
        at(wrong) == kNothing ? "no pair of a permutation on the way has this rank as its target"
                              : "",
        {}};
  }

  /// A value that is `formula` of the base's part sources[position] on each rank. `whole` is the
  /// placement of the formula of the whole base, and `parts` that of its parts where all else that
  /// the formula depends on is the same on the ranks of the group.
  struct Block {
    Sources sources;
    std::string formula;
    Placement whole, parts;
  };

  /// Finds the value that is rotated, under `value`. False if there are several.
  bool findBase(Value value) {
    if (isa<BlockArgument>(value))
      return true;
    if (std::optional<Travel> travel = travelOf(value, group, ranks)) {
      Value source = travel->source;
      while (std::optional<Travel> next =
                 isa<OpResult>(source) ? travelOf(source, group, ranks) : std::nullopt)
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
      Sources own(static_cast<size_t>(ranks));
      std::iota(own.begin(), own.end(), 0);
      return Block{std::move(own), "part", withoutGroup(held.front()), held.front()};
    }
    if (isa<BlockArgument>(value))
      return std::nullopt;
    if (std::optional<Travel> travel = travelOf(value, group, ranks)) {
      std::optional<Block> block = follow(travel->source);
      if (block)
        for (int64_t &from : travel->from)
          from = from == kNothing ? kNothing : block->sources[static_cast<size_t>(from)];
      if (block)
        block->sources = std::move(travel->from);
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
    for (Value operand : producer->getOperands()) {
      if (std::optional<Block> inner = follow(operand)) {
        if (!block.sources.empty() && block.sources != inner->sources)
          return std::nullopt;
        block.sources = inner->sources;
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
    if (block.sources.empty())
      return std::nullopt;
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
