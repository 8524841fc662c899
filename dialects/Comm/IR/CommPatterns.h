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

/// Removes collectives without used results, and unused values of other collectives.
/// Canonicalization includes these patterns.
void populateRemoveDeadCollectivesPatterns(mlir::RewritePatternSet &patterns);

} // namespace braid::comm
#endif // BRAID_DIALECTS_COMM_COMMPATTERNS_H
