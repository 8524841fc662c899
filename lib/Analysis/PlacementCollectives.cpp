//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What collectives make of placements. A collective changes what ranks hold and leaves the global
// value as it is; where it would change the value too (a second sum), it contradicts its operand.
//
//===----------------------------------------------------------------------===//
#include "PlacementTransfer.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
namespace {

int64_t sizeOfDim(Value value, size_t dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

/// One collective on one of its values, in one placement.
class Exchange {
public:
  Exchange(const MeshLayouts &layouts, GroupAttr over, Value input, unsigned number)
      : layouts(layouts), over(layouts.subAxes(over.getAxes())), input(input), number(number) {}

  /// Splits the placement and the group into common digits.
  void begin(const Placement &of, bool primes) {
    Digits digits(layouts.sizes());
    digits.add(of);
    digits.add(over);
    if (primes)
      digits.addPrimes();
    placement = digits.split(of);
    group = digits.split(over);
  }

  std::optional<Contradiction> reduce(ReduceKind kind);
  std::optional<Contradiction> gather(size_t dim);
  std::optional<Contradiction> turn(size_t split, size_t concat);
  std::optional<Contradiction> slice(size_t dim);
  std::optional<Contradiction> broadcast();
  void permute(ArrayRef<int64_t> pairs);
  void appendTo(size_t dim) {
    if (!placement.uniform[dim])
      llvm::append_range(placement.dims[dim], group);
  }
  void vary() {
    for (const SubAxis &axis : group)
      placement.makeVarying(axis);
  }

  Placement placement;
  SubAxes group; ///< digits, major first

private:
  bool anyVaries() const {
    return llvm::any_of(
        group, [&](const SubAxis &axis) { return placement.heldOn(axis) == Held::Varies; });
  }
  std::string on(const SubAxis &axis) const { return nameOf(layouts, axis); }
  Contradiction contradiction(PlacementRule rule, const Twine &expected, const SubAxis &axis,
                              const Twine &note = "") {
    return {rule,
            ("expects " + expected + " over " + on(axis) + ", got " + describeHeld(placement, axis))
                .str(),
            note.str(),
            {{number, axis, placement.heldOn(axis)}}};
  }
  bool permutedParts(ArrayRef<int64_t> pairs);

  const MeshLayouts &layouts;
  SubAxes over;
  Value input;
  unsigned number;
};

std::optional<Contradiction> Exchange::reduce(ReduceKind kind) {
  const AddendKind wanted = kindOf(kind);
  for (const SubAxis &axis : group) {
    AddendKind held = wanted;
    size_t dim = 0;
    switch (placement.heldOn(axis, &dim, &held)) {
    case Held::Same:
      if (kind == ReduceKind::Sum)
        return contradiction(PlacementRule::SumOnce, nameOfPartials(wanted), axis,
                             "the sum has it " + Twine(axis.size()) + " times");
      break; // the maximum of equal values is their value
    case Held::Part:
      // Ranks that have one index each add up a dimension.
      if (sizeOfDim(input, dim) != 1)
        return contradiction(PlacementRule::SumParts, nameOfPartials(wanted), axis);
      break;
    case Held::Addend:
      // The largest of the logarithms is what they may be made relative to.
      if (held != wanted && !(held == AddendKind::LogSum && wanted == AddendKind::Max))
        return contradiction(PlacementRule::ReduceKind, nameOfPartials(wanted), axis);
      break;
    case Held::Varies:
      break;
    }
  }
  for (const SubAxis &axis : group)
    placement.makeSame(axis);
  return std::nullopt;
}

std::optional<Contradiction> Exchange::gather(size_t dim) {
  SubAxes parts;
  for (const SubAxis &axis : group) {
    size_t held = dim;
    switch (placement.heldOn(axis, &held)) {
    case Held::Same:
      if (placement.uniform[dim])
        break;
      return contradiction(PlacementRule::GatherOnce, "parts along dimension " + Twine(dim), axis,
                           "the result has it " + Twine(axis.size()) + " times");
    case Held::Part:
      if (held != dim)
        return contradiction(PlacementRule::GatherDim, "parts along dimension " + Twine(dim), axis);
      parts.push_back(axis);
      break;
    case Held::Addend:
      // Side by side along a dimension of size 1, partial sums may be added later.
      if (sizeOfDim(input, dim) != 1)
        return contradiction(PlacementRule::GatherSums, "parts along dimension " + Twine(dim),
                             axis);
      break;
    case Held::Varies:
      break;
    }
  }
  ArrayRef<SubAxis> cut = placement.dims[dim];
  if (cut.size() < parts.size() || cut.take_back(parts.size()) != ArrayRef(parts)) {
    std::string order;
    for (const SubAxis &axis : mergeSubAxes(placement.dims[dim]))
      order += (order.empty() ? "" : ", ") + on(axis);
    return Contradiction{PlacementRule::GatherAxes,
                         "expects the minor axes of dimension " + std::to_string(dim) +
                             ", in their order, got a dimension in parts over " + order,
                         "",
                         {{number, parts.front(), Held::Part}}};
  }
  for (const SubAxis &axis : group)
    placement.makeSame(axis);
  return std::nullopt;
}

std::optional<Contradiction> Exchange::turn(size_t split, size_t concat) {
  bool varies = anyVaries() || split == concat;
  if (std::optional<Contradiction> found = gather(concat))
    return found;
  if (varies)
    vary();
  else
    appendTo(split);
  return std::nullopt;
}

std::optional<Contradiction> Exchange::slice(size_t dim) {
  for (const SubAxis &axis : group) {
    Held held = placement.heldOn(axis);
    if (held == Held::Part || held == Held::Addend)
      return contradiction(PlacementRule::TakePart, "the same value", axis);
  }
  if (anyVaries())
    vary();
  else
    appendTo(dim);
  return std::nullopt;
}

std::optional<Contradiction> Exchange::broadcast() {
  for (const SubAxis &axis : group)
    if (placement.heldOn(axis) == Held::Addend)
      return contradiction(PlacementRule::OneRank, "the value of one rank", axis,
                           "the other partial sums are lost");
  for (const SubAxis &axis : group)
    placement.makeSame(axis);
  return std::nullopt;
}

/// The coordinate along `axis` of a position in a group over `axes`, one of which contains it.
int64_t coordinateOf(int64_t position, const SubAxis &axis, const SubAxes &axes) {
  int64_t minor = 1;
  for (const SubAxis &other : llvm::reverse(axes)) {
    if (other.contains(axis))
      return position / minor % other.size() / (other.end / axis.end) % axis.size();
    minor *= other.size();
  }
  llvm_unreachable("expects an axis of the group");
}

/// The sub-axes, major first, along which the ranks of a group have these coordinates: `numbers`,
/// by position, of `count` each. None where these are no coordinates.
std::optional<SubAxes> axesOfNumbers(ArrayRef<int64_t> numbers, int64_t count,
                                     const SubAxes &axes) {
  if (count == 1)
    return SubAxes();
  for (const SubAxis &axis : axes)
    for (int64_t begin : divisors(axis.size()))
      for (int64_t p : primeFactors(axis.size() / begin)) {
        SubAxis digit{axis.axis, axis.begin * begin, axis.begin * begin * p};
        if (count % p != 0 || !axis.contains(digit))
          continue;
        std::vector<int64_t> minor;
        for (auto [position, number] : llvm::enumerate(numbers)) {
          if (number / (count / p) != coordinateOf(static_cast<int64_t>(position), digit, axes))
            break;
          minor.push_back(number % (count / p));
        }
        if (minor.size() != numbers.size())
          continue;
        if (std::optional<SubAxes> rest = axesOfNumbers(minor, count / p, axes)) {
          rest->insert(rest->begin(), digit);
          return rest;
        }
      }
  return std::nullopt;
}

/// The axes that cut the value after the exchange, if its parts are again blocks then: the numbers
/// of the parts that ranks receive must be their coordinates, along any sub-axes.
bool Exchange::permutedParts(ArrayRef<int64_t> pairs) {
  SubAxes axes = mergeSubAxes(over);
  Layout after;
  SubAxes used;
  for (const SubAxes &dim : placement.dims) {
    after.emplace_back();
    for (size_t begin = 0; begin < dim.size();) {
      size_t end = begin;
      while (end < dim.size() && llvm::is_contained(group, dim[end]))
        ++end;
      if (end == begin) {
        after.back().push_back(dim[begin++]);
        continue;
      }
      std::vector<int64_t> numbers(pairs.size() / 2);
      int64_t count = 1;
      for (; begin < end; ++begin) {
        count *= dim[begin].size();
        for (size_t i = 0; i < pairs.size(); i += 2) {
          int64_t &number = numbers[static_cast<size_t>(pairs[i + 1])];
          number = number * dim[begin].size() + coordinateOf(pairs[i], dim[begin], axes);
        }
      }
      std::optional<SubAxes> received = axesOfNumbers(numbers, count, axes);
      if (!received)
        return false;
      for (const SubAxis &axis : *received) {
        if (!isFree(used, axis))
          return false;
        used.push_back(axis);
        after.back().push_back(axis);
      }
    }
  }
  placement.dims = std::move(after);
  return true;
}

void Exchange::permute(ArrayRef<int64_t> pairs) {
  // A rank that is no target has zeros.
  bool all = static_cast<int64_t>(pairs.size()) == 2 * shards(group);
  auto allHold = [&](Held held) {
    return llvm::all_of(group, [&](const SubAxis &axis) { return placement.heldOn(axis) == held; });
  };
  if (all && (allHold(Held::Same) || allHold(Held::Addend)))
    return;
  bool parts = llvm::all_of(group, [&](const SubAxis &axis) {
    Held held = placement.heldOn(axis);
    return held == Held::Same || held == Held::Part;
  });
  if (!all || !parts || !permutedParts(pairs))
    vary();
}

/// Applies the collective to a value in one placement.
std::optional<Contradiction> apply(CollectiveOpInterface op, Exchange &exchange) {
  using Found = std::optional<Contradiction>;
  return llvm::TypeSwitch<Operation *, Found>(op)
      .Case<AllReduceOp>([&](auto o) { return exchange.reduce(o.getKind()); })
      .Case<ReduceScatterOp>([&](auto o) {
        Found found = exchange.reduce(o.getKind());
        if (!found)
          exchange.appendTo(o.getDim());
        return found;
      })
      .Case<AllGatherOp>([&](auto o) { return exchange.gather(o.getDim()); })
      .Case<AllToAllOp>([&](auto o) { return exchange.turn(o.getSplitDim(), o.getConcatDim()); })
      .Case<BroadcastOp>([&](auto) { return exchange.broadcast(); })
      .Case<ReduceOp>([&](auto o) {
        Found found = exchange.reduce(o.getKind());
        if (!found) // ranks other than the root have zeros
          exchange.vary();
        return found;
      })
      .Case<PermuteOp>([&](auto o) {
        exchange.permute(o.getPairs());
        return Found();
      })
      .Default([&](Operation *) { // counts tell which rows travel
        exchange.vary();
        return Found();
      });
}

void insert(Placements &all, Placement placement) {
  placement.normalize();
  if (!llvm::is_contained(all, placement))
    all.push_back(std::move(placement));
}

/// Applies an exchange to each description of a value. One that contradicts it does not describe
/// the value; if all do, `after` is empty and the first contradiction is returned.
std::optional<Contradiction> applyToAll(Exchange &exchange, const Placements &before, bool primes,
                                        llvm::function_ref<std::optional<Contradiction>()> change,
                                        Placements &after) {
  std::optional<Contradiction> first;
  for (const Placement &placement : before) {
    exchange.begin(placement, primes);
    std::optional<Contradiction> found = change();
    if (!found)
      insert(after, exchange.placement);
    else if (!first)
      first = std::move(found);
  }
  return after.empty() ? first : std::nullopt;
}

} // namespace

Transfer transferCollective(const MeshLayouts &layouts, CollectiveOpInterface op,
                            ArrayRef<Placements> inputs) {
  ResultPlacements results;
  for (auto [i, placements] : llvm::enumerate(inputs)) {
    // The counts of an all_to_all_v are the last of its inputs and of its results.
    Exchange exchange(layouts, op.getGroup(), op.getInputs()[i], static_cast<unsigned>(i));
    Placements after;
    auto change = [&] { return apply(op, exchange); };
    if (auto found = applyToAll(exchange, placements, isa<PermuteOp>(op), change, after))
      return *found;
    results.push_back(std::move(after));
  }
  if (auto counted = dyn_cast<AllToAllVOp>(*op)) {
    // Where the counts differ, so do the rows.
    Digits digits(layouts.sizes());
    for (const Placements &placements : results)
      digits.add(placements.front());
    Placement counts = digits.split(results.back().front());
    for (Placements &placements : results) {
      Placement value = digits.split(placements.front());
      auto vary = [&](const SubAxis &axis) { value.makeVarying(axis); };
      for (const SubAxes &dim : counts.dims)
        llvm::for_each(SubAxes(dim), vary);
      for (const SubAxis &axis : counts.varying)
        vary(axis);
      value.normalize();
      placements = {value};
    }
  }
  return results;
}

Transfer transferSlice(const MeshLayouts &layouts, PartOp op, const Placements &input) {
  Exchange exchange(layouts, op.getGroup(), op.getInput(), 0);
  Placements after;
  auto change = [&] { return exchange.slice(op.getDim()); };
  if (auto found = applyToAll(exchange, input, /*primes=*/false, change, after))
    return *found;
  return ResultPlacements{after};
}

} // namespace braid
