//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where a value came to hold what it holds: the first operation on the way to it whose result does
// and none of whose operands does.
//
//===----------------------------------------------------------------------===//
#include "PlacementContext.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
namespace {

/// Whether some of the ranks along `axis` hold the value so.
bool holds(const MeshLayouts &layouts, const Placements &placements, const Blame &blame,
           AddendKind *kind) {
  Digits digits(layouts.sizes());
  digits.add(placements.front());
  digits.add(SubAxes{blame.axis});
  Placement placement = digits.split(placements.front());
  return llvm::any_of(digits.split(blame.axis), [&](const SubAxis &digit) {
    return placement.heldOn(digit, nullptr, kind) == blame.held;
  });
}

/// A value in a function; of a handle, the value of this number.
struct Place {
  Frame frame;
  Value value;
  size_t number = 0;
};

class Origin {
public:
  Origin(const MeshLayouts &layouts, const Blame &blame) : layouts(layouts), blame(blame) {}

  void note(InFlightDiagnostic &diag, const Frame &frame, Value value) {
    Place place{frame, value, 0};
    (void)holdsAt(place); // reads the kind of partial values
    while (std::optional<Place> earlier = before(place))
      place = *earlier;
    Operation *op = place.value.getDefiningOp();
    // Only a collective that made it so tells something.
    if (blame.held == Held::Same && !op)
      return;
    if (!op) {
      auto argument = cast<BlockArgument>(place.value);
      diag.attachNote(argument.getLoc())
          << what() << ", as argument " << argument.getArgNumber() << " of '"
          << place.frame.context->func.getSymName() << "' is declared";
      return;
    }
    if (auto wait = dyn_cast<WaitOp>(op))
      if (auto start = wait.getHandle().getDefiningOp<StartOp>())
        op = start.getCollective();
    if (blame.held == Held::Same && !isa<CollectiveOpInterface>(op))
      return;
    diag.attachNote(op->getLoc()) << what() << ", made here";
  }

private:
  std::string what() const {
    std::string on = nameOf(layouts, blame.axis);
    switch (blame.held) {
    case Held::Same:
      return "this is the same on all ranks of " + on;
    case Held::Part:
      return "this is in parts over " + on;
    case Held::Addend:
      return ("these are " + nameOfPartials(kind) + " over " + on).str();
    case Held::Varies:
      return "what the ranks of " + on + " hold differs, and nothing more is known of it";
    }
    llvm_unreachable("unknown placement");
  }

  bool holdsAt(const Place &place) {
    auto it = place.frame.context->values.find(place.value);
    return it != place.frame.context->values.end() && place.number < it->second.size() &&
           holds(layouts, it->second[place.number], blame, &kind);
  }

  /// The operand from which a value has what it holds; none where it does not come from one.
  std::optional<Place> before(const Place &place) {
    auto from = [&](const Frame &frame, Value value, size_t number = 0) -> std::optional<Place> {
      Place found{frame, value, number};
      return holdsAt(found) ? std::optional(found) : std::nullopt;
    };
    if (auto argument = dyn_cast<BlockArgument>(place.value)) {
      if (!place.frame.caller)
        return std::nullopt;
      return from(*place.frame.caller, place.frame.call->getOperand(argument.getArgNumber()),
                  place.number);
    }
    auto result = cast<OpResult>(place.value);
    Operation *op = result.getOwner();
    if (auto it = place.frame.context->callees.find(op); it != place.frame.context->callees.end()) {
      frames.push_back(std::make_unique<Frame>(place.frame));
      Frame inside{it->second, op, frames.back().get()};
      Operation *end = inside.context->func.getBody().front().getTerminator();
      return from(inside, end->getOperand(result.getResultNumber()), place.number);
    }
    if (auto wait = dyn_cast<WaitOp>(op)) {
      if (auto start = wait.getHandle().getDefiningOp<StartOp>())
        return fromCollective(place.frame, start.getCollective(), start->getOperands(),
                              result.getResultNumber());
      return from(place.frame, wait.getHandle(), result.getResultNumber());
    }
    if (auto start = dyn_cast<StartOp>(op))
      return fromCollective(place.frame, start.getCollective(), start->getOperands(), place.number);
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      return fromCollective(place.frame, collective, op->getOperands(), result.getResultNumber());
    // The same value is everywhere: only one that a collective made so is worth a note.
    if (blame.held == Held::Same && op->getNumOperands() != 1)
      return std::nullopt;
    for (Value operand : op->getOperands())
      if (std::optional<Place> found = from(place.frame, operand))
        return found;
    return std::nullopt;
  }

  std::optional<Place> fromCollective(const Frame &frame, CollectiveOpInterface op,
                                      OperandRange operands, size_t number) {
    SubAxes group = layouts.subAxes(op.getGroup().getAxes());
    if (number >= operands.size() || !isFree(group, blame.axis))
      return std::nullopt;
    Place found{frame, operands[number], 0};
    return holdsAt(found) ? std::optional(found) : std::nullopt;
  }

  const MeshLayouts &layouts;
  Blame blame;
  AddendKind kind = AddendKind::Sum; ///< of partial values
  std::vector<std::unique_ptr<Frame>> frames;
};

} // namespace

void noteOrigin(InFlightDiagnostic &diag, const MeshLayouts &layouts, const Frame &frame,
                Value value, const Blame &blame) {
  Origin(layouts, blame).note(diag, frame, value);
}

} // namespace braid
