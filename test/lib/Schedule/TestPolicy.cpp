//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "TestPolicy.h"

#include "braid/Schedule/Placement.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace braid::schedule;

namespace braid::test {
namespace {

/// Waits for every collective right behind its start.
class BlockingPolicy : public PlacementPolicy {
public:
  Placement place(const Commands &commands) const override {
    Placement placement;
    for (auto [i, command] : llvm::enumerate(commands)) {
      if (!command.isCollective) {
        placement.push_back(Step::run(i));
        continue;
      }
      placement.push_back(Step::start(i));
      placement.push_back(Step::wait(i));
    }
    return placement;
  }
};

/// Computes as much as it can between start and wait: of the commands that may run next, those that
/// need no collective in flight come first, the most expensive one before the others.
class ListPolicy : public PlacementPolicy {
public:
  Placement place(const Commands &commands) const override {
    Placement placement;
    std::vector<bool> issued(commands.size()), done(commands.size());
    auto isReady = [&](size_t i, const std::vector<bool> &available) {
      const Command &command = commands[i];
      return !issued[i] && (!command.after || issued[*command.after]) &&
             llvm::all_of(command.needs, [&](unsigned need) { return available[need]; });
    };
    const size_t last = commands.size() - 1;
    while (!issued[last]) {
      std::optional<size_t> best;
      for (size_t i = 0; i < last; ++i) {
        if (!isReady(i, done))
          continue;
        if (!best || rank(commands[*best]) < rank(commands[i]))
          best = i;
      }
      if (best) {
        issued[*best] = true;
        done[*best] = !commands[*best].isCollective;
        placement.push_back(done[*best] ? Step::run(*best) : Step::start(*best));
        continue;
      }
      // Nothing else can run: the oldest collective in flight has to end.
      auto pending = llvm::find_if(llvm::seq<size_t>(0, last),
                                   [&](size_t i) { return issued[i] && !done[i]; });
      if (pending != llvm::seq<size_t>(0, last).end()) {
        done[*pending] = true;
        placement.push_back(Step::wait(*pending));
        continue;
      }
      issued[last] = true;
      placement.push_back(Step::run(last));
    }
    return placement;
  }

private:
  /// Collectives first, then by FLOPs.
  static std::pair<bool, SaturatingCount> rank(const Command &command) {
    return {command.isCollective, command.cost.flops};
  }
};

/// Wrong in one way each, by name.
class FaultyPolicy : public PlacementPolicy {
public:
  explicit FaultyPolicy(StringRef fault) : fault(fault.str()) {}

  Placement place(const Commands &commands) const override {
    Placement placement = BlockingPolicy().place(commands);
    auto isStart = [](const Step &step) { return step.kind == Step::Kind::start; };
    auto start = llvm::find_if(placement, isStart);
    if (fault == "no-wait")
      placement.erase(start + 1);
    else if (fault == "no-start")
      placement.erase(start);
    else if (fault == "early-use")
      std::rotate(start + 1, start + 2, start + 3);
    else if (fault == "twice")
      placement.insert(start, Step::run(start->command));
    else if (fault == "order")
      std::iter_swap(start, std::find_if(start + 1, placement.end(), isStart));
    else if (fault == "end")
      std::rotate(placement.begin(), placement.end() - 1, placement.end());
    else if (fault == "queue")
      start->queue = 8;
    else
      placement.push_back(Step::run(1000));
    return placement;
  }

private:
  std::string fault;
};

struct TestPlaceCollectives : PassWrapper<TestPlaceCollectives, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPlaceCollectives)
  TestPlaceCollectives() = default;
  TestPlaceCollectives(const TestPlaceCollectives &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-place-collectives"; }
  StringRef getDescription() const final { return "Place collectives by a policy of the tests"; }

  Option<std::string> policy{*this, "policy",
                             llvm::cl::desc("blocking, list, or the name of a fault")};

  void runOnOperation() final {
    std::unique_ptr<PlacementPolicy> chosen;
    if (policy == "blocking")
      chosen = std::make_unique<BlockingPolicy>();
    else if (policy == "list")
      chosen = std::make_unique<ListPolicy>();
    else
      chosen = std::make_unique<FaultyPolicy>(policy);
    if (failed(placeCollectives(getOperation(), *chosen)))
      signalPassFailure();
  }
};
} // namespace

void registerTestPolicyPass() { PassRegistration<TestPlaceCollectives>(); }

} // namespace braid::test
