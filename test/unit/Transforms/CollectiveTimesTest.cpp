//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Costs of encoded collectives count what braid-expand-encoded makes of them, on the hosts that
// their groups are on.
//
//===----------------------------------------------------------------------===//
#include "braid/Cost/CollectiveTimes.h"
#include "braid/Transforms/Passes.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace braid;
using namespace mlir;

namespace {

/// A link of 1e8 bytes a second without latency, codecs of int8:128 and int4:64, and nothing else
/// that takes time; ranks of one host move as fast as they like.
std::shared_ptr<const cost::Machine> machine() {
  auto machine = std::make_shared<cost::Machine>();
  machine->name = "test";
  machine->processor = cost::Processor{"Test", 4, "avx2", {}};
  cost::ComputeRates rates;
  rates.busyCores = 1;
  for (const char *encoding : {"bf16", "int4:64", "int8:128"})
    rates.codecs.push_back({encoding, 1000, 1e9, 1e9, 1e9});
  machine->compute = {rates};
  for (int64_t ranks : {2, 4}) {
    cost::Transport shm;
    shm.name = "shm";
    shm.ranks = ranks;
    shm.transfers = {{1000, 0, 0, 0, 0}};
    machine->transports.push_back(shm);
  }
  cost::Link link;
  link.name = "wire";
  link.bytesPerSecond = 1e8;
  machine->links = {link};
  return machine;
}

struct Module {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;

  Module(llvm::StringRef arguments, llvm::StringRef operation, llvm::StringRef mesh = "<tp = 4>") {
    context
        .loadDialect<comm::CommDialect, nn::NNDialect, func::FuncDialect, tensor::TensorDialect>();
    const std::string text = ("comm.mesh @mesh " + mesh + "\nfunc.func @main(" + arguments +
                              ") {\n  " + operation + "\n  return\n}\n")
                                 .str();
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
  }
  comm::CollectiveOpInterface collective() {
    comm::CollectiveOpInterface found;
    module->walk([&](comm::CollectiveOpInterface op) { found = op; });
    return found;
  }
};

} // namespace

