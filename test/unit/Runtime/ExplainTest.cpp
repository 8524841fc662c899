//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Explain.h"
#include "ProgramBuilder.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

constexpr DType f32 = DType::f32;

/// y = layer(layer(x)); a layer is an all_reduce over tp.
BundleContents twoLayerContents() {
  ProgramBuilder b({{"dp", 2}, {"tp", 2}});
  b.operand("x", f32, {8, 16}, {{"dp"}, {}});
  b.result("y", f32, {8, 16}, {{"dp"}, {}});
  auto main = b.procedure("main", 2, 0, 1024, 4);
  V between = symmetric(768, f32, {4, 16});
  main.call("layers.0", 1, {argument(0, f32, {4, 16}), between}, 0, 0, 0);
  main.call("layers.1", 1, {between, argument(1, f32, {4, 16})}, 0, 0, 2);
  auto layer = b.procedure("layer", 2, 0, 512, 2);
  int32_t in = layer.buffer("partial", fb::Space::symmetric, 0, 256);
  int32_t out = layer.buffer("sum", fb::Space::symmetric, 256, 256);
  V part = symmetric(0, f32, {4, 16}).of(in), sum = symmetric(256, f32, {4, 16}).of(out);
  layer.copy("in", argument(0, f32, {4, 16}), part);
  layer.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {part}, {sum}, 0, 0, 1);
  layer.wait("sum", 1);
  layer.copy("out", sum, argument(1, f32, {4, 16}));
  return b.contents();
}
std::shared_ptr<const Bundle> twoLayers() { return bundleOf(twoLayerContents()); }

