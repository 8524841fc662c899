//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random programs whose parts overlap: collectives in flight on several queues, beside computation
// and across calls, with states that change in place, and pipelines whose stages run functions of
// their own. The interpreter, the program interpreter in random orders of the queues, and
// the executor must give the results of the program that runs one operation after another.
// BRAID_DIFFERENTIAL_SEED and BRAID_DIFFERENTIAL_CASES select the cases.
//
//===----------------------------------------------------------------------===//
#include "Compiled.h"
#include "RandomExchange.h"
#include "RandomOverlap.h"
#include "Testing.h"

#include "dialects/NN/IR/NN.h"
#include "test/lib/Interpreter/Equivalence.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <iostream>

using namespace mlir;
using namespace braid;
using namespace braid::test;

namespace {
constexpr double kTolerance = 1e-12;

struct Overlap : DifferentialTest {
  void runCase(ModuleOp before, Random &random, uint64_t seed) {
    OwningOpRef<ModuleOp> after = before.clone();
    Tally drawn;
    ASSERT_TRUE(overlap(*after, random, drawn));
    SCOPED_TRACE(printed(before) + printed(*after));
    ASSERT_TRUE(apply(*after, "braid-verify-level{level=scheduled}"));
    runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(before, seed);
    ASSERT_TRUE(inputs.ok()) << inputs.status().message();
    std::unique_ptr<runtime::WeightSource> weights = runtime::WeightSource::random(seed);
    runtime::Result<Equivalence> forms = compareForms(before, *after, *inputs, *weights);
    ASSERT_TRUE(forms.ok()) << forms.status().message();
    ASSERT_LE(forms->relativeL2, kTolerance);
    runtime::Result<CompiledRun> run = compileAndRun(*after, {}, *inputs, *weights, /*orders=*/3);
    ASSERT_TRUE(run.ok()) << run.status().message();
    const double found = distance(run->results, forms->before.results);
    ASSERT_LE(found, kCompiledTolerance);
    ASSERT_LE(distance(run->resultsInOrders, forms->before.results), kCompiledTolerance);
    worst = std::max(worst, found);
    for (const auto &[name, times] : drawn)
      tally[name] += times;
    before.walk([&](func::CallOp call) { tally["calls on a place"] += call->hasAttr("comm.on"); });
    before.walk([&](func::FuncOp function) {
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        tally["states"] += function.getArgAttr(i, nn::NNDialect::kStateAttrName) != nullptr;
    });
    for (const auto &[name, times] : forms->after.executed)
      executed[name] += static_cast<uint64_t>(times);
  }

  Tally tally, executed;
  double worst = 0;
};
} // namespace

TEST_F(Overlap, KeepsTheResults) {
  const uint64_t seed = fromEnvironment("BRAID_DIFFERENTIAL_SEED", 20261123);
  const uint64_t cases = fromEnvironment("BRAID_DIFFERENTIAL_CASES", 240);
  std::cout << "BRAID_DIFFERENTIAL_SEED=" << seed << " BRAID_DIFFERENTIAL_CASES=" << cases << "\n";
  for (uint64_t i = 0; i < cases && !HasFatalFailure(); ++i) {
    std::seed_seq sequence{uint32_t(seed), uint32_t(seed >> 32), uint32_t(i), uint32_t(21)};
    Random random(sequence);
    const std::string text =
        i % 4 == 3 ? buildStages(random)
                   : buildExchange(random, /*parts=*/i % 2, /*states=*/i % 4 == 1 || i % 4 == 2);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    SCOPED_TRACE("case " + std::to_string(i));
    runCase(*module, random, seed + i);
  }
  print("forms compiled and run:", tally);
  print("executed by rank 0:", executed);
  std::cout << "largest relative L2: " << worst << " (allowed " << kCompiledTolerance << ")\n";
  if (!isDefaultSize())
    return;
  for (const char *name : {"calls", "handed out in flight", "taken in flight", "started on queue 0",
                           "started on queue 1", "started on queue 2",
                           "waited for by a communication queue", "states", "calls on a place"})
    EXPECT_GE(tally[name], 50U) << name;
  for (const char *name : {"nn.slice", "nn.concat", "comm.all_reduce", "comm.reduce_scatter",
                           "comm.all_gather", "comm.send", "comm.recv"})
    EXPECT_GE(executed[name], 50U) << name;
}
