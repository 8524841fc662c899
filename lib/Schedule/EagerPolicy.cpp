//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Schedule/Placement.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace braid::schedule;

namespace {

class EagerPlacement {
public:
  explicit EagerPlacement(const Commands &commands)
      : commands(commands), started(commands.size()), available(commands.size()),
        waited(commands.size()), behind(commands.size()) {
    for (auto [i, command] : llvm::enumerate(commands))
      if (command.isCollective)
        collectives.push_back(static_cast<unsigned>(i));
    limitPrefetch();
  }

  Placement run() {
    startReady();
    for (auto [i, command] : llvm::enumerate(commands)) {
      if (!command.isCollective) {
        // Without a user a collective is over at the end of the block.
        if (i + 1 == commands.size())
          waitFor(collectives);
        waitFor(command.needs);
        placement.push_back(Step::run(i));
        started[i] = true;
      }
      available[i] = true;
      startReady();
    }
    return std::move(placement);
  }

private:
  /// Finds the commands behind which collectives on parameters start.
  void limitPrefetch() {
    auto isOnParameters = [&](unsigned i) {
      return commands[i].isCollective && !commands[i].needs.empty() &&
             llvm::all_of(commands[i].needs,
                          [&](unsigned need) { return commands[need].isParameter; });
    };
    std::optional<unsigned> lastRun, beforeUser; // before the last command that uses such results
    llvm::SmallDenseSet<unsigned> seen;          // collectives that have a user
    for (auto [i, command] : llvm::enumerate(commands)) {
      if (command.isCollective || command.isParameter)
        continue;
      bool uses = false;
      for (unsigned need : command.needs)
        if (isOnParameters(need)) {
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

  /// Collectives start in their order, so that only the next one may be ready.
  void startReady() {
    for (; next < collectives.size(); ++next) {
      const Command &command = commands[collectives[next]];
      if (command.after && !started[*command.after])
        return;
      if (behind[collectives[next]] && !started[*behind[collectives[next]]])
        return;
      if (!llvm::all_of(command.needs, [&](unsigned need) { return available[need]; }))
        return;
      waitFor(command.needs);
      placement.push_back(Step::start(collectives[next]));
      started[collectives[next]] = true;
    }
  }

  const Commands &commands;
  std::vector<bool> started, available, waited;
  std::vector<std::optional<unsigned>> behind; ///< collectives on parameters start behind these
  llvm::SmallVector<unsigned> collectives;
  size_t next = 0;
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
