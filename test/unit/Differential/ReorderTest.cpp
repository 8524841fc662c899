//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Passes that rewrite collectives, in random order on random partitioned modules: the module must
// give the same result after each pass, and each pass must have changed a minimum number of
// modules. BRAID_DIFFERENTIAL_SEED and BRAID_DIFFERENTIAL_CASES select the cases.
//
//===----------------------------------------------------------------------===//
#include "Compiled.h"
#include "RandomExchange.h"
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

struct Reorder : DifferentialTest {
  /// Runs random passes in sequence. Every resulting form is compared with the first, and so is the
  /// compiled program of the last form if requested.
  void runPasses(ModuleOp module, Random &random, uint64_t seed, ArrayRef<const char *> passes,
                 bool compile) {
    OwningOpRef<ModuleOp> before = module.clone();
    runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(*before, seed);
    ASSERT_TRUE(inputs.ok()) << inputs.status().message();
    std::unique_ptr<runtime::WeightSource> weights = runtime::WeightSource::random(seed);
    std::string text = printed(module), ran;
    for (size_t i = 0; i < 6; ++i) {
      const char *pass = passes[random() % passes.size()];
      ran += std::string(i ? "," : "") + pass;
      ASSERT_TRUE(apply(module, pass)) << ran << "\n" << printed(*before);
      std::string now = printed(module);
      if (now == text)
        continue;
      text = now;
      ++changed[pass];
      runtime::Result<Equivalence> result = compareForms(*before, module, *inputs, *weights);
      ASSERT_TRUE(result.ok()) << ran << ": " << result.status().message() << "\n"
                               << printed(*before) << text;
      ASSERT_LE(result->relativeL2, kTolerance) << ran << "\n" << printed(*before) << text;
      worst = std::max(worst, result->relativeL2);
      for (const auto &[name, times] : result->after.executed)
        executed[name] += static_cast<uint64_t>(times);
    }
    if (compile)
      runCompiled(*before, module, ran, *inputs, *weights);
  }

  void runCompiled(ModuleOp before, ModuleOp after, const std::string &passes,
                   const std::vector<interp::NamedTensor> &inputs, runtime::WeightSource &weights) {
    SCOPED_TRACE(passes + "\n" + printed(before));
    runtime::Result<Equivalence> both = compareForms(before, after, inputs, weights);
    ASSERT_TRUE(both.ok()) << both.status().message();
    CompileOptions options;
    options.passes = passes;
    runtime::Result<CompiledRun> run = compileAndRun(before, options, inputs, weights);
    ASSERT_TRUE(run.ok()) << run.status().message();
    double found = distance(run->results, both->before.results);
    ASSERT_LE(found, kCompiledTolerance);
    worstCompiled = std::max(worstCompiled, found);
    for (const auto &[name, times] : both->after.executed)
      executedCompiled[name] += static_cast<uint64_t>(times);
    ++meshes[run->mesh];
    ++compiled;
  }

  /// `draw` returns the text of a module and the passes that lower it to per-rank shapes. One in
  /// `compileEvery` cases is also compiled and run; none if it is 0.
  void runCases(uint64_t kind, uint64_t defaultCases, uint64_t compileEvery,
                ArrayRef<const char *> among,
                llvm::function_ref<std::pair<std::string, std::string>(Random &)> draw) {
    uint64_t seed = fromEnvironment("BRAID_DIFFERENTIAL_SEED", 20240917);
    uint64_t cases = fromEnvironment("BRAID_DIFFERENTIAL_CASES", defaultCases);
    std::cout << "BRAID_DIFFERENTIAL_SEED=" << seed << " BRAID_DIFFERENTIAL_CASES=" << cases
              << "\n";
    for (uint64_t i = 0; i < cases; ++i) {
      std::seed_seq sequence{uint32_t(seed), uint32_t(seed >> 32), uint32_t(i), uint32_t(kind)};
      Random random(sequence);
      auto [text, first] = draw(random);
      SCOPED_TRACE("case " + std::to_string(i));
      OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
      ASSERT_TRUE(module) << text;
      if (!first.empty())
        ASSERT_TRUE(apply(*module, first)) << text;
      ASSERT_NO_FATAL_FAILURE(
          runPasses(*module, random, seed + i, among, compileEvery && i % compileEvery == 0));
    }
    print("executed by rank 0:", executed);
    if (compileEvery) {
      print("executed by rank 0 of compiled programs:", executedCompiled);
      print("meshes:", meshes);
      std::cout << "compiled and run: " << compiled << "; largest relative L2: " << worstCompiled
                << " (allowed " << kCompiledTolerance << ")\n";
    }
    std::cout << "modules changed:";
    for (const char *pass : among)
      std::cout << "  " << pass << " " << changed[pass];
    std::cout << "\nlargest relative L2: " << worst << " (allowed " << kTolerance << ")\n";
    if (!isDefaultSize())
      return;
    for (const char *pass : among)
      EXPECT_GE(changed[pass], 20u) << pass;
  }

