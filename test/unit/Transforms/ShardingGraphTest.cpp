//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Axes.h"

#include "lib/Transforms/Sharding/ShardingGraph.h"

using namespace braid;
using namespace braid::comm;
using namespace braid::test;

namespace {

struct Graph : Axes {
  int node(ShardingGraph &graph, llvm::ArrayRef<int64_t> shape, const std::string &stated = "") {
    return graph.addNode(tensor(shape), stated.empty() ? ShardingAttr() : sharding(stated),
                         /*fixed=*/false);
  }
  std::string dimsOf(const ShardingGraph &graph, int node) { return text(graph.nodes[node].dims); }
};

TEST_F(Graph, SpreadsBothWaysAndOverEqualities) {
  ShardingGraph graph(mesh);
  int x = node(graph, {8, 8}, "{a}, {?}"), y = node(graph, {8, 8}), r = node(graph, {8, 8}),
      out = node(graph, {8, 8}, "{?}, {b}");
  graph.addEquation({elementwiseRule(8, 8, 2), {x, y}, {r}, {}});
  graph.addEquality(r, out);
  graph.run();
  for (int id : {x, y, r, out})
    EXPECT_EQ(dimsOf(graph, id), "{a}, {b}");
}

TEST_F(Graph, ClosedAndFixedDimensionsTakeNothing) {
  ShardingGraph graph(mesh);
  int x = node(graph, {8, 8}, "{a}, {}"), r = node(graph, {8, 8}, "{?}, {b}");
  int fixed = graph.addNode(tensor({8, 8}), {}, /*fixed=*/true);
  graph.addEquation({elementwiseRule(8, 8, 2), {x, fixed}, {r}, {}});
  graph.run();
  EXPECT_EQ(dimsOf(graph, x), "{a}, {}");
  EXPECT_EQ(dimsOf(graph, fixed), "{}, {}");
  EXPECT_EQ(dimsOf(graph, r), "{a}, {b}");
}

TEST_F(Graph, OpenSubAxesGrow) {
  ShardingGraph graph(mesh);
  int x = node(graph, {8, 8}, "{a}, {}"), y = node(graph, {8, 8}, "{a:(1)2, ?}, {?}");
  graph.addEquality(x, y);
  graph.run();
  EXPECT_EQ(dimsOf(graph, y), "{a}, {}");
}

TEST_F(Graph, AnAxisInUseIsNotUsedAgain) {
  ShardingGraph graph(mesh);
  int x = node(graph, {36, 36}, "{x:(1)2}, {?}"), y = node(graph, {36, 36}, "{?}, {x:(3)2}"),
      z = node(graph, {36, 36}, "{?}, {x:(2)3}");
  graph.addEquality(x, y);
  graph.addEquality(x, z);
  graph.run();
  EXPECT_EQ(dimsOf(graph, y), "{}, {x:(3)2}");
  EXPECT_EQ(dimsOf(graph, z), "{x:(1)2}, {x:(2)3}");
}

TEST_F(Graph, ElementwiseGoesBeforeContractions) {
  // The result's sharding passes through the elementwise operations before that of the rows passes
  // through the matmul, which comes first.
  ShardingGraph graph(mesh);
  int x = node(graph, {8, 8}, "{a}, {?}"), w = node(graph, {8, 8}), matmul = node(graph, {8, 8}),
      r = node(graph, {8, 8}), out = node(graph, {8, 8}, "{}, {a}");
  graph.addEquation({linearRule(8, 8, 8), {x, w}, {matmul}, {}});
  graph.addEquation({elementwiseRule(8, 8, 1), {matmul}, {r}, {}});
  graph.addEquality(r, out);
  graph.run();
  EXPECT_EQ(dimsOf(graph, matmul), "{}, {a}");
}

TEST_F(Graph, BroadcastsTakeFromTheirResultFirst) {
  ShardingGraph graph(mesh);
  ShardingRule rule;
  TensorFactors all{{rule.addFactor("i", 8)}, {rule.addFactor("j", 8)}};
  rule.operands = {{all[0]}};
  rule.results = {all};
  int x = node(graph, {8}, "{a}"), r = node(graph, {8, 8}), out = node(graph, {8, 8}, "{}, {a}");
  graph.addEquation({rule, {x}, {r}, {}});
  graph.addEquality(r, out);
  graph.run();
  EXPECT_EQ(dimsOf(graph, r), "{}, {a}");
}

TEST_F(Graph, FreeValuesAskForNothing) {
  ShardingGraph graph(mesh);
  int constant = node(graph, {8, 8}), x = node(graph, {8, 8}, "{a}, {}"), r = node(graph, {8, 8}),
      y = node(graph, {8, 8}), s = node(graph, {8, 8});
  graph.nodes[constant].isFree = true;
  graph.addEquation({elementwiseRule(8, 8, 2), {x, constant}, {r}, {}});
  graph.addEquation({elementwiseRule(8, 8, 2), {y, constant}, {s}, {}});
  graph.run();
  EXPECT_EQ(dimsOf(graph, r), "{a}, {}");
  EXPECT_EQ(dimsOf(graph, s), "{}, {}");
}

TEST_F(Graph, VisitsWhatChangedOnly) {
  // A chain whose last value has a sharding: sweeps in order would need quadratically many visits.
  constexpr int kLength = 500;
  ShardingGraph graph(mesh);
  int first = node(graph, {8, 8}), last = first;
  for (int i = 0; i < kLength; ++i) {
    int next = i + 1 < kLength ? node(graph, {8, 8}) : node(graph, {8, 8}, "{a}, {}");
    graph.addEquation({elementwiseRule(8, 8, 1), {last}, {next}, {}});
    last = next;
  }
  graph.run();
  EXPECT_EQ(dimsOf(graph, first), "{a}, {}");
  // Three phases, and two visits for each change.
  EXPECT_LE(graph.visits, 6 * kLength);
}

} // namespace
