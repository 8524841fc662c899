//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random models on random meshes under random passes, through every level: the interpreter on one
// logical device against the interpreter on the rewritten and the scheduled program, and against
// the compiled program on the CPU. BRAID_DIFFERENTIAL_SEED and BRAID_DIFFERENTIAL_CASES select the
// cases.
//
//===----------------------------------------------------------------------===//
#include "Compiled.h"
#include "RandomModel.h"
#include "Testing.h"

#include "test/lib/Interpreter/Equivalence.h"

#include "mlir/Parser/Parser.h"

#include <iostream>

using namespace mlir;
using namespace braid;
using namespace braid::test;

namespace {
/// Between two interpreter runs in f64, which add in different orders.
constexpr double kInterpreterTolerance = 1e-12;
/// The minimum number of times that each name occurs in a run of the default size.
constexpr uint64_t kLeast = 20;

struct Case {
  explicit Case(const RandomModel &model, Random &random)
      : text(buildModule(model, random)), about(model.describe()),
        runsOnInterpreterOnly(model.experts || model.dropout || model.loss),
        strategy(model.strategy), mesh(model.mesh()) {}
  std::string text, about;
  bool runsOnInterpreterOnly; ///< has operations that no kernel computes
  std::string strategy;       ///< empty: the shardings in the text
  std::string mesh;
};

/// Mostly a strategy, sometimes random shardings.
ModelKind drawKind(Random &random, bool encoder) {
  return {encoder, random() % 3 == 0 ? ModelKind::Shardings : ModelKind::Auto};
}

struct Models : DifferentialTest {
  Tally executed, changed, meshes;
  double worstInterpreted = 0, worstCompiled = 0;
  uint64_t compiled = 0;

  /// Runs cases of one kind. One in `compileEvery` cases is also compiled and run; none if it is 0.
  void runCases(uint32_t kind, uint64_t defaultCases, uint64_t compileEvery,
                llvm::function_ref<Case(Random &)> draw) {
    uint64_t seed = fromEnvironment("BRAID_DIFFERENTIAL_SEED", 20240917);
    uint64_t cases = fromEnvironment("BRAID_DIFFERENTIAL_CASES", defaultCases);
    std::cout << "BRAID_DIFFERENTIAL_SEED=" << seed << " BRAID_DIFFERENTIAL_CASES=" << cases
              << "\n";
    for (uint64_t i = 0; i < cases && !HasFailure(); ++i) {
      std::seed_seq sequence{uint32_t(seed), uint32_t(seed >> 32), uint32_t(i), kind};
      Random random(sequence);
      Case one = draw(random);
      SCOPED_TRACE("case " + std::to_string(i) + ": " + one.about + "\n" + one.text);
      runCase(one, random, seed + i, compileEvery && i % compileEvery == 0);
    }
    print("executed by rank 0:", executed);
    print("modules changed:", changed);
    print("meshes:", meshes);
    std::cout << "compiled and run: " << compiled << "; largest relative L2: interpreter "
              << worstInterpreted << " (allowed " << kInterpreterTolerance << "), compiled "
              << worstCompiled << " (allowed " << kCompiledTolerance << ")\n";
  }

