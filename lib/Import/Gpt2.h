//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_IMPORT_GPT2_H
#define BRAID_LIB_IMPORT_GPT2_H

#include "Checkpoint.h"
#include "Config.h"
#include "braid/Import/HuggingFace.h"

namespace braid {

/// GPT-2: `logits` of GPT2LMHeadModel, `last_hidden_state` of GPT2Model. `checkpoint` may be null.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importGpt2(mlir::MLIRContext *context, const ImportOptions &options, const Config &config,
           const Checkpoint *checkpoint, llvm::StringRef modelName);

} // namespace braid
#endif // BRAID_LIB_IMPORT_GPT2_H
