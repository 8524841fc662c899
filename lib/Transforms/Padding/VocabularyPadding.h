//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Padding of the embedding table and the head of a model whose vocabulary an axis does not divide.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_VOCABULARYPADDING_H
#define BRAID_LIB_TRANSFORMS_VOCABULARYPADDING_H

#include "mlir/IR/BuiltinOps.h"

namespace braid {

/// Roles of the operations that have a vocabulary.
inline constexpr llvm::StringLiteral kWordRole = "embedding.word", kHeadRole = "lm_head";

/// Walks the embeddings of words and the heads of a model: the operation, its weight with a row for
/// each word, and whether it is a head.
mlir::WalkResult walkVocabularies(
    mlir::ModuleOp module,
    llvm::function_ref<mlir::WalkResult(mlir::Operation *, mlir::OpOperand &, bool)> visit);

/// Pads the rows of tables, heads and logits to a multiple of `ranks`, and states on the embedding
/// and the entry's result where padding begins. Returns the number of padded operations. An
/// obstacle is an error, or with `wherePossible` a remark, and then nothing is padded; neither is a
/// model without a head.
mlir::FailureOr<int64_t> padVocabulary(mlir::ModuleOp module, int64_t ranks, bool wherePossible);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_VOCABULARYPADDING_H
