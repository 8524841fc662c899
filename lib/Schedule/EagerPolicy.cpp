//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Schedule/Placement.h"
#include "dialects/NN/IR/NN.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace braid::schedule;

namespace {

class EagerPlacement {
public:
  explicit EagerPlacement(const Commands &commands)
      : commands(commands), started(commands.size()), available(commands.size()),
        waited(commands.size()), behind(commands.size()) {
    for (auto [i, command] : llvm::enumerate(commands)) {
      if (command.isCollective)
        collectives[command.isParameterGather].push_back(static_cast<unsigned>(i));
      if (command.communicates && !command.isParameterGather)
        gatherQueue = 1;
    }
    limitPrefetch();
  }

  Placement run() {
    startReady(0);
    for (auto [i, command] : llvm::enumerate(commands)) {
      if (!command.isCollective && !started[i]) {
        // Without a user a collective is over at the end of the block.
        if (i + 1 == commands.size())
          for (llvm::ArrayRef<unsigned> left : collectives)
            waitFor(left);
        waitFor(command.needs);
        placement.push_back(Step::run(i));
        started[i] = true;
      }
      available[i] = true;
      startReady(i + 1);
    }
    return std::move(placement);
  }

private:
  static bool isParameter(const Command &command) {
    return llvm::isa<braid::nn::ParameterOp>(command.ops.front());
  }

  /// Finds the commands behind which gathers of parameters start.
  void limitPrefetch() {
    std::optional<unsigned> lastRun, beforeUser; // before the last command that uses such results
    llvm::SmallDenseSet<unsigned> seen;          // collectives that have a user
    for (auto [i, command] : llvm::enumerate(commands)) {
      if (command.isCollective || isParameter(command))
        continue;
      bool uses = false;
      for (unsigned need : command.needs)
        if (commands[need].isParameterGather) {
          uses = true;
          if (!seen.insert(need).second)
            continue;
          // None starts later than where it stands, so that nothing waits for a start.
          if (beforeUser && *beforeUser < need)
            behind[need] = beforeUser;
        }
      if (uses)
        beforeUser = lastRun;
      lastRun = static_cast<unsigned>(i);
    }
  }

  void waitFor(llvm::ArrayRef<unsigned> needs) {
    for (unsigned need : needs)
      if (commands[need].isCollective && !waited[need]) {
        placement.push_back(Step::wait(need));
        waited[need] = true;
      }
  }

  /// Those of a kind start in their order.
  void startReady(size_t place) {
    auto startAll = [&](bool gathers) {
      for (size_t &n = next[gathers]; n < collectives[gathers].size(); ++n)
        if (!start(collectives[gathers][n], gathers ? gatherQueue : 0))
          break;
    };
    startAll(false);
    // Parameters that stand together keep their order.
    if (place == commands.size() || !isParameter(commands[place]))
      startAll(true);
  }

  /// False when the collective cannot start yet.
  bool start(unsigned collective, int64_t queue) {
    const Command &command = commands[collective];
    auto isOver = [&](std::optional<unsigned> other) { return !other || started[*other]; };
    if (!isOver(command.after) || !isOver(behind[collective]))
      return false;
    for (unsigned need : command.needs)
      if (!available[need] && !command.isParameterGather)
        return false;
    for (unsigned need : command.needs)
      if (!available[need]) { // a parameter may stand anywhere
        placement.push_back(Step::run(need));
        started[need] = available[need] = true;
      }
    waitFor(command.needs);
    placement.push_back(Step::start(collective, queue));
    started[collective] = true;
    return true;
  }

  const Commands &commands;
  std::vector<bool> started, available, waited;
  std::vector<std::optional<unsigned>> behind; ///< gathers of parameters start behind these
  /// By whether they are gathers of parameters.
  std::array<llvm::SmallVector<unsigned>, 2> collectives;
  std::array<size_t, 2> next = {};
  int64_t gatherQueue = 0;
  Placement placement;
};

} // namespace

Placement EagerPolicy::place(const Commands &commands) const {
  return EagerPlacement(commands).run();
}

std::unique_ptr<PlacementPolicy> braid::schedule::findPolicy(llvm::StringRef name) {
  if (name == "eager")
    return std::make_unique<EagerPolicy>();
  return nullptr;
}
