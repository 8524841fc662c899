//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Boxes in chunks of bounded size.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_MODEL_CHUNKS_H
#define BRAID_MODEL_CHUNKS_H

#include "braid/Base/Mesh.h"

#include <functional>

namespace braid::runtime {

int64_t elementsOf(const Box &box);
/// Calls `take(chunk, begin)` for contiguous chunks of a box, of at most `limit` elements each,
/// that begin at element `begin` of the box, until one fails.
Status forEachChunk(const Box &box, int64_t limit,
                    const std::function<Status(const Box &, int64_t)> &take, int64_t begin = 0);

} // namespace braid::runtime
#endif // BRAID_MODEL_CHUNKS_H
