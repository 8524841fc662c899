//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/HappensBefore.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace braid;

namespace {

/// A layer that starts a collective and hands it out, and one that waits for it.
constexpr const char *kAcrossCalls = R"(
  comm.mesh @mesh <tp = 2>
  rt.procedure @begin(%a: memref<4xf32, #rt.space<symmetric>>, %b: memref<4xf32, #rt.space<symmetric>> {rt.result}) -> !rt.event {
    %e = rt.record on compute
    rt.await %e on communication
    %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) over <@mesh, {tp}>
    rt.return %d : !rt.event
  }
  rt.procedure @end(%b: memref<4xf32>, %o: memref<4xf32> {rt.result}, %d: !rt.event) {
    rt.wait %d
    rt.copy ins(%b : memref<4xf32>) outs(%o : memref<4xf32>)
    rt.return
  }
  rt.procedure @main(%x: memref<4xf32>, %o: memref<4xf32> {rt.result}, %p: memref<4xf32> {rt.result}) {
    %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
    %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
    rt.copy ins(%x : memref<4xf32>) outs(%a : memref<4xf32, #rt.space<symmetric>>)
    %d = rt.call @begin(%a, %b) : memref<4xf32, #rt.space<symmetric>>, memref<4xf32, #rt.space<symmetric>> -> !rt.event
    rt.copy ins(%x : memref<4xf32>) outs(%p : memref<4xf32>)
    rt.call @end(%b, %o, %d) : memref<4xf32, #rt.space<symmetric>>, memref<4xf32>, !rt.event
    rt.return
  })";

struct Case {
  explicit Case(const char *text) {
    context.loadDialect<comm::CommDialect, rt::RTDialect>();
    module = parseSourceString<ModuleOp>(text, &context);
  }
  rt::ProcedureOp main() { return module->lookupSymbol<rt::ProcedureOp>("main"); }
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// The n-th command of a kind.
template <typename Op> const OrderedCommand &nth(const HappensBefore &order, size_t n) {
  for (const OrderedCommand &command : order.commands())
    if (isa<Op>(command.op) && n-- == 0)
      return command;
  llvm_unreachable("there are not so many");
}

TEST(HappensBefore, FollowsEventsAcrossCalls) {
  Case c(kAcrossCalls);
  ASSERT_TRUE(c.module);
  const HappensBefore order(c.main());
  ASSERT_EQ(order.queues().size(), 2U);
  const OrderedCommand &prepare = nth<rt::CopyOp>(order, 0), &beside = nth<rt::CopyOp>(order, 1),
                       &use = nth<rt::CopyOp>(order, 2), &start = nth<rt::StartOp>(order, 0);
  EXPECT_TRUE(prepare.isBefore(start));
  EXPECT_TRUE(start.isBefore(use));
  // What stands between the calls runs beside the collective.
  EXPECT_FALSE(start.isBefore(beside));
  EXPECT_FALSE(beside.isBefore(start));
  EXPECT_TRUE(start.isBefore(order.end()));
}

TEST(HappensBefore, NamesMemoryAsTheProcedureItselfDoes) {
  Case c(kAcrossCalls);
  ASSERT_TRUE(c.module);
  const HappensBefore order(c.main());
  SmallVector<rt::AllocOp> buffers(c.main().getBody().front().getOps<rt::AllocOp>());
  const OrderedCommand &start = nth<rt::StartOp>(order, 0);
  EXPECT_TRUE(isa<rt::CallOp>(start.top));
  ASSERT_EQ(start.uses.size(), 2U);
  EXPECT_TRUE(start.uses[0].region.root == buffers[0].getBuffer());
  EXPECT_TRUE(start.uses[0].reads && !start.uses[0].writes);
  EXPECT_TRUE(start.uses[1].region.root == buffers[1].getBuffer());
  EXPECT_TRUE(start.uses[1].writes && !start.uses[1].reads);
}

TEST(HappensBefore, ALifetimeEndsWhenItIsWaitedFor) {
  Case c(kAcrossCalls);
  ASSERT_TRUE(c.module);
  const HappensBefore order(c.main());
  const Lifetime start = nth<rt::StartOp>(order, 0).getLifetime(),
                 beside = nth<rt::CopyOp>(order, 1).getLifetime(),
                 use = nth<rt::CopyOp>(order, 2).getLifetime();
  EXPECT_FALSE(start.endsBefore(beside));
  EXPECT_TRUE(start.endsBefore(use));
  // It begins at what its queue awaited, not at its own place on the queue.
  EXPECT_TRUE(nth<rt::CopyOp>(order, 0).getLifetime().endsBefore(start));
  EXPECT_FALSE(beside.endsBefore(start));
}

/// The communication queue awaits the copy on one rank only.
TEST(HappensBefore, OrdersByWhatTheRankRuns) {
  Case c(R"(
  comm.mesh @mesh <pp = 3>
  rt.procedure @join(%e: !rt.event) {
    rt.await %e on communication
    rt.return
  }
  rt.procedure @main(%x: memref<4xf32>, %o: memref<4xf32, #rt.space<symmetric>>) {
    %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
    rt.copy ins(%x : memref<4xf32>) outs(%a : memref<4xf32, #rt.space<symmetric>>)
    %e = rt.record on compute
    rt.call @join(%e) {comm.on = #comm.place<@mesh, {pp = [1]}>} : !rt.event
    %d = rt.start send ins(%a : memref<4xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {pp}>
    rt.return
  })");
  ASSERT_TRUE(c.module);
  ASSERT_TRUE(succeeded(HappensBefore::checkSize(c.main())));
  // Ranks 0 and 2 run the same.
  EXPECT_EQ(HappensBefore::differingRanks(c.main()), (SmallVector<int64_t>{0, 1}));
  for (int64_t rank : {0, 1}) {
    const HappensBefore order(c.main(), rank);
    EXPECT_EQ(order.commands().size(), rank == 0 ? 4U : 5U);
    EXPECT_EQ(nth<rt::CopyOp>(order, 0).isBefore(nth<rt::StartOp>(order, 0)), rank == 1);
  }
}

TEST(HappensBefore, RefusesMoreCommandsThanItHolds) {
  std::string text = "rt.procedure @p0() {\n  %e = rt.record on compute\n  rt.return\n}\n";
  for (int i = 1; i <= 20; ++i)
    text += "rt.procedure @p" + std::to_string(i) + "() {\n  rt.call @p" + std::to_string(i - 1) +
            "()\n  rt.call @p" + std::to_string(i - 1) + "()\n  rt.return\n}\n";
  Case c(text.c_str());
  ASSERT_TRUE(c.module);
  ScopedDiagnosticHandler quiet(&c.context, [](Diagnostic &) { return success(); });
  // A return counts: p18 has 3 * 2^18 - 1 commands, and p19 more than 2^20.
  EXPECT_TRUE(succeeded(HappensBefore::checkSize(c.module->lookupSymbol<rt::ProcedureOp>("p18"))));
  EXPECT_TRUE(failed(HappensBefore::checkSize(c.module->lookupSymbol<rt::ProcedureOp>("p19"))));
}

} // namespace
