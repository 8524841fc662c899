//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How an encoded all_reduce cuts rows so that its ranks add as much as each other. The expansion of
// encoded collectives and the kernels that only have their errors share it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_ROWPIECES_H
#define BRAID_BASE_ROWPIECES_H

#include "braid/Base/Encoding.h"

namespace braid::runtime {

/// Into how many pieces each of `rows` rows of `columns` is cut for `ranks` ranks: 1 if the rows
/// divide, or if no number of whole groups of both encodings does.
int64_t rowPieces(const EncodingPair &encodings, int64_t rows, int64_t columns, int64_t ranks);

} // namespace braid::runtime
#endif // BRAID_BASE_ROWPIECES_H
