//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_IMPORT_LLAMA_H
#define BRAID_LIB_IMPORT_LLAMA_H

#include "Checkpoint.h"
#include "Config.h"
#include "braid/Import/HuggingFace.h"

namespace braid {

/// A decoder of the LLaMA family: `logits` of LlamaForCausalLM, `last_hidden_state` of LlamaModel.
/// `checkpoint` may be null.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importLlama(mlir::MLIRContext *context, const ImportOptions &options, const Config &config,
            const Checkpoint *checkpoint, llvm::StringRef modelName);

} // namespace braid
#endif // BRAID_LIB_IMPORT_LLAMA_H
