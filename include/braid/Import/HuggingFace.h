//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Imports a Hugging Face model directory to nn IR.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_IMPORT_HUGGINGFACE_H
#define BRAID_IMPORT_HUGGINGFACE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>
#include <string>

namespace braid {

struct ImportOptions {
  /// A directory with config.json and, if the weights are to be checked, model.safetensors or
  /// model.safetensors.index.json with the files that it names; or a config.json alone.
  std::string path;
  int64_t batch = 1;
  int64_t seq = 128;
  /// The number of layers to import, from the first; all when absent.
  std::optional<int64_t> layers;
  /// "last_hidden_state" or "logits". When empty, the result of a decoder architecture's `forward`,
  /// or the former for an encoder.
  std::string result;
  /// "all" positions or the "last" valid token of each sequence, of a decoder only: the result is
  /// then [batch, 1, vocab].
  std::string logits = "all";
  /// Of weights and activations; "f32" is the only one so far.
  std::string dtype = "f32";
};

/// Builds a module whose entry @main has the operands and results of the model's `forward`, under
/// the same names, reads the weights as nn.parameter and calls one private function per distinct
/// layer. Only the header of the checkpoint is read. An error in the request, the configuration or
/// the checkpoint is passed to `onError`, once, with the file, the field or tensor, and the
/// expected and actual values.
///
/// Supported, by model_type: "bert", "roberta", "xlm-roberta" and "camembert" (encoders; of their
/// heads only that over the vocabulary), "gpt2" and "llama".
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
importHuggingFace(mlir::MLIRContext *context, const ImportOptions &options,
                  llvm::function_ref<void(const std::string &message)> onError);

} // namespace braid
#endif // BRAID_IMPORT_HUGGINGFACE_H
