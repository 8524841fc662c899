//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_COMM_COMMPATTERNS_H
#define BRAID_DIALECTS_COMM_COMMPATTERNS_H

namespace mlir {
class RewritePatternSet;
} // namespace mlir

namespace braid::comm {

/// Removes collectives none of whose results is used, and values of the others that are not. Part
/// of canonicalization too.
void populateRemoveDeadCollectivesPatterns(mlir::RewritePatternSet &patterns);

} // namespace braid::comm
#endif // BRAID_DIALECTS_COMM_COMMPATTERNS_H
