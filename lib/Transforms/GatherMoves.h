//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What sinking and hoisting all_gathers share: rounds over the module until nothing moves.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_GATHERMOVES_H
#define BRAID_LIB_TRANSFORMS_GATHERMOVES_H

#include "CollectiveUtils.h"

#include "braid/Transforms/ShardingUtils.h"

namespace braid {

/// How often a gather has moved.
struct GatherMoves {
  int64_t past = 0, intoCalls = 0, outOfCalls = 0;

  GatherMoves &operator+=(const GatherMoves &other) {
    past += other.past;
    intoCalls += other.intoCalls;
    outOfCalls += other.outOfCalls;
    return *this;
  }
};

/// Every round has a `MoverT` of its own, as what one knows of the module is no longer true when it
/// has moved something. `run` tells whether it has; when not, `explain` says why. The rounds end if
/// every step of a mover brings a gather nearer to one end of the program, as no function is
/// recursive.
template <typename MoverT>
mlir::FailureOr<GatherMoves> moveGathers(mlir::ModuleOp module, bool acrossCalls) {
  GatherMoves moves;
  if (collectivesIn<comm::AllGatherOp>(module).empty())
    return moves;
  mlir::FailureOr<comm::MeshOp> mesh = getModuleMesh(module);
  if (failed(mesh))
    return mlir::failure();
  for (bool changed = true; changed;) {
    MoverT mover(module, *mesh, acrossCalls);
    changed = mover.run();
    moves += mover.moves;
    if (!changed)
      mover.explain();
  }
  return moves;
}

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_GATHERMOVES_H
