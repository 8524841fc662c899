//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Boxes in parts of bounded size.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SESSION_PARTS_H
#define BRAID_SESSION_PARTS_H

#include "braid/Base/Mesh.h"

#include <functional>

namespace braid::runtime {

int64_t elementsOf(const Box &box);
/// Calls `take` with the contiguous parts of a box, none above `limit` elements, and where in the
/// box each begins.
Status forEachChunk(const Box &box, int64_t limit,
                    const std::function<Status(const Box &, int64_t)> &take);

} // namespace braid::runtime
#endif // BRAID_SESSION_PARTS_H
