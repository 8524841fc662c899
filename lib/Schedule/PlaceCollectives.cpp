//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Applies a policy's placement to the blocks of a module.
//
//===----------------------------------------------------------------------===//
#include "braid/Schedule/Placement.h"

#include "lib/Transforms/Collectives/CollectiveUtils.h"

using namespace mlir;
using namespace braid;
using namespace braid::schedule;

namespace {

/// Replaces a collective by a start and a wait at its place.
std::pair<comm::StartOp, comm::WaitOp> split(Operation *op) {
  OpBuilder builder(op);
  auto handle = comm::HandleType::get(op->getContext(), llvm::to_vector(op->getResultTypes()));
  auto start = comm::StartOp::create(builder, op->getLoc(), handle, op->getOperands());
  SmallVector<Location> locations(op->getNumOperands(), op->getLoc());
  Block *body = builder.createBlock(&start.getBody(), {}, op->getOperandTypes(), locations);
  builder.setInsertionPointAfter(start);
  auto wait = comm::WaitOp::create(builder, op->getLoc(), op->getResultTypes(), start.getHandle(),
                                   op->getOperands(), /*queue=*/IntegerAttr());
  op->replaceAllUsesWith(wait.getResults());
  op->moveBefore(body, body->end());
  op->setOperands(body->getArguments());
  builder.setInsertionPointToEnd(body);
  comm::YieldOp::create(builder, op->getLoc(), op->getResults());
  return {start, wait};
}

/// What the placement of one collective means.
struct Flight {
  CommandCost between; ///< commands from its start to its wait
  unsigned numBetween = 0;
  std::optional<unsigned> before; ///< the command that its start stands behind
  std::optional<unsigned> after;  ///< the command that its wait stands before
};

/// Whether `command` needs or comes after `other`.
bool dependsOn(const Command &command, unsigned other) {
  return llvm::is_contained(command.needs, other) || command.after == other;
}

Flight flightOf(const Commands &commands, const Placement &placement, unsigned collective) {
  Flight flight;
  bool started = false, over = false;
  for (const Step &step : placement) {
    if (step.command == collective) {
      over = step.kind == Step::Kind::wait;
      started = true;
    } else if (step.kind == Step::Kind::wait) {
      continue;
    } else if (over) {
      if (!flight.after && llvm::is_contained(commands[step.command].needs, collective))
        flight.after = step.command;
    } else if (!started) {
      if (dependsOn(commands[collective], step.command))
        flight.before = step.command;
    } else if (step.kind == Step::Kind::run && !commands[step.command].cost.isFree()) {
      flight.between += commands[step.command].cost;
      ++flight.numBetween;
    }
  }
  return flight;
}

/// "rt.launch @add", "nn.linear 'mlp.down'".
std::string nameOf(const Command &command) {
  Operation *op = command.ops.front();
  std::string name = op->getName().getStringRef().str();
  if (auto launch = dyn_cast<rt::LaunchOp>(op))
    return name + " @" + launch.getKernel().str();
  if (auto call = dyn_cast<func::CallOp>(op))
    return name + " @" + call.getCallee().str();
  if (auto role = op->getAttrOfType<StringAttr>("role"))
    return name + " '" + role.str() + "'";
  return name;
}

void remarkFlight(Operation *op, const Commands &commands, unsigned collective,
                  const Flight &flight) {
  if (flight.numBetween > 0) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << flight.numBetween << (flight.numBetween == 1 ? " command" : " commands")
       << " between start and wait: " << flight.between.flops << " FLOPs, " << flight.between.bytes
       << " bytes of memory";
    if (flight.between.bytesSent != 0)
      os << ", " << flight.between.bytesSent << " bytes sent";
    return remarkDone(op, "Overlap", text);
  }
  std::string from = "its operands are there at the block's begin", to = "the block ends then";
  if (flight.before) {
    const Command &before = commands[*flight.before];
    from = nameOf(before) + (llvm::is_contained(commands[collective].needs, *flight.before)
                                 ? " gives its operand"
                                 : " communicates before it");
  }
  if (flight.after)
    to = nameOf(commands[*flight.after]) + " needs its result";
  remarkMissed(op, "NoOverlap",
               "nothing to compute between start and wait: " + from + ", and " + to);
}

class BlockPlacer {
public:
  BlockPlacer(ModuleOp module, const PlacementPolicy &policy)
      : communication(module), policy(policy) {}

  /// Returns the number of collectives.
  FailureOr<unsigned> run(Block &block) {
    Commands commands = commandsOf(block, communication, &costs);
    Placement placement = policy.place(commands);
    std::string error;
    if (!isLegal(commands, placement, error))
      return block.getParentOp()->emitOpError("gets a placement in which ") << error;
    for (auto [i, command] : llvm::enumerate(commands))
      if (command.isCollective)
        remarkFlight(command.ops.front(), commands, i, flightOf(commands, placement, i));

    unsigned numStarted = 0;
    SmallVector<std::pair<comm::StartOp, comm::WaitOp>> pairs(commands.size());
    for (auto [i, command] : llvm::enumerate(commands))
      if (command.isCollective) {
        pairs[i] = split(command.ops.front());
        ++numStarted;
      }
    for (const Step &step : placement) {
      auto [start, wait] = pairs[step.command];
      switch (step.kind) {
      case Step::Kind::run:
        for (Operation *op : commands[step.command].ops)
          op->moveBefore(&block, block.end());
        break;
      case Step::Kind::start:
        start.setQueue(step.queue);
        start->moveBefore(&block, block.end());
        break;
      case Step::Kind::wait:
        wait->moveBefore(&block, block.end());
        break;
      }
    }
    return numStarted;
  }

private:
  Communication communication;
  CommandCosts costs;
  const PlacementPolicy &policy;
};

} // namespace

FailureOr<unsigned> schedule::placeCollectives(ModuleOp module, const PlacementPolicy &policy) {
  llvm::SetVector<Block *> blocks;
  for (auto collective : collectivesIn<comm::CollectiveOpInterface>(module))
    blocks.insert(collective->getBlock());
  BlockPlacer placer(module, policy);
  unsigned numStarted = 0;
  for (Block *block : blocks) {
    FailureOr<unsigned> number = placer.run(*block);
    if (failed(number))
      return failure();
    numStarted += *number;
  }
  return numStarted;
}