  void runCase(const Case &one, Random &random, uint64_t seed, bool compile) {
    OwningOpRef<ModuleOp> model = parseSourceString<ModuleOp>(one.text, &context);
    ASSERT_TRUE(model);
    std::string options = "{mesh=" + one.mesh + " strategy=" + one.strategy + "},", strategy;
    if (!one.strategy.empty())
      strategy = "braid-pad-for-strategy" + options + "braid-apply-strategy" + options;
    OwningOpRef<ModuleOp> rewritten = transformed(
        *model, strategy + "braid-propagate-shardings,braid-partition,canonicalize,cse");
    ASSERT_TRUE(rewritten);
    // One pass at a time, to see which pass changes the module. Most change something only after an
    // all_reduce has been split.
    std::string passes, text = printed(*rewritten);
    for (size_t count = random() % 8, i = 0; i < count; ++i) {
      size_t index = i == 0 && random() % 2 ? 0 : random() % std::size(kCollectivePasses);
      const char *pass = kCollectivePasses[index];
      passes += (passes.empty() ? "" : ",") + std::string(pass);
      ASSERT_TRUE(apply(*rewritten, pass)) << passes;
      std::string now = printed(*rewritten);
      changed[pass] += now != text;
      text = now;
    }
    SCOPED_TRACE("passes " + passes);

    runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(*model, seed);
    ASSERT_TRUE(inputs.ok()) << inputs.status().message();
    LargeWeights weights(seed);
    OwningOpRef<ModuleOp> scheduled = transformed(*rewritten, "braid-start-collectives");
    ASSERT_TRUE(scheduled);
    interp::Evaluation whole;
    for (ModuleOp form : {*rewritten, *scheduled}) {
      runtime::Result<Equivalence> result = compareForms(*model, form, *inputs, weights);
      ASSERT_TRUE(result.ok()) << result.status().message() << text;
      ASSERT_LE(result->relativeL2, kInterpreterTolerance) << text;
      worstInterpreted = std::max(worstInterpreted, result->relativeL2);
      for (const auto &[name, times] : result->after.executed)
        executed[name] += static_cast<uint64_t>(times);
      whole = std::move(result->before);
    }
    if (compile && !one.strategy.empty() && !one.runsOnInterpreterOnly)
      runCompiled(*model, one, passes, *inputs, weights, whole);
  }

  void runCompiled(ModuleOp model, const Case &one, const std::string &passes,
                   const std::vector<interp::NamedTensor> &inputs, runtime::WeightSource &weights,
                   const interp::Evaluation &whole) {
    CompileOptions options;
    options.strategy = one.strategy;
    options.mesh = one.mesh;
    options.passes = passes;
    runtime::Result<CompiledRun> run = compileAndRun(model, options, inputs, weights);
    ASSERT_TRUE(run.ok()) << run.status().message();
    ++meshes[run->mesh];
    double found = distance(run->results, whole.results);
    ASSERT_LE(found, kCompiledTolerance);
    worstCompiled = std::max(worstCompiled, found);
    ++compiled;
  }

  void expectTookPart(const Tally &tally, llvm::ArrayRef<const char *> names) const {
    if (!isDefaultSize())
      return;
    for (const char *name : names)
      EXPECT_GE(tally.count(name) ? tally.at(name) : 0, kLeast) << name;
  }
};
} // namespace

TEST_F(Models, Encoders) {
  runCases(/*kind=*/4, /*defaultCases=*/200, /*compileEvery=*/2, [](Random &random) {
    return Case(drawModel(random, drawKind(random, /*encoder=*/true)), random);
  });
  expectTookPart(executed,
                 {"nn.embedding", "nn.linear", "nn.split_heads", "nn.merge_heads", "nn.attention",
                  "nn.layer_norm", "nn.activation", "nn.add", "comm.all_reduce", "comm.all_gather",
                  "comm.reduce_scatter", "comm.part"});
}

TEST_F(Models, Decoders) {
  runCases(/*kind=*/5, /*defaultCases=*/400, /*compileEvery=*/2, [](Random &random) {
    return Case(drawModel(random, drawKind(random, /*encoder=*/false)), random);
  });
  expectTookPart(executed,
                 {"nn.embedding", "nn.linear", "nn.attention", "nn.layer_norm", "nn.rms_norm",
                  "nn.activation", "nn.mul", "nn.rotary", "nn.rotary_table", "nn.add",
                  "comm.all_reduce", "comm.all_gather", "comm.reduce_scatter", "comm.part"});
  // Passes that fuse, merge or remove collectives change few models; RandomExchange exercises them.
  expectTookPart(changed,
                 {"braid-split-all-reduce", "braid-join-all-reduce", "braid-sink-all-gathers",
                  "braid-hoist-all-gathers", "braid-unfuse-reduce-scatter"});
}

