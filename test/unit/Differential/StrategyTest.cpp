//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random decoders under random strategies, padded where dimensions do not divide: results must be
// the same, and the collectives must be exactly those that the strategy needs.
// BRAID_DIFFERENTIAL_SEED and BRAID_DIFFERENTIAL_CASES select the cases.
//
//===----------------------------------------------------------------------===//
#include "RandomModel.h"

#include "braid/Transforms/Passes.h"
#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"
#include "test/lib/Interpreter/Equivalence.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>

using namespace mlir;
using namespace braid;
using namespace braid::test;

namespace {
constexpr double kTolerance = 1e-12;

uint64_t fromEnvironment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

bool has(const std::string &strategy, const char *part) {
  return strategy.find(part) != std::string::npos;
}

/// The number of each collective that a strategy needs for a decoder, on rank 0.
std::map<std::string, int64_t> neededCollectives(const RandomModel &d) {
  std::map<std::string, int64_t> needed;
  if (d.tp == 1)
    return needed;
  bool sequence = has(d.strategy, "tp-sp"),
       vocabulary = has(d.strategy, "vocab") || d.strategy == "auto";
  // Parallel attention and feed-forward share one all_reduce.
  int64_t sums = (d.parallel ? 1 : 2) * d.layers + vocabulary, gathers = sums;
  if (sequence) {
    needed["comm.reduce_scatter"] = sums;
    needed["comm.all_gather"] = gathers;
  } else {
    needed["comm.all_reduce"] = sums;
  }
  return needed;
}
} // namespace

TEST(Strategy, Decoders) {
  registerBraidPasses();
  registerTransformsPasses();
  DialectRegistry registry;
  registry.insert<func::FuncDialect, comm::CommDialect, nn::NNDialect>();
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  uint64_t seed = fromEnvironment("BRAID_DIFFERENTIAL_SEED", 20240917);
  uint64_t cases = fromEnvironment("BRAID_DIFFERENTIAL_CASES", 200);
  std::cout << "BRAID_DIFFERENTIAL_SEED=" << seed << " BRAID_DIFFERENTIAL_CASES=" << cases << "\n";
  std::map<std::string, int64_t> strategies, sizes;
  int64_t padded = 0, vocabularies = 0, parallel = 0, rows = 0, numStored = 0;
  double worst = 0;
  for (uint64_t i = 0; i < cases; ++i) {
    std::seed_seq sequence{uint32_t(seed), uint32_t(seed >> 32), uint32_t(i), uint32_t(7)};
    Random random(sequence);
    ModelKind kind{/*encoder=*/false, ModelKind::Strategy};
    kind.anyRows = true;
    RandomModel decoder = drawModel(random, kind);
    SCOPED_TRACE("case " + std::to_string(i) + ": " + decoder.describe());
    std::string text = buildModule(decoder, random);
    OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(model) << text;
    OwningOpRef<ModuleOp> cut = model->clone();
    std::string options = "{mesh=" + decoder.mesh() + " strategy=" + decoder.strategy + "}";
    // How weights are stored changes nothing but their gathers.
    const bool stores = decoder.dp > 1 && i % 2 == 0;
    int64_t stored = 0;
    for (const std::string &passes :
         {"braid-pad-for-strategy" + options + ",braid-apply-strategy" + options +
              ",braid-delay-biases,braid-propagate-shardings" +
              (stores ? ",braid-store-parameters{strategy=fsdp}" : ""),
          std::string("braid-partition,canonicalize,cse")}) {
      PassManager manager(&context);
      ASSERT_TRUE(succeeded(parsePassPipeline(passes, manager)));
      ASSERT_TRUE(succeeded(manager.run(*cut))) << text;
      cut->walk([&](nn::ParameterOp parameter) { stored += parameter.getStored().has_value(); });
    }
    numStored += stored;
    runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(*model, seed + i);
    ASSERT_TRUE(inputs.ok()) << inputs.status().message();
    std::unique_ptr<runtime::WeightSource> weights = runtime::WeightSource::random(seed + i);
    runtime::Result<Equivalence> result = compareForms(*model, *cut, *inputs, *weights);
    ASSERT_TRUE(result.ok()) << result.status().message() << "\n" << text;
    EXPECT_LE(result->relativeL2, kTolerance) << text;
    worst = std::max(worst, result->relativeL2);
    std::map<std::string, int64_t> collectives;
    for (const auto &[name, times] : result->after.executed)
      if (name.rfind("comm.", 0) == 0 && name != "comm.part")
        collectives[name] = times;
    std::map<std::string, int64_t> needed = neededCollectives(decoder);
    if (stored != 0)
      needed["comm.all_gather"] += stored;
    EXPECT_EQ(collectives, needed) << text;
    ++strategies[decoder.strategy];
    ++sizes["tp=" + std::to_string(decoder.tp)];
    padded += decoder.isPadded();
    vocabularies += decoder.hasPaddedVocabulary();
    parallel += decoder.parallel && decoder.tp > 1;
    rows += decoder.hasPaddedSequence() || decoder.hasPaddedBatch();
  }
  for (const auto *tally : {&strategies, &sizes}) {
    for (const auto &[name, count] : *tally)
      std::cout << name << " " << count << "  ";
    std::cout << "\n";
  }
  std::cout << "padded " << padded << ", vocabularies " << vocabularies << "; parallel blocks "
            << parallel << ", sequences or batches " << rows << "; weights stored apart "
            << numStored << "; largest relative L2: " << worst << " (allowed " << kTolerance
            << ")\n";
  if (std::getenv("BRAID_DIFFERENTIAL_SEED") || std::getenv("BRAID_DIFFERENTIAL_CASES"))
    return; // a run of selected cases may be too small to reach everything
  EXPECT_EQ(strategies.size(), 9u);
  EXPECT_GE(numStored, 100);
  for (const auto *tally : {&strategies, &sizes})
    for (const auto &[name, count] : *tally)
      EXPECT_GE(count, 10) << name;
  EXPECT_GE(padded, 50);
  EXPECT_GE(vocabularies, 20);
  EXPECT_GE(parallel, 20);
  EXPECT_GE(rows, 20);
}
