//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The check of placements against the interpreter: random models, partitioned and rewritten, are
// accepted; a program with one fault is refused whenever its results differ.
// BRAID_DIFFERENTIAL_SEED and BRAID_DIFFERENTIAL_CASES select the cases.
//
//===----------------------------------------------------------------------===//
#include "Mutation.h"
#include "RandomModel.h"
#include "Testing.h"

#include "braid/Transforms/Passes.h"
#include "test/lib/Interpreter/Equivalence.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <iostream>

using namespace mlir;
using namespace braid;
using namespace braid::test;

namespace {
/// Results of a mutant that differ less are the same.
constexpr double kSame = 1e-9;

struct Placement : DifferentialTest {
  Placement() { context.loadDialect<tensor::TensorDialect>(); }

  /// Whether the check accepts the module; its messages are dropped.
  bool accepts(ModuleOp module) {
    ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
    PassManager manager(&context);
    manager.addPass(createCheckPlacements());
    return succeeded(manager.run(module));
  }

  void mutate(ModuleOp module, Random &random, uint64_t seed, size_t count) {
    std::vector<Mutation> mutations = mutationsOf(module);
    std::shuffle(mutations.begin(), mutations.end(), random);
    runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(module, seed);
    ASSERT_TRUE(inputs.ok()) << inputs.status().message();
    LargeWeights weights(seed);
    for (const Mutation &mutation : ArrayRef(mutations).take_front(count)) {
      OwningOpRef<ModuleOp> mutant = module.clone();
      applyMutation(*mutant, mutation);
      ASSERT_TRUE(succeeded(verify(*mutant))) << mutation.kind << "\n" << printed(*mutant);
      bool accepted = accepts(*mutant);
      runtime::Result<Equivalence> result = compareForms(module, *mutant, *inputs, weights);
      bool differs = !result.ok() || result->relativeL2 > kSame;
      ++mutants[mutation.kind];
      differing[mutation.kind] += differs;
      refused[mutation.kind] += !accepted;
      unseen[mutation.kind] += differs && accepted;
      // A permutation that moves parts to where no sharding has them gives each rank a value of its
      // own, as in a ring, and nothing is known of it then.
      if (mutation.kind == "other pairs")
        continue;
      EXPECT_FALSE(differs && accepted)
          << mutation.kind << ", which is accepted: "
          << (result.ok() ? "relative L2 " + std::to_string(result->relativeL2)
                          : result.status().message())
          << "\n"
          << printed(module) << printed(*mutant);
    }
  }

  Tally mutants, differing, refused, unseen;
};
} // namespace

TEST_F(Placement, MutantsThatDifferAreRefused) {
  uint64_t seed = fromEnvironment("BRAID_DIFFERENTIAL_SEED", 20240917);
  uint64_t cases = fromEnvironment("BRAID_DIFFERENTIAL_CASES", 240);
  std::cout << "BRAID_DIFFERENTIAL_SEED=" << seed << " BRAID_DIFFERENTIAL_CASES=" << cases << "\n";
  for (uint64_t i = 0; i < cases && !HasFailure(); ++i) {
    std::seed_seq sequence{uint32_t(seed), uint32_t(seed >> 32), uint32_t(i), uint32_t(11)};
    Random random(sequence);
    ModelKind kind;
    kind.encoder = i % 2;
    kind.plan = std::array{ModelKind::Auto, ModelKind::Strategy, ModelKind::Shardings}[i % 3];
    if (kind.plan == ModelKind::Strategy)
      kind.encoder = false;
    kind.reference = i % 5 == 0 && kind.plan != ModelKind::Strategy;
    RandomModel drawn = drawModel(random, kind);
    SCOPED_TRACE("case " + std::to_string(i) + ": " + drawn.describe());
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(buildModule(drawn, random), &context);
    ASSERT_TRUE(module);
    std::string options = "{mesh=" + drawn.mesh() + " strategy=" + drawn.strategy + "},", strategy;
    if (!drawn.strategy.empty())
      strategy = "braid-pad-for-strategy" + options + "braid-apply-strategy" + options;
    // Accepted, like after every pass.
    ASSERT_TRUE(apply(*module, strategy + (i % 4 < 2 ? "braid-delay-biases," : "") +
                                   "braid-propagate-shardings,braid-partition,canonicalize,cse"));
    for (size_t n = random() % 4; n-- > 0;)
      ASSERT_TRUE(apply(*module, kCollectivePasses[random() % std::size(kCollectivePasses)]));
    mutate(*module, random, seed + i, 8);
  }
  print("mutants:", mutants);
  print("with other results:", differing);
  print("refused:", refused);
  print("with other results and accepted:", unseen);
  if (!isDefaultSize())
    return;
  for (const char *name : {"drop an all_reduce", "reduce twice", "a maximum instead of a sum",
                           "broadcast instead of all_reduce", "bias before the reduction",
                           "over another axis", "gather along another dimension",
                           "a result in parts declared whole", "a whole result declared in parts"})
    EXPECT_GE(differing.count(name) ? differing.at(name) : 0, 20u) << name;
}
