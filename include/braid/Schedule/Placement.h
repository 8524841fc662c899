//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where collectives start, where they are waited for, and on which queue they run: the problem of
// one block, and the interface of the policies that solve it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SCHEDULE_PLACEMENT_H
#define BRAID_SCHEDULE_PLACEMENT_H

#include "braid/Schedule/CommandCost.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <optional>

namespace braid::schedule {

/// Operations that the program runs as one: a matmul with the addition of its bias, otherwise one.
struct Command {
  llvm::SmallVector<mlir::Operation *, 2> ops;
  CommandCost cost;
  /// Whether it becomes a start and a wait. All other commands, calls among them, run at one place.
  bool isCollective = false;
  /// An all_gather of parameters, as of weights that are stored cut. Its operands are there before
  /// the block begins.
  bool isParameterGather = false;
  /// It communicates, as collectives and calls of functions with collectives do.
  bool communicates = false;
  /// The commands before it whose results it reads, by index, ascending. Of a collective that is
  /// among them the result exists after its wait.
  llvm::SmallVector<unsigned> needs;
  /// The command that has to be run or started before: the last one before it that communicates.
  /// All ranks thereby start their collectives in one order. Of a gather of parameters it is
  /// the last other one: no value orders it behind anything else.
  std::optional<unsigned> after;
};

/// The commands of a block, in its order. The last one is its terminator.
using Commands = std::vector<Command>;

/// An entry of a placement.
struct Step {
  enum class Kind { run, start, wait };
  Kind kind = Kind::run;
  unsigned command = 0;
  int64_t queue = 0; ///< of a start: the index of the communication queue

  static Step run(unsigned command) { return {Kind::run, command, 0}; }
  static Step start(unsigned command, int64_t queue = 0) { return {Kind::start, command, queue}; }
  static Step wait(unsigned command) { return {Kind::wait, command, 0}; }
};
using Placement = std::vector<Step>;

/// Decides the placement of a block's commands.
class PlacementPolicy {
public:
  virtual ~PlacementPolicy() = default;
  /// Runs every command once, or starts it and waits for it if it is a collective, such that every
  /// command stands behind those that it needs and the one that it comes after.
  virtual Placement place(const Commands &commands) const = 0;
};

/// Starts every collective as early and waits for it as late as dependences and the order of
/// communication allow. The order of all other commands does not change, and a result that
/// another collective takes is not waited for before its own collective's place in the block.
///
/// Gathers of parameters take these along, and run on queue 1, where they hold up no other
/// communication, unless there is no other. All of them could start at the block's begin, and their
/// results would need the memory of the whole model. So one starts no earlier than before the last
/// command ahead of its own user that uses such a result, and no later than where it stands: the
/// weights of one layer are gathered while the layer before it computes.
class EagerPolicy : public PlacementPolicy {
public:
  Placement place(const Commands &commands) const override;
};

/// The policy of this name ("eager"); null when there is none.
std::unique_ptr<PlacementPolicy> findPolicy(llvm::StringRef name);

/// Operations that communicate, calls of functions that do included.
class Communication {
public:
  explicit Communication(mlir::ModuleOp module);
  bool contains(mlir::Operation *op) const;

private:
  bool isWithin(mlir::Operation *op) const;

  llvm::DenseSet<mlir::Operation *> silent; ///< functions that start no communication
};

/// The commands of a block; without `costs` all are free.
Commands commandsOf(mlir::Block &block, const Communication &communication,
                    CommandCosts *costs = nullptr);

/// Whether the placement is one of these commands; otherwise `error` says what is wrong.
bool isLegal(const Commands &commands, const Placement &placement, std::string &error);

/// Replaces all collectives of a module by starts and waits, placed by the policy, block by block.
/// Returns their number. A placement that is not legal is an error on the block's operation.
/// Remarks of category `communication` tell what each collective overlaps with.
mlir::FailureOr<unsigned> placeCollectives(mlir::ModuleOp module, const PlacementPolicy &policy);

} // namespace braid::schedule
#endif // BRAID_SCHEDULE_PLACEMENT_H
