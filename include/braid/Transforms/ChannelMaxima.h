//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which weights may take a factor of each channel of an activation from the weights before it, so
// that the model stays the same, and how large the activations are.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TRANSFORMS_CHANNELMAXIMA_H
#define BRAID_TRANSFORMS_CHANNELMAXIMA_H

#include "dialects/NN/IR/NN.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace braid {

/// Linear operations with one input, which nothing else uses, and what makes that: a normalization,
/// or a product with the result of a linear operation.
struct ChannelGroup {
  std::string name;   ///< for messages
  std::string result; ///< of the entry: max |x| of each channel
  /// The scale and the shift of a normalization, or weight (by rows) and bias of a linear
  /// operation.
  std::vector<nn::ParameterOp> divided;
  std::vector<nn::ParameterOp> multiplied; ///< weights [out, in], by columns
  /// Why the weights cannot change; empty if they can. Parameters may then be null.
  std::string obstacle;
};

/// Finds the groups of an unpartitioned model, and gives its entry a result for each.
mlir::FailureOr<std::vector<ChannelGroup>> recordChannelMaxima(mlir::ModuleOp module);

} // namespace braid
#endif // BRAID_TRANSFORMS_CHANNELMAXIMA_H
