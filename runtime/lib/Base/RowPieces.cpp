//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/RowPieces.h"

#include <algorithm>

namespace braid::runtime {

int64_t rowPieces(const EncodingPair &encodings, int64_t rows, int64_t columns, int64_t ranks) {
  const auto &[reduce, gather] = encodings;
  const int64_t unit =
      reduce.isCast() && gather.isCast() ? 1 : std::max(reduce.group, gather.group);
  const bool nested =
      reduce.isCast() || gather.isCast() || unit % std::min(reduce.group, gather.group) == 0;
  if (rows % ranks == 0 || !nested || columns % unit != 0)
    return 1;
  for (int64_t pieces = 2; pieces <= ranks; ++pieces)
    if ((columns / unit) % pieces == 0 && rows * pieces % ranks == 0)
      return pieces;
  return 1;
}

} // namespace braid::runtime