TEST(Explain, WhatEachQueueDoes) {
  Result<std::string> text = explain(*twoLayers(), {});
  ASSERT_OK(text);
  EXPECT_THAT(*text, HasSubstr("mesh <dp = 2, tp = 2>: 4 ranks"));
  EXPECT_THAT(*text, HasSubstr("takes 'x' f32[8, 16], a rank has [4, 16] of it\n"));
  EXPECT_THAT(*text, HasSubstr("@main: entry main; buffers 0 B local, 1.0 KiB symmetric"));
  EXPECT_THAT(*text, HasSubstr("@layer: runs 2 times; buffers 0 B local, 512 B symmetric"));
  EXPECT_THAT(*text, HasSubstr(R"(
  compute queue
      0  call           @layer 'layers.0'
                         with input 'x' f32[4, 16] 256 B, symmetric bytes from 768 f32[4, 16] 256 B
)"));
  EXPECT_THAT(*text, HasSubstr(R"(
  compute queue
      0  copy           'in'
                         reads argument 0 f32[4, 16] 256 B
                         writes symmetric buffer 'partial' f32[4, 16] 256 B
      1  signal         'sum'
                         awaited by communication command 0, wait 'sum'
      2  wait           'sum'
                         waits for communication command 1, all_reduce 'sum'
      3  copy           'out'
                         reads symmetric buffer 'sum' f32[4, 16] 256 B
                         writes argument 1 f32[4, 16] 256 B
  communication queue
      0  wait           'sum'
                         waits for compute command 1, signal 'sum'
      1  all_reduce     'sum' identity test, reduction sum, over tp among 2 ranks {0, 1} {2, 3}, sends 256 B
                         reads symmetric buffer 'partial' f32[4, 16] 256 B
                         writes symmetric buffer 'sum' f32[4, 16] 256 B
                         awaited by compute command 2, wait 'sum'
)"));
}

TEST(Explain, PaddingOfAResult) {
  BundleContents contents = twoLayerContents();
  EntryValue &y = contents.manifest.entries[0].results[0];
  y.paddedShape = y.globalShape;
  y.globalShape[0] = 7;
  Result<std::string> text = explain(*bundleOf(contents), {});
  ASSERT_OK(text);
  EXPECT_THAT(*text, HasSubstr("'y' f32[7, 16] padded to [8, 16], a rank has [4, 16] of it\n"));
}

TEST(Explain, OneRank) {
  ExplainOptions options;
  options.rank = 3;
  Result<std::string> text = explain(*twoLayers(), options);
  ASSERT_OK(text);
  EXPECT_THAT(*text, HasSubstr("takes 'x' f32[8, 16], rank 3 has [4, 16] from [4, 0]\n"));
  EXPECT_THAT(*text, HasSubstr("among 2 ranks {2, 3}, sends"));
  options.rank = 4;
  EXPECT_EQ(explain(*twoLayers(), options).status().message(),
            "there is no rank 4: the mesh has 4 ranks");
}

TEST(Explain, OneProcedure) {
  ExplainOptions options;
  options.procedure = "layer";
  Result<std::string> text = explain(*twoLayers(), options);
  ASSERT_OK(text);
  EXPECT_THAT(*text, HasSubstr("@layer: runs 2 times"));
  EXPECT_THAT(*text, Not(HasSubstr("@main")));
  options.procedure = "leyer";
  EXPECT_EQ(explain(*twoLayers(), options).status().message(),
            "the program has no procedure 'leyer', it has main, layer");
}

TEST(Explain, StepsOfACollective) {
  Result<std::string> text = explainSchedules(*twoLayers(), {}, {});
  ASSERT_OK(text);
  EXPECT_EQ(
      *text,
      R"(Peers are named by rank, or by position where groups differ. Bytes are those of packed values.

@layer, all_reduce 'sum' by one_shot among 2 ranks, in chunks of 1048576 bytes
  ranks 0, 2, position 0: sends 256 bytes, needs 0 of scratch memory
      0  send     input 0 [0, 256) to 1 as message 0
      1  reduce   output 0 [0, 256) = input 0 [0, 256) + message 0 of 1
  ranks 1, 3, position 1: sends 256 bytes, needs 0 of scratch memory
      0  send     input 0 [0, 256) to 0 as message 0
      1  reduce   output 0 [0, 256) = message 0 of 0 + input 0 [0, 256)
)");
}

TEST(Explain, StepsOnHosts) {
  ProgramBuilder b({{"tp", 4}});
  auto main = b.procedure("main", 0, 0, 128, 2);
  V part = symmetric(0, f32, {16}), whole = symmetric(64, f32, {16});
  main.start("spread", fb::CollectiveKind::broadcast, {"tp"}, {part}, {whole}, 0, 0, 1);
  main.wait("spread", 1);
  ScheduleOptions schedule;
  schedule.algorithm = "hierarchical";
  schedule.ranksPerHost = 2;
  ExplainOptions options;
  options.rank = 0;
  Result<std::string> text = explainSchedules(*b.bundle(), options, schedule);
  ASSERT_OK(text);
  EXPECT_THAT(*text, HasSubstr(R"(
  rank 2: sends 64 bytes, needs 0 of scratch memory
      0  receive  output 0 [0, 64) = message 0 of 0
      1  send     output 0 [0, 64) to 3 as message 0, after 0
  rank 3: sends 0 bytes, needs 0 of scratch memory
      0  receive  output 0 [0, 64) = message 0 of 2
)"));
  schedule.algorithm = "one_shot";
  EXPECT_EQ(explainSchedules(*b.bundle(), options, schedule).status().message(),
            "broadcast 'spread': there is no schedule of broadcast by one_shot");
  schedule.ranksPerHost = -1;
  EXPECT_EQ(explainSchedules(*b.bundle(), options, schedule).status().message(),
            "a host expects at least 1 rank, got -1");
}

/// A callee may record an event that its caller awaits.
TEST(Explain, WaitsAcrossACall) {
  ProgramBuilder b({{"tp", 2}});
  b.operand("x", f32, {16});
  b.result("y", f32, {16});
  auto main = b.procedure("main", 2, 0, 256, 2);
  main.call("begin", 1, {argument(0, f32, {16})}, 0, 0, 0);
  main.wait("end", 1);
  main.copy("out", symmetric(64, f32, {16}), argument(1, f32, {16}));
  auto begin = b.procedure("begin", 1, 0, 128, 2);
  begin.copy("in", argument(0, f32, {16}), symmetric(0, f32, {16}));
  begin.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {symmetric(0, f32, {16})},
              {symmetric(64, f32, {16})}, 0, 0, 1);
  Result<std::string> text = explain(*b.bundle(), {});
  ASSERT_OK(text);
  EXPECT_THAT(*text, HasSubstr(R"(
      1  wait           'end'
                         waits for the call at compute command 0, in @begin on the communication queue, all_reduce 'sum'
)"));
}

TEST(Explain, Json) {
  Result<std::string> text = explainAsJson(*twoLayers(), {});
  ASSERT_OK(text);
  auto json = nlohmann::json::parse(*text);
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["mesh"][1]["axis"], "tp");
  EXPECT_EQ(json["entries"][0]["operands"][0]["shape"], (Shape{8, 16}));
  EXPECT_EQ(json["entries"][0]["operands"][0]["shape_per_rank"], (Shape{4, 16}));
  EXPECT_EQ(json["entries"][0]["operands"][0]["bytes_per_rank"], 256);
  auto layer = json["procedures"][1];
  EXPECT_EQ(layer["name"], "layer");
  EXPECT_EQ(layer["executions"], 2);
  EXPECT_EQ(layer["symmetric_bytes"], 512);
  auto reduce = layer["queues"]["communication"][1];
  EXPECT_EQ(reduce["kind"], "all_reduce");
  EXPECT_EQ(reduce["group"]["ranks"], nlohmann::json::parse("[[0, 1], [2, 3]]"));
  EXPECT_EQ(reduce["bytes_sent_per_rank"], 256);
  EXPECT_EQ(reduce["reads"][0]["memory"], "symmetric buffer 'partial'");
  EXPECT_EQ(reduce["awaited_by"][0]["queue"], "compute");
  EXPECT_EQ(reduce["awaited_by"][0]["index"], 2);
  auto wait = layer["queues"]["compute"][2];
  EXPECT_EQ(wait["waits_for"][0]["queue"], "communication");
  EXPECT_EQ(wait["waits_for"][0]["index"], 1);
}

} // namespace
