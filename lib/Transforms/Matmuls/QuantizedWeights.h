//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The two parts of quantized weights, which functions pass on as they do weights.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_QUANTIZEDWEIGHTS_H
#define BRAID_LIB_TRANSFORMS_QUANTIZEDWEIGHTS_H

#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace braid {

/// Why a weight cannot be quantized when it is loaded; empty if it can: it is a parameter, or the
/// argument of a function that all calls give parameters.
std::string weightObstacle(mlir::Value weight);

/// A location whose name is that of `loc` and `suffix`.
mlir::Location named(mlir::Location loc, llvm::StringRef suffix);

class QuantizedWeights {
public:
  struct Parts {
    mlir::Value values, scales;
  };

  explicit QuantizedWeights(mlir::ModuleOp module) : module(module) {}

  /// The parts of a weight without an obstacle. Parameters and arguments are added beside those of
  /// the weight, once.
  Parts get(mlir::Value weight);
  /// Erases the arguments, operands and parameters of weights that nothing uses any more.
  void eraseUnused();

private:
  Parts splitParameter(nn::ParameterOp parameter);
  Parts splitArgument(mlir::BlockArgument argument);

  mlir::ModuleOp module;
  llvm::MapVector<mlir::Value, Parts> known;
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_QUANTIZEDWEIGHTS_H