TEST(CollectiveTimes, CountTheBytesOfTheExpansion) {
  const char *attribute = "{comm.encoding = #comm.encoding<\"ENCODING\">}";
  const struct {
    const char *arguments, *operation, *encoding;
  } cases[] = {
      {"%x: tensor<2x4x6x256xf32>",
       "comm.all_reduce sum(%x) over <@mesh, {tp}> ATTR : tensor<2x4x6x256xf32>",
       "int8:128/int4:64"},
      {"%x: tensor<1x7x320xf32>",
       "comm.all_reduce sum(%x) over <@mesh, {tp}> ATTR : tensor<1x7x320xf32>", "int8:128"},
      {"%x: tensor<1x7x512xf32>",
       "comm.all_reduce sum(%x) over <@mesh, {tp}> ATTR : tensor<1x7x512xf32>", "int8:128"},
      {"%x: tensor<1x7x320xf32>",
       "comm.all_reduce sum(%x) over <@mesh, {tp}> ATTR : tensor<1x7x320xf32>", "bf16"},
      // In chunks, of which the last one has a row less.
      {"%x: tensor<1x2047x2048xf32>",
       "comm.all_reduce sum(%x) over <@mesh, {tp}> ATTR : tensor<1x2047x2048xf32>",
       "int8:128/bf16"},
      {"%x: tensor<4x64xbf16>, %y: tensor<3x80xf16>",
       "comm.all_reduce sum(%x, %y) over <@mesh, {tp}> ATTR : tensor<4x64xbf16>, tensor<3x80xf16>",
       "int4:64"},
      {"%x: tensor<2x4x6x256xf32>",
       "comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> ATTR : tensor<2x4x6x256xf32> -> "
       "tensor<2x1x6x256xf32>",
       "int8:128"},
      {"%x: tensor<2x4x6x256xf32>",
       "comm.reduce_scatter sum(%x) dim 3 over <@mesh, {tp}> ATTR : tensor<2x4x6x256xf32> -> "
       "tensor<2x4x6x64xf32>",
       "int4:64"},
      {"%x: tensor<2x4x6x256xf32>",
       "comm.all_gather(%x) dim 1 over <@mesh, {tp}> ATTR : tensor<2x4x6x256xf32> -> "
       "tensor<2x16x6x256xf32>",
       "int8:128"},
      {"%x: tensor<2x4x6x256xf32>",
       "comm.all_gather(%x) dim 3 over <@mesh, {tp}> ATTR : tensor<2x4x6x256xf32> -> "
       "tensor<2x4x6x1024xf32>",
       "int8:128"},
      // In chunks of a part's rows, or of all where columns are divided.
      {"%x: tensor<2x2044x2048xf32>",
       "comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> ATTR : tensor<2x2044x2048xf32> -> "
       "tensor<2x511x2048xf32>",
       "int8:128"},
      {"%x: tensor<512x8192xf32>, %y: tensor<8192xf32>",
       "comm.reduce_scatter sum(%x, %y) dim 0 over <@mesh, {tp}> ATTR : tensor<512x8192xf32>, "
       "tensor<8192xf32> -> tensor<128x8192xf32>, tensor<2048xf32>",
       "int4:64"},
      {"%x: tensor<511x8192xf32>",
       "comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> ATTR : tensor<511x8192xf32> -> "
       "tensor<511x2048xf32>",
       "int8:128"},
      {"%x: tensor<2x511x2048xf32>",
       "comm.all_gather(%x) dim 1 over <@mesh, {tp}> ATTR : tensor<2x511x2048xf32> -> "
       "tensor<2x2044x2048xf32>",
       "int8:128"},
      {"%x: tensor<511x2048xf32>",
       "comm.all_gather(%x) dim 0 over <@mesh, {tp}> ATTR : tensor<511x2048xf32> -> "
       "tensor<2044x2048xf32>",
       "int8:128"},
      {"%x: tensor<511x2048xf32>",
       "comm.all_gather(%x) dim 1 over <@mesh, {tp}> ATTR : tensor<511x2048xf32> -> "
       "tensor<511x8192xf32>",
       "int8:128"},
      {"%x: tensor<2x4x6x256xf32>",
       "comm.all_to_all(%x) split 3 concat 1 over <@mesh, {tp}> ATTR : tensor<2x4x6x256xf32> -> "
       "tensor<2x16x6x64xf32>",
       "int4:64"},
      {"%x: tensor<2x4x6x256xf32>",
       "comm.all_to_all(%x) split 1 concat 3 over <@mesh, {tp}> ATTR : tensor<2x4x6x256xf32> -> "
       "tensor<2x1x6x1024xf32>",
       "int8:128"},
      {"%x: tensor<4x5x64xf32>, %n: tensor<4xi32>",
       "comm.all_to_all_v(%x) counts %n : tensor<4xi32> over <@mesh, {tp}> ATTR : "
       "tensor<4x5x64xf32>",
       "int4:64"},
      {"%x: tensor<2x4x6x256xf32>",
       "comm.broadcast(%x) from 2 over <@mesh, {tp}> ATTR : tensor<2x4x6x256xf32>", "int8:128"},
      {"%x: tensor<2x4x6x256xf32>",
       "comm.permute(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {tp}> ATTR : tensor<2x4x6x256xf32>",
       "int8:128"},
      {"%x: tensor<2x4x6x256xf32>",
       "comm.send(%x) pairs [0 -> 1] over <@mesh, {tp}> tag 3 ATTR : tensor<2x4x6x256xf32>\n"
       "  %r = comm.recv pairs [0 -> 1] over <@mesh, {tp}> tag 3 ATTR : tensor<2x4x6x256xf32>",
       "int8:128"},
      // In chunks along the longest dimension of a part: what is divided, joined, both or neither.
      {"%x: tensor<2x2044x8x256xf32>",
       "comm.all_to_all(%x) split 1 concat 2 over <@mesh, {tp}> ATTR : tensor<2x2044x8x256xf32> -> "
       "tensor<2x511x32x256xf32>",
       "int8:128"},
      {"%x: tensor<511x32x256xf32>",
       "comm.all_to_all(%x) split 1 concat 0 over <@mesh, {tp}> ATTR : tensor<511x32x256xf32> -> "
       "tensor<2044x8x256xf32>",
       "int4:64"},
      {"%x: tensor<2x2044x2048xf32>",
       "comm.all_to_all(%x) split 1 concat 1 over <@mesh, {tp}> ATTR : tensor<2x2044x2048xf32> -> "
       "tensor<2x2044x2048xf32>",
       "int8:128"},
      {"%x: tensor<4x511x4x1024xf32>",
       "comm.all_to_all(%x) split 0 concat 2 over <@mesh, {tp}> ATTR : tensor<4x511x4x1024xf32> -> "
       "tensor<1x511x16x1024xf32>",
       "int8:128"},
      {"%x: tensor<511x8192xf32>",
       "comm.all_to_all(%x) split 1 concat 0 over <@mesh, {tp}> ATTR : tensor<511x8192xf32> -> "
       "tensor<2044x2048xf32>",
       "int8:128"},
      {"%x: tensor<2044x2048xf32>, %y: tensor<8192xf32>",
       "comm.all_to_all(%x, %y) split 0 concat 0 over <@mesh, {tp}> ATTR : tensor<2044x2048xf32>, "
       "tensor<8192xf32> -> tensor<2044x2048xf32>, tensor<8192xf32>",
       "int8:128"},
      {"%x: tensor<2044x2048xf32>",
       "comm.all_to_all(%x) split 0 concat 1 over <@mesh, {tp}> ATTR : tensor<2044x2048xf32> -> "
       "tensor<511x8192xf32>",
       "int8:128"},
      // In chunks of rows.
      {"%x: tensor<7x73x2048xf32>, %y: tensor<8192xbf16>",
       "comm.broadcast(%x, %y) from 2 over <@mesh, {tp}> ATTR : tensor<7x73x2048xf32>, "
       "tensor<8192xbf16>",
       "int8:128"},
      {"%x: tensor<7x73x2048xf32>",
       "comm.permute(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {tp}> ATTR : tensor<7x73x2048xf32>",
       "bf16"},
      {"%x: tensor<7x73x2048xf32>",
       "comm.send(%x) pairs [0 -> 1] over <@mesh, {tp}> ATTR : tensor<7x73x2048xf32>\n"
       "  %r = comm.recv pairs [0 -> 1] over <@mesh, {tp}> ATTR : tensor<7x73x2048xf32>",
       "int8:128"}};
  auto replaced = [](std::string text, const std::string &what, const std::string &by) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
      text.replace(at, what.size(), by);
    return text;
  };
  for (const auto &c : cases) {
    SCOPED_TRACE(c.operation);
    Module m(c.arguments,
             replaced(replaced(c.operation, "ATTR", attribute), "ENCODING", c.encoding));
    comm::CollectiveOpInterface op = m.collective();
    ASSERT_TRUE(op);
    CollectiveTimes times({machine(), "", {1, 1, 1, 1}, 1});
    const auto pair = *runtime::EncodingPair::parse(c.encoding);
    const auto placed = times.locate(op);
    ASSERT_TRUE(placed.ok()) << placed.status().message();
    const auto time = times.encoded(*placed, pair);
    ASSERT_TRUE(time.ok()) << time.status().message();
    const bool isCut = !isa<comm::AllToAllVOp>(*op);
    const OperationName exchange =
        isa<comm::AllReduceOp, comm::ReduceScatterOp>(*op)
            ? OperationName(comm::AllToAllOp::getOperationName(), &m.context)
            : op->getName();
    const bool sendsParts = exchange.getStringRef() == comm::AllToAllOp::getOperationName();
    PassManager pm(&m.context);
    pm.addPass(createExpandEncoded());
    ASSERT_TRUE(succeeded(pm.run(*m.module)));
    const auto steps = cost::encodedSteps(placed->groups.front(), pair);
    ASSERT_TRUE(steps.ok()) << steps.status().message();
    int64_t bytes = 0;
    size_t codecs = 0;
    double elements = 0; // that codecs take at 1e9 a second
    m.module->walk(
        [&](Operation *part) { codecs += isa<nn::EncodeOp, nn::DecodeOp, nn::DecodeSumOp>(part); });
    EXPECT_EQ(steps->codecs.size(), codecs);
    m.module->walk([&](nn::EncodeOp encode) {
      bytes += encode.getPayload().getType().getNumElements();
      const auto all = static_cast<double>(encode.getInput().getType().getNumElements());
      // What a rank would send to itself is not encoded.
      elements += all;
      if (encode.getGroup())
        elements -= all / static_cast<double>(comm::groupSize(encode, *encode.getGroup()));
    });
    m.module->walk([&](nn::DecodeOp decode) {
      elements += static_cast<double>(decode.getResult().getType().getNumElements());
    });
    m.module->walk([&](nn::DecodeSumOp sum) {
      elements += static_cast<double>(sum.getResult().getType().getNumElements() *
                                      static_cast<int64_t>(sum.getSenders()));
    });
    EXPECT_EQ(time->payloadBytes, bytes);
    int64_t exchanges = 0;
    m.module->walk([&](Operation *part) { exchanges += part->getName() == exchange; });
    EXPECT_EQ(time->chunks, exchanges);
    EXPECT_EQ(time->chunks > 1, isCut && bytes >= (sendsParts ? 1 << 20 : 1 << 19));
    EXPECT_NEAR(time->codecSeconds, elements * 1e-9, elements * 1e-18);
    EXPECT_GT(bytes, 0);
  }
}