// Operations that the compiled program does not support yet.
TEST_F(Models, ReferenceOperations) {
  runCases(/*kind=*/7, /*defaultCases=*/120, /*compileEvery=*/0, [](Random &random) {
    ModelKind kind{/*encoder=*/random() % 4 == 0,
                   random() % 2 ? ModelKind::Shardings : ModelKind::Auto, /*reference=*/true};
    return Case(drawModel(random, kind), random);
  });
  expectTookPart(executed, {"nn.iota", "nn.dropout", "nn.router", "nn.dispatch", "nn.combine",
                            "nn.cross_entropy"});
}

// Layers that compute in parts and put them together again.
TEST_F(Models, Parts) {
  runCases(/*kind=*/8, /*defaultCases=*/200, /*compileEvery=*/2, [](Random &random) {
    constexpr ModelKind::Plan kPlans[] = {ModelKind::Shardings, ModelKind::Auto,
                                          ModelKind::Strategy};
    ModelKind kind{/*encoder=*/random() % 4 == 0, kPlans[random() % std::size(kPlans)]};
    kind.parts = true;
    return Case(drawModel(random, kind), random);
  });
  expectTookPart(executed, {"nn.slice", "nn.concat", "comm.all_reduce", "comm.all_gather",
                            "comm.reduce_scatter", "comm.part"});
}

// Sequences and batches that the mesh does not divide.
TEST_F(Models, AnyRows) {
  uint64_t sequences = 0, batches = 0;
  runCases(/*kind=*/9, /*defaultCases=*/300, /*compileEvery=*/2, [&](Random &random) {
    ModelKind kind{/*encoder=*/random() % 4 == 0,
                   random() % 3 == 0 ? ModelKind::Auto : ModelKind::Strategy};
    // With a sharded vocabulary there is no loss.
    kind.reference = kind.plan == ModelKind::Auto;
    kind.anyRows = true;
    RandomModel model = drawModel(random, kind);
    sequences += model.hasPaddedSequence();
    batches += model.hasPaddedBatch();
    return Case(model, random);
  });
  std::cout << "padded sequences: " << sequences << ", batches: " << batches << "\n";
  expectTookPart(executed, {"nn.slice", "nn.concat", "nn.dropout", "nn.router", "nn.cross_entropy",
                            "comm.all_reduce", "comm.all_gather", "comm.reduce_scatter"});
  if (isDefaultSize()) {
    EXPECT_GE(sequences, kLeast);
    EXPECT_GE(batches, kLeast);
  }
}

// Heads, feed-forward dimensions and vocabularies that the axis does not divide, sequence
// parallelism, and layers with parallel attention and feed-forward.
TEST_F(Models, Strategies) {
  Tally strategies;
  uint64_t padded = 0, vocabularies = 0, parallel = 0;
  runCases(/*kind=*/6, /*defaultCases=*/400, /*compileEvery=*/4, [&](Random &random) {
    RandomModel model = drawModel(random, {/*encoder=*/random() % 4 == 0, ModelKind::Strategy});
    ++strategies[model.strategy];
    padded += model.isPadded();
    vocabularies += model.hasPaddedVocabulary();
    parallel += model.parallel && model.tp > 1;
    return Case(model, random);
  });
  print("strategies:", strategies);
  std::cout << "padded: " << padded << ", vocabularies: " << vocabularies
            << ", parallel blocks: " << parallel << "\n";
  expectTookPart(strategies, {"tp", "tp-sp", "tp,vocab", "tp-sp,vocab", "tp-sp,vocab,dp"});
  if (isDefaultSize()) {
    EXPECT_GE(padded, kLeast);
    EXPECT_GE(vocabularies, kLeast);
    EXPECT_GE(parallel, kLeast);
  }
}
