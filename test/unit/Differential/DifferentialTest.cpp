//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random encoders on random meshes: the module on one logical device, its partitioned form and its
// scheduled form must give the same result. BRAID_DIFFERENTIAL_SEED and BRAID_DIFFERENTIAL_CASES
// select the cases.
//
//===----------------------------------------------------------------------===//
#include "RandomModel.h"
#include "Testing.h"

#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"
#include "test/lib/Interpreter/Equivalence.h"

#include "mlir/Parser/Parser.h"

#include <iostream>

using namespace mlir;
using namespace braid;
using namespace braid::test;

namespace {
constexpr double kTolerance = 1e-12;
constexpr char kPropagate[] = "braid-propagate-shardings,braid-partition";
constexpr char kStrategy[] = "braid-apply-strategy{strategy=auto}";

struct Differential : DifferentialTest {
  static void count(Tally &tally, const interp::Evaluation &evaluation) {
    for (const auto &[name, times] : evaluation.executed)
      tally[name] += static_cast<uint64_t>(times);
  }

  /// Runs the cases of a kind and counts the operations that rank 0 executed.
  Tally runCases(bool randomShardings, uint64_t defaultCases) {
    uint64_t seed = fromEnvironment("BRAID_DIFFERENTIAL_SEED", 20240917);
    uint64_t cases = fromEnvironment("BRAID_DIFFERENTIAL_CASES", defaultCases);
    std::cout << "BRAID_DIFFERENTIAL_SEED=" << seed << " BRAID_DIFFERENTIAL_CASES=" << cases
              << "\n";
    Tally tally, meshes;
    double worst = 0;
    for (uint64_t i = 0; i < cases; ++i) {
      std::seed_seq sequence{uint32_t(seed), uint32_t(seed >> 32), uint32_t(i),
                             uint32_t(randomShardings)};
      Random random(sequence);
      RandomModel drawn = drawModel(
          random, {/*encoder=*/true, randomShardings ? ModelKind::Shardings : ModelKind::Auto});
      ++meshes[drawn.mesh()];
      std::string text = buildModule(drawn, random);
      SCOPED_TRACE("case " + std::to_string(i) + ": " + drawn.describe());
      OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(text, &context);
      EXPECT_TRUE(model) << text;
      if (!model)
        break;
      std::string options = "{strategy=auto mesh=" + drawn.mesh() + "},";
      std::string passes = randomShardings ? kPropagate
                                           : "braid-pad-for-strategy" + options +
                                                 "braid-apply-strategy" + options + kPropagate;
      OwningOpRef<ModuleOp> partitioned = transformed(*model, passes);
      OwningOpRef<ModuleOp> scheduled = transformed(*model, passes + ",braid-start-collectives");
      EXPECT_TRUE(partitioned && scheduled) << text;
      if (!partitioned || !scheduled)
        break;
      runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(*model, seed + i);
      EXPECT_TRUE(inputs.ok()) << inputs.status().message();
      LargeWeights weights(seed + i);
      for (ModuleOp form : {*partitioned, *scheduled}) {
        runtime::Result<Equivalence> result = compareForms(*model, form, *inputs, weights);
        EXPECT_TRUE(result.ok()) << result.status().message() << "\n" << text;
        if (!result.ok())
          return tally;
        EXPECT_LE(result->relativeL2, kTolerance) << text;
        worst = std::max(worst, result->relativeL2);
        // If random shardings split nothing, the interpreter runs one rank; strategies always
        // split.
        if (!randomShardings)
          EXPECT_EQ(result->after.numRanks, drawn.dp * drawn.tp);
        count(tally, result->after);
      }
    }
    print("meshes:", meshes);
    print("executed by rank 0:", tally);
    std::cout << "largest relative L2: " << worst << " (allowed " << kTolerance << ")\n";
    return tally;
  }
};

RandomModel smallEncoder() {
  RandomModel model;
  model.postNorm = model.positions = model.biases = true;
  model.kvHeads = 2;
  model.hidden = 4;
  model.batch = 2;
  model.seq = 3;
  return model;
}

void expectTookPart(const Tally &tally, std::initializer_list<const char *> names) {
  if (!isDefaultSize())
    return;
  for (const char *name : names)
    EXPECT_TRUE(tally.count(name)) << name << " was never executed";
}
} // namespace

TEST_F(Differential, Strategies) {
  expectTookPart(runCases(/*randomShardings=*/false, 60),
                 {"func.call", "nn.parameter", "nn.embedding", "nn.linear", "nn.split_heads",
                  "nn.merge_heads", "nn.attention", "nn.layer_norm", "nn.activation", "nn.add",
                  "comm.all_reduce", "comm.start", "comm.wait"});
}

TEST_F(Differential, RandomShardings) {
  expectTookPart(runCases(/*randomShardings=*/true, 60),
                 {"comm.all_reduce", "comm.all_gather", "comm.part", "comm.start", "comm.wait"});
}

// The comparison is meaningful only if it detects a wrong program.
TEST_F(Differential, ADroppedReductionIsNoticed) {
  Random random(7);
  RandomModel drawn = smallEncoder();
  drawn.tp = 2;
  drawn.ffn = 8;
  OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(buildModule(drawn, random), &context);
  ASSERT_TRUE(model);
  runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(*model, 1);
  ASSERT_TRUE(inputs.ok());
  LargeWeights weights(1);
  OwningOpRef<ModuleOp> whole = transformed(*model, std::string(kStrategy) + "," + kPropagate);
  ASSERT_TRUE(whole);
  runtime::Result<Equivalence> right = compareForms(*model, *whole, *inputs, weights);
  ASSERT_TRUE(right.ok()) << right.status().message();
  EXPECT_LE(right->relativeL2, kTolerance);

  size_t reductions = 0;
  whole->walk([&](comm::AllReduceOp) { ++reductions; });
  EXPECT_EQ(reductions, 2u); // two in each layer
  for (size_t dropped = 0; dropped < reductions; ++dropped) {
    OwningOpRef<ModuleOp> broken = whole->clone();
    size_t index = 0;
    broken->walk([&](comm::AllReduceOp op) {
      if (index++ == dropped) {
        op->replaceAllUsesWith(op.getInputs());
        op.erase();
      }
    });
    runtime::Result<Equivalence> wrong = compareForms(*model, *broken, *inputs, weights);
    // Either the ranks disagree about a result or the values are wrong.
    if (wrong.ok())
      EXPECT_GT(wrong->relativeL2, 1e-3);
    else
      EXPECT_NE(wrong.status().message().find("expects equal values on ranks 0 and 1"),
                std::string::npos)
          << wrong.status().message();
  }
}

TEST_F(Differential, ASlightlyDifferentEpsilonIsNoticed) {
  Random random(8);
  std::string text = buildModule(smallEncoder(), random);
  OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(model);
  // epsilon 1e-3 against 1.000001e-3 in every normalization: the smallest plausible mistake.
  ASSERT_NE(text.find("epsilon 1.0e-3"), std::string::npos);
  for (size_t at = 0; (at = text.find("epsilon 1.0e-3", at)) != std::string::npos; ++at)
    text.replace(at, 14, "epsilon 1.000001e-3");
  OwningOpRef<ModuleOp> other = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(other);
  runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(*model, 1);
  ASSERT_TRUE(inputs.ok());
  LargeWeights weights(1);
  runtime::Result<Equivalence> result = compareForms(*model, *other, *inputs, weights);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_GT(result->relativeL2, kTolerance);
}