TEST(CollectiveTimes, OfTheGroupsThatTheHostsHave) {
  const char *arguments = "%x: tensor<1x1000xf32>";
  auto seconds = [&](const char *mesh, const char *axes, std::vector<int64_t> hosts) {
    Module m(arguments,
             std::string("comm.all_gather(%x) dim 0 over <@mesh, {") + axes +
                 "}> : tensor<1x1000xf32> -> tensor<2x1000xf32>",
             mesh);
    CollectiveTimes times({machine(), "", std::move(hosts), 1});
    const auto placed = times.locate(m.collective());
    EXPECT_TRUE(placed.ok()) << placed.status().message();
    if (!placed.ok())
      return -1.0;
    EXPECT_EQ(*placed, *times.locate(m.collective()));
    const auto time = times.plain(*placed);
    EXPECT_TRUE(time.ok()) << time.status().message();
    return time.ok() ? *time : -1;
  };
  // Ranks of one host take no time on this machine.
  EXPECT_EQ(seconds("<dp = 2, tp = 2>", "tp", {4}), 0);
  EXPECT_EQ(seconds("<dp = 2, tp = 2>", "tp", {2, 2}), 0);
  // 4000 bytes over the link; two groups share it.
  EXPECT_NEAR(seconds("<tp = 2>", "tp", {1, 1}), 4e-5, 1e-12);
  EXPECT_NEAR(seconds("<dp = 2, tp = 2>", "dp", {2, 2}), 8e-5, 1e-12);
  // One of the groups is over two hosts.
  EXPECT_NEAR(seconds("<dp = 2, tp = 2>", "tp", {3, 1}), 4e-5, 1e-12);
}

