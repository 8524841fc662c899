//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by the differential tests: the seed, weights, and passes by name.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_DIFFERENTIAL_TESTING_H
#define BRAID_TEST_UNIT_DIFFERENTIAL_TESTING_H

#include "braid/Base/Weights.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace braid::test {

/// Reads BRAID_DIFFERENTIAL_SEED or BRAID_DIFFERENTIAL_CASES.
uint64_t fromEnvironment(const char *name, uint64_t otherwise);
/// Whether neither is set. A run of selected cases may be too small to reach everything.
bool isDefaultSize();

/// Standard random weights have a deviation of 0.02, which makes attention nearly uniform. These
/// weights are larger.
class LargeWeights : public runtime::WeightSource {
public:
  explicit LargeWeights(uint64_t seed) : source(runtime::WeightSource::random(seed)) {}
  std::string describe() const override { return "25 times " + source->describe(); }
  std::vector<runtime::TensorInfo> tensors() const override { return {}; }
  runtime::Status read(const runtime::Parameter &parameter, const runtime::Box &box,
                       void *dest) override;

private:
  std::unique_ptr<runtime::WeightSource> source;
};

/// Counts of executed operations and other features, by name.
using Tally = std::map<std::string, uint64_t>;
void print(const char *title, const Tally &tally);

/// A context with the dialects of models, and passes registered by name.
struct DifferentialTest : ::testing::Test {
  DifferentialTest();

  /// Runs passes in place, and the check of placements if the module is partitioned then. Prints
  /// diagnostics and returns false if one fails.
  bool apply(mlir::ModuleOp module, const std::string &passes);
  /// Runs passes on a copy. Returns null if one fails.
  mlir::OwningOpRef<mlir::ModuleOp> transformed(mlir::ModuleOp module, const std::string &passes);

  mlir::MLIRContext context;
};

/// Passes that rewrite collectives of partitioned modules.
inline constexpr const char *kCollectivePasses[] = {
    "braid-split-all-reduce",  "braid-join-all-reduce",     "braid-sink-all-gathers",
    "braid-hoist-all-gathers", "braid-fuse-reduce-scatter", "braid-unfuse-reduce-scatter",
    "braid-merge-collectives", "braid-unmerge-collectives", "braid-remove-dead-collectives",
};

std::string printed(mlir::ModuleOp module);

} // namespace braid::test
#endif // BRAID_TEST_UNIT_DIFFERENTIAL_TESTING_H
