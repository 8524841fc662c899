//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/Comm/IR/Bounds.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace mlir;

namespace braid {

int64_t saturatingProduct(ArrayRef<int64_t> factors) {
  int64_t product = 1;
  bool overflows = false;
  for (int64_t factor : factors) {
    if (factor == 0)
      return 0;
    overflows |= llvm::MulOverflow(product, factor, product);
  }
  return overflows ? std::numeric_limits<int64_t>::max() : product;
}

bool isBounded(ShapedType type) {
  SmallVector<int64_t> sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(std::max<int64_t>(size, 1));
  return saturatingProduct(sizes) <= kMaxElements;
}

LogicalResult verifyBounded(ShapedType type, function_ref<InFlightDiagnostic()> emitError,
                            StringRef id) {
  if (isBounded(type))
    return success();
  return emitError() << "expects at most 2^48 elements, got " << type << " [" << id << "]";
}

int64_t elementBytes(ShapedType type) {
  Type element = type.getElementType();
  return element.isIntOrFloat() ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8) : 8;
}

} // namespace braid