// Both sides of a message are encoded, or neither is.
TEST(CollectiveTimes, OfAMessageAreThoseOfAPermute) {
  std::vector<double> seconds;
  for (const char *operation :
       {"comm.permute(%x) pairs [0 -> 1, 1 -> 2] over <@mesh, {tp}> : tensor<1x1000xf32>",
        "comm.send(%x) pairs [0 -> 1, 1 -> 2] over <@mesh, {tp}> : tensor<1x1000xf32>",
        "comm.recv pairs [0 -> 1, 1 -> 2] over <@mesh, {tp}> : tensor<1x1000xf32>"}) {
    Module m("%x: tensor<1x1000xf32>", operation);
    CollectiveTimes times({machine(), "", {1, 1, 1, 1}, 1});
    const auto placed = times.locate(m.collective());
    ASSERT_TRUE(placed.ok()) << placed.status().message();
    const auto plain = times.plain(*placed);
    ASSERT_TRUE(plain.ok()) << plain.status().message();
    const auto encoded = times.encoded(*placed, *runtime::EncodingPair::parse("int8:128"));
    ASSERT_TRUE(encoded.ok()) << encoded.status().message();
    EXPECT_NEAR(*plain, 4e-5, 1e-12);
    EXPECT_GT(encoded->seconds, 1e-5);
    seconds.push_back(encoded->seconds);
  }
  EXPECT_EQ(seconds[1], seconds[0]);
  EXPECT_EQ(seconds[2], seconds[0]);
}

TEST(CollectiveTimes, NamesWhatDoesNotFit) {
  Module m("%x: tensor<4x64xf32>", "comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<4x64xf32>");
  CollectiveTimes times({machine(), "", {2, 1}, 1});
  EXPECT_EQ(times.locate(m.collective()).status().message(),
            "expects hosts of 4 ranks in all, which the mesh has, got 3");
}
