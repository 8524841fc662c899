//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Selection of elements and rows: verifiers, and the cost of nn.top_k.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

using namespace mlir;
using namespace braid::nn;

//===----------------------------------------------------------------------===//
// nn.top_k
//===----------------------------------------------------------------------===//

LogicalResult TopKOp::verify() {
  ArrayRef<int64_t> input = shapeOf(getInput()), values = shapeOf(getValues());
  const int64_t k = values.empty() ? 0 : values.back();
  if (input.empty() || values.size() != input.size() || values.drop_back() != input.drop_back() ||
      k < 1 || k > input.back() || values != shapeOf(getIndices()))
    return emitOpError("expects values and indices of the input's shape with 1 to all of its last "
                       "dimension, got ")
           << text(input) << ", " << text(values) << " and " << text(shapeOf(getIndices()))
           << " [nn.top_k_c1]";
  if (failed(verifySameElementType(*this, {getInput(), getValues()}, "nn.top_k_c2")))
    return failure();
  if (typeOf(getIndices()).getElementType().isInteger(32) && input.back() > INT32_MAX)
    return emitOpError("expects indices of i64 for a last dimension of ")
           << input.back() << " [nn.top_k_c3]";
  return success();
}

OpCost TopKOp::getCost() {
  OpCost cost;
  cost.vectorFlops = SaturatingCount(elements(getInput())).getValue(); // a comparison each
  cost.bytesRead = bytes(getInput());
  cost.bytesWritten = bytes(getValues()) + bytes(getIndices());
  cost.bytesSaved = bytes(getIndices());
  return cost;
}

//===----------------------------------------------------------------------===//
// nn.last_token
//===----------------------------------------------------------------------===//

LogicalResult LastTokenOp::verify() {
  ArrayRef<int64_t> input = shapeOf(getInput());
  if (failed(verifyShape(*this, "a mask", input.take_front(2), shapeOf(getMask()),
                         "nn.last_token_c1")) ||
      failed(verifyShape(*this, "a result", {input[0], 1, input[2]}, shapeOf(getResult()),
                         "nn.last_token_c2")))
    return failure();
  return verifySameElementType(*this, {getInput(), getResult()}, "nn.last_token_c3");
}
