//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_IMPORT_BERT_H
#define BRAID_LIB_IMPORT_BERT_H

#include "Checkpoint.h"
#include "Config.h"
#include "braid/Import/HuggingFace.h"

namespace braid {

/// An encoder of the BERT family. `checkpoint` may be null.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importBert(mlir::MLIRContext *context, const ImportOptions &options, const Config &config,
           const Checkpoint *checkpoint, llvm::StringRef modelName);

/// RoBERTa and the families of its architecture, which count positions by tokens.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importRoberta(mlir::MLIRContext *context, const ImportOptions &options, const Config &config,
              const Checkpoint *checkpoint, llvm::StringRef modelName);

} // namespace braid
#endif // BRAID_LIB_IMPORT_BERT_H
