//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Schedule/Placement.h"

#include "llvm/ADT/STLExtras.h"

using namespace braid::schedule;

namespace {

class EagerPlacement {
public:
  explicit EagerPlacement(const Commands &commands)
      : commands(commands), started(commands.size()), available(commands.size()),
        waited(commands.size()) {
    for (auto [i, command] : llvm::enumerate(commands))
      if (command.isCollective)
        collectives.push_back(static_cast<unsigned>(i));
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
      if (!llvm::all_of(command.needs, [&](unsigned need) { return available[need]; }))
        return;
      waitFor(command.needs);
      placement.push_back(Step::start(collectives[next]));
      started[collectives[next]] = true;
    }
  }

  const Commands &commands;
  std::vector<bool> started, available, waited;
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
