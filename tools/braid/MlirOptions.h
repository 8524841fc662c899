//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// MLIR's own options for passes: timing, statistics, printing of the IR, crash reproducers.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOLS_BRAID_MLIROPTIONS_H
#define BRAID_TOOLS_BRAID_MLIROPTIONS_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

namespace braid::tool {

/// Applies the options that takeMlirOptions has read to pass managers. Its destructor prints times.
class PassInstruments {
public:
  PassInstruments();
  mlir::LogicalResult apply(mlir::PassManager &manager);

private:
  mlir::DefaultTimingManager timing;
  mlir::TimingScope root;
};

} // namespace braid::tool
#endif // BRAID_TOOLS_BRAID_MLIROPTIONS_H
