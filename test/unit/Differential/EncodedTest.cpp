//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random programs whose collectives travel in random encodings: expanded in chunks they give the
// bits that they give in one chunk, in the interpreter and in the executor, and have no race in the
// program interpreter. BRAID_DIFFERENTIAL_SEED and BRAID_DIFFERENTIAL_CASES select the cases.
//
//===----------------------------------------------------------------------===//
#include "Compiled.h"
#include "RandomExchange.h"
#include "Testing.h"

#include "dialects/Comm/IR/Comm.h"
#include "test/lib/Interpreter/Equivalence.h"

#include "mlir/Parser/Parser.h"

#include <iostream>

using namespace mlir;
using namespace braid;
using namespace braid::test;

namespace {

constexpr const char *kEncodings[] = {"int8:32",
                                      "int4:32/int8:64",
                                      "int3:64+symmetric",
                                      "int5:32+zero-point",
                                      "fp8e4m3:32",
                                      "bf16",
                                      "mxfp4",
                                      "nvfp4",
                                      "int2:32+spikes",
                                      "f16/int6:32",
                                      "int6:32+hadamard16+spikes",
                                      "int8:8192+bf16-scale"};

struct Encoded : DifferentialTest {
  /// Encodes what can be encoded. Returns the number of collectives that may be cut.
  size_t encode(ModuleOp module, Random &random) {
    size_t numCuttable = 0;
    module.walk([&](comm::CollectiveOpInterface op) {
      if (!comm::encodingObstacle(op).empty())
        return;
      // What is received is encoded as it was sent.
      const auto tag = op->getAttrOfType<IntegerAttr>("tag");
      const auto number = tag ? static_cast<size_t>(tag.getInt()) : random();
      const auto pair = runtime::EncodingPair::parse(kEncodings[number % std::size(kEncodings)]);
      ASSERT_TRUE(pair.ok()) << pair.status().message();
      const bool isReduce = isa<comm::AllReduceOp>(op);
      const runtime::Encoding half = isa<comm::ReduceScatterOp>(op) ? pair->reduce : pair->gather;
      op->setAttr(
          comm::CommDialect::kEncodingAttrName,
          comm::EncodingAttr::get(&context, isReduce ? *pair : runtime::EncodingPair{half, half}));
      numCuttable += !isa<comm::AllToAllVOp>(op);
      op->setAttr("role", StringAttr::get(&context,
                                          op->getName().stripDialect() + "." + Twine(numCuttable)));
    });
    return numCuttable;
  }

  void runCase(ModuleOp module, Random &random, uint64_t seed, bool compile) {
    if (encode(module, random) == 0)
      return;
    const std::string chunks =
        "braid-expand-encoded{message-bytes=" + std::to_string(1 + random() % 64) +
        " most-chunks=" + std::to_string(2 + random() % 6) + "}";
    SCOPED_TRACE(chunks + "\n" + printed(module));
    OwningOpRef<ModuleOp> whole = transformed(module, "braid-expand-encoded{message-bytes=0}");
    OwningOpRef<ModuleOp> cut = transformed(module, chunks);
    ASSERT_TRUE(whole && cut);
    const Tally before = numChunks;
    cut->walk([&](comm::CollectiveOpInterface op) {
      if (op.getRoleName().contains("/chunk#"))
        ++numChunks[op.getRoleName().split('.').first.str()];
    });
    if (numChunks == before)
      return;
    // Which rows of an all_reduce a rank adds itself, and so as they are, depends on the chunks.
    auto countOf = [](const Tally &tally) {
      const auto found = tally.find("all_reduce");
      return found == tally.end() ? 0 : found->second;
    };
    const bool sameOwnRows = countOf(numChunks) == countOf(before);
    runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(module, seed);
    ASSERT_TRUE(inputs.ok()) << inputs.status().message();
    std::unique_ptr<runtime::WeightSource> weights = runtime::WeightSource::random(seed);
    OwningOpRef<ModuleOp> scheduled = transformed(*cut, "braid-start-collectives");
    ASSERT_TRUE(scheduled);
    ModuleOp expected = sameOwnRows ? *whole : *cut;
    for (ModuleOp form : {*cut, *scheduled}) {
      runtime::Result<Equivalence> forms = compareForms(expected, form, *inputs, *weights);
      ASSERT_TRUE(forms.ok()) << forms.status().message();
      ASSERT_EQ(forms->relativeL2, 0) << forms->worst;
    }
    ++numCut;
    if (!compile)
      return;
    runtime::Result<CompiledRun> one = compileAndRun(*whole, {}, *inputs, *weights),
                                 many = compileAndRun(*cut, {}, *inputs, *weights, /*orders=*/2);
    ASSERT_TRUE(one.ok()) << one.status().message();
    ASSERT_TRUE(many.ok()) << many.status().message();
    if (sameOwnRows)
      ASSERT_EQ(distance(many->results, one->results), 0);
    ASSERT_LE(distance(many->resultsInOrders, many->results), kCompiledTolerance);
    ++numCompiled;
    numCompared += sameOwnRows;
  }

  uint64_t numCut = 0, numCompiled = 0, numCompared = 0;
  Tally numChunks; ///< by the kind of collective that was cut
};
} // namespace

TEST_F(Encoded, ChunksKeepTheBits) {
  const uint64_t seed = fromEnvironment("BRAID_DIFFERENTIAL_SEED", 20261125);
  const uint64_t cases = fromEnvironment("BRAID_DIFFERENTIAL_CASES", 240);
  std::cout << "BRAID_DIFFERENTIAL_SEED=" << seed << " BRAID_DIFFERENTIAL_CASES=" << cases << "\n";
  for (uint64_t i = 0; i < cases && !HasFailure(); ++i) {
    std::seed_seq sequence{uint32_t(seed), uint32_t(seed >> 32), uint32_t(i), uint32_t(31)};
    Random random(sequence);
    const std::string text = buildExchange(random, /*parts=*/i % 2, /*states=*/i % 4 == 1);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    SCOPED_TRACE("case " + std::to_string(i));
    runCase(*module, random, seed + i, /*compile=*/i % 4 == 0);
  }
  std::cout << "programs in chunks: " << numCut << ", compiled and run: " << numCompiled << "\n";
  print("chunks", numChunks);
  if (!isDefaultSize())
    return;
  EXPECT_GE(numCut, 50U);
  for (const char *kind : {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast",
                           "permute", "send", "recv"})
    EXPECT_GE(numChunks[kind], 20U) << kind;
  EXPECT_EQ(numChunks["send"], numChunks["recv"]);
  EXPECT_GE(numCompiled, 20U);
  EXPECT_GE(numCompared, 8U);
}