  Tally changed, executed, executedCompiled, meshes;
  double worst = 0, worstCompiled = 0;
  uint64_t compiled = 0;
};
} // namespace

TEST_F(Reorder, Exchanges) {
  runCases(/*kind=*/2, /*defaultCases=*/300, /*compileEvery=*/3, kCollectivePasses,
           [](Random &random) { return std::pair(buildExchange(random), std::string()); });
  if (!isDefaultSize())
    return;
  for (const Tally *tally : {&executed, &executedCompiled})
    for (const char *name : {"comm.all_reduce", "comm.reduce_scatter", "comm.all_gather",
                             "comm.part", "comm.all_to_all", "comm.all_to_all_v", "comm.reduce",
                             "comm.broadcast", "comm.permute", "comm.send", "comm.recv"})
      EXPECT_GE(tally->count(name) ? tally->at(name) : 0, 20u)
          << name << (tally == &executed ? "" : " in compiled programs");
}

// Parts of values between the collectives: passes move gathers past them, and not along the
// dimension that they cut.
TEST_F(Reorder, Parts) {
  runCases(/*kind=*/9, /*defaultCases=*/400, /*compileEvery=*/4, kCollectivePasses,
           [](Random &random) {
             return std::pair(buildExchange(random, /*parts=*/true), std::string());
           });
  if (!isDefaultSize())
    return;
  for (const Tally *tally : {&executed, &executedCompiled})
    for (const char *name : {"nn.slice", "nn.concat", "comm.all_gather", "comm.reduce_scatter"})
      EXPECT_GE(tally->count(name) ? tally->at(name) : 0, 20u)
          << name << (tally == &executed ? "" : " in compiled programs");
}

// Encoders have calls between layers. Passes that merge or remove collectives change nothing there.
TEST_F(Reorder, Encoders) {
  runCases(/*kind=*/3, /*defaultCases=*/90, /*compileEvery=*/0,
           {"braid-split-all-reduce", "braid-join-all-reduce", "braid-sink-all-gathers",
            "braid-hoist-all-gathers"},
           [](Random &random) {
             RandomModel model;
             do
               model = drawModel(random, {/*encoder=*/true});
             while (model.tp == 1);
             std::string options = "{strategy=auto mesh=" + model.mesh() + "},";
             return std::pair(buildModule(model, random),
                              "braid-pad-for-strategy" + options + "braid-apply-strategy" +
                                  options +
                                  "braid-propagate-shardings,braid-partition,"
                                  "braid-split-all-reduce");
           });
}

// The comparison is meaningful only if it detects a wrong program.
TEST_F(Reorder, AnotherReductionIsNoticed) {
  size_t changedModules = 0, noticed = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(buildExchange(random), &context);
    ASSERT_TRUE(module);
    OwningOpRef<ModuleOp> wrong = module->clone();
    bool any = false;
    wrong->walk([&](comm::ReduceScatterOp op) {
      any |= comm::groupSize(op, op.getGroup()) > 1 && !op->use_empty();
      op.setKind(comm::ReduceKind::Min);
    });
    if (!any)
      continue;
    ++changedModules;
    runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(*module, seed);
    ASSERT_TRUE(inputs.ok());
    std::unique_ptr<runtime::WeightSource> weights = runtime::WeightSource::random(seed);
    runtime::Result<Equivalence> result = compareForms(*module, *wrong, *inputs, *weights);
    noticed += !result.ok() || result->relativeL2 > 1e-3;
  }
  // Some changes do not affect a result.
  EXPECT_GE(changedModules, 10u);
  EXPECT_GE(3 * noticed, changedModules);
}
