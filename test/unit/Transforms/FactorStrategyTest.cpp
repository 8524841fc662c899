//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Axes.h"

#include "lib/Transforms/Sharding/FactorStrategy.h"

using namespace braid;
using namespace braid::comm;
using namespace braid::test;

namespace {

struct Strategy : Axes {
  TensorState state(llvm::ArrayRef<int64_t> shape, const std::string &of, bool stated = true) {
    ShardingAttr attr = sharding(of);
    TensorState state;
    state.type = tensor(shape);
    state.dims = MeshLayouts(mesh).layout(attr);
    for (DimAttr dim : attr.getDims())
      state.closed.push_back(!dim.getOpen());
    state.stated = stated;
    return state;
  }
  FactorStrategy linear(int64_t rows, int64_t out, int64_t in, const std::string &x,
                        const std::string &w, const std::string &result = "{?}, {?}",
                        bool statedX = true) {
    rule = linearRule(rows, out, in);
    return {rule,
            {state({rows, in}, x, statedX), state({out, in}, w)},
            state({rows, out}, result, result != "{?}, {?}")};
  }

  ShardingRule rule;
};

TEST_F(Strategy, BytesToReshard) {
  auto bytes = [&](const std::string &from, const std::string &to, const std::string &sum = "") {
    return bytesToReshard(tensor({16, 32}), layout(from), list(sum), layout(to)).getValue();
  };
  EXPECT_EQ(bytes("{a}, {}", "{a}, {}"), 0);
  EXPECT_EQ(bytes("{}, {}", "{a}, {b}"), 0);
  EXPECT_EQ(bytes("{a}, {}", "{}, {}"), 512 * 3);           // all_gather of four shards of 512
  EXPECT_EQ(bytes("{a, b}, {}", "{a}, {}"), 256);           // only the minor axis
  EXPECT_EQ(bytes("{a, b}, {}", "{b}, {}"), 128 + 256 * 3); // in another order b moves as well
  EXPECT_EQ(bytes("{a}, {}", "{}, {a}"), 512 / 4 * 3);      // all_to_all
  EXPECT_EQ(bytes("{a}, {}", "{}, {b}"), 512 / 2 * 3);      // sliced first, then gathered
  EXPECT_EQ(bytes("{a}, {}", "{a:(1)2}, {a:(2)2}"), 256);   // half of each shard
  EXPECT_EQ(bytes("{}, {}", "{}, {}", "a"), 2048 / 4 * 3 * 2);
  EXPECT_EQ(bytes("{}, {}", "{a}, {}", "a"), 2048 / 4 * 3);
  EXPECT_EQ(bytes("{}, {}", "{b}, {}", "a"), 1024 / 4 * 3 * 2);
}

TEST_F(Strategy, NoConflictTakesAll) {
  FactorStrategy strategy = linear(16, 16, 32, "{b}, {c}", "{a}, {?}");
  EXPECT_EQ(text(strategy.agreed()), "{b}, {a}, {c}");
  FactorDecision decision = strategy.settled();
  EXPECT_EQ(text(decision.axes), "{b}, {a}, {c}");
  EXPECT_TRUE(decision.conflicts.empty());
}

TEST_F(Strategy, AgreedIsWhatNothingContradicts) {
  // For one factor the common prefix; for two factors the axes before the one that both request.
  rule = elementwiseRule(16, 16, 2);
  EXPECT_EQ(
      text(FactorStrategy(rule, {state({16, 16}, "{b, a}, {}"), state({16, 16}, "{b, c}, {}")},
                          state({16, 16}, "{?}, {?}"))
               .agreed()),
      "{b}, {}");
  EXPECT_EQ(text(FactorStrategy(rule, {state({16, 16}, "{b, a}, {}"), state({16, 16}, "{?}, {a}")},
                                state({16, 16}, "{?}, {?}"))
                     .agreed()),
            "{b}, {}");
  // Sub-axes that no common factorization contains are in conflict.
  rule = elementwiseRule(36, 36, 2);
  EXPECT_EQ(
      text(FactorStrategy(rule, {state({36, 36}, "{x:(1)2}, {}"), state({36, 36}, "{}, {x:(3)2}")},
                          state({36, 36}, "{?}, {?}"))
               .agreed()),
      "{}, {}");
}

TEST_F(Strategy, FewerBytesWin) {
  // Few rows and a large weight; many rows and a small weight.
  EXPECT_EQ(text(linear(4, 1024, 1024, "{a}, {}", "{}, {a}").settled().axes), "{}, {}, {a}");
  EXPECT_EQ(text(linear(4096, 16, 16, "{a}, {}", "{}, {a}").settled().axes), "{a}, {}, {}");
  EXPECT_EQ(text(linear(8, 1024, 16, "{a}, {}", "{a}, {}").settled().axes), "{}, {a}, {}");
  EXPECT_EQ(text(linear(1024, 8, 16, "{a}, {}", "{a}, {}").settled().axes), "{a}, {}, {}");
}

TEST_F(Strategy, SaysWhoWonAndWhatItCosts) {
  FactorDecision decision = linear(4, 1024, 1024, "{a}, {}", "{}, {a}").settled();
  ASSERT_EQ(decision.conflicts.size(), 1u);
  const FactorConflict &conflict = decision.conflicts[0];
  EXPECT_EQ(rule.factors[conflict.factor].name, "row");
  EXPECT_EQ(rule.factors[conflict.winnerFactor].name, "in");
  EXPECT_EQ(text(SubAxes{conflict.axis}), "a");
  EXPECT_EQ(conflict.tensor, 0u);
  EXPECT_EQ(conflict.winner, 1u);
  // An all_to_all of a row and an all_reduce of four, against an all_gather of three quarters of
  // the weight.
  EXPECT_EQ(conflict.bytes, 4096 / 4 * 3 + 2 * 4 * 4096 / 4 * 3);
  ASSERT_TRUE(conflict.others);
  EXPECT_EQ(*conflict.others, 1024 * 1024 * 3);
}

TEST_F(Strategy, EqualBytesGoToTheFirst) {
  rule = elementwiseRule(16, 16, 2);
  EXPECT_EQ(text(FactorStrategy(rule, {state({16, 16}, "{a}, {}"), state({16, 16}, "{}, {a}")},
                                state({16, 16}, "{?}, {?}"))
                     .settled()
                     .axes),
            "{a}, {}");
  EXPECT_EQ(text(FactorStrategy(rule, {state({16, 16}, "{}, {a}"), state({16, 16}, "{a}, {}")},
                                state({16, 16}, "{?}, {?}"))
                     .settled()
                     .axes),
            "{}, {a}");
}

TEST_F(Strategy, ClosedResultsDecide) {
  FactorStrategy strategy = linear(1024, 8, 16, "{a}, {}", "{b}, {}", "{}, {?}");
  EXPECT_EQ(text(strategy.settled().axes), "{}, {b}, {}");
  // Operands may be sharded as far as the results are.
  rule = elementwiseRule(16, 16, 1);
  EXPECT_EQ(text(FactorStrategy(rule, state({16, 16}, "{b, c}, {}"), state({16, 16}, "{b}, {?}"))
                     .settled()
                     .axes),
            "{b}, {}");
}

TEST_F(Strategy, WhatIsStatedGoesFirst) {
  // The rows have more bytes, but their sharding is only derived.
  FactorStrategy strategy =
      linear(4096, 16, 16, "{a, ?}, {?}", "{a}, {}", "{?}, {?}", /*statedX=*/false);
  EXPECT_EQ(text(strategy.settled().axes), "{}, {a}, {}");
}

TEST_F(Strategy, StatedSumsComeBeforeTheirResult) {
  // The result is sharded over a after the sum over a is complete, ...
  EXPECT_EQ(text(linear(16, 16, 16, "{b}, {?}", "{}, {a}", "{b, a}, {}").settled().axes),
            "{b}, {}, {a}");
  EXPECT_TRUE(linear(16, 16, 16, "{b}, {?}", "{}, {a}", "{b, a}, {}").settled().conflicts.empty());
  // ... but if the rows' sharding over a is stated, bytes decide.
  EXPECT_EQ(text(linear(4096, 16, 16, "{a}, {?}", "{}, {a}", "{a}, {}").settled().axes),
            "{a}, {}, {}");
  EXPECT_EQ(text(linear(4, 1024, 1024, "{a}, {?}", "{}, {a}", "{a}, {}").settled().axes),
            "{}, {}, {a}");
}

TEST_F(Strategy, StatedPartialsAreTheReduction) {
  rule = linearRule(16, 16, 16);
  FactorStrategy strategy(rule, {state({16, 16}, "{}, {b, c}"), state({16, 16}, "{}, {b, c}")},
                          state({16, 16}, "{c}, {}"), list("b"));
  EXPECT_EQ(text(strategy.settled().axes), "{c}, {}, {b}");
}

TEST_F(Strategy, FreeValuesCostAndAskForNothing) {
  rule = elementwiseRule(16, 16, 2);
  TensorState free = state({16, 16}, "{}, {a}");
  free.isFree = true;
  free.proposes = false;
  FactorDecision decision =
      FactorStrategy(rule, {free, state({16, 16}, "{a}, {}")}, state({16, 16}, "{?}, {?}"))
          .settled();
  EXPECT_EQ(text(decision.axes), "{a}, {}");
  EXPECT_TRUE(decision.conflicts.empty());
}

TEST_F(Strategy, ManyConflictsAreSettledToo) {
  // More axes than are tried in every order.
  setMesh("a = 2, b = 2, c = 2");
  rule = elementwiseRule(16, 16, 6);
  std::vector<TensorState> operands;
  for (const char *of : {"{a}, {b}", "{b}, {a}", "{c}, {a}", "{a}, {c}", "{b}, {c}", "{c}, {b}"})
    operands.push_back(state({16, 16}, of));
  FactorStrategy strategy(rule, operands, state({16, 16}, "{?}, {?}"));
  FactorDecision decision = strategy.settled();
  for (const TensorState &operand : operands) {
    EXPECT_LE(strategy.bytes(decision.axes).getValue(), strategy.bytes(operand.dims).getValue());
  }
}

} // namespace
