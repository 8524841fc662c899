//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The table of words and the head of a model whose vocabulary an axis does not divide.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_VOCABULARYPADDING_H
#define BRAID_LIB_TRANSFORMS_VOCABULARYPADDING_H

#include "mlir/IR/BuiltinOps.h"

namespace braid {

/// Roles of the operations that have a vocabulary.
inline constexpr llvm::StringLiteral kWordRole = "embedding.word", kHeadRole = "lm_head";

/// Gives tables, heads and logits as many rows that `parts` divides them, and says of the embedding
/// and of the entry's result where padding begins. Returns how many operations were padded. What
/// cannot be padded is an error; `wherePossible`, a remark, and then nothing is padded, nor is it
/// without a head.
mlir::FailureOr<int64_t> padVocabulary(mlir::ModuleOp module, int64_t parts, bool wherePossible);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_VOCABULARYPADDING_H
