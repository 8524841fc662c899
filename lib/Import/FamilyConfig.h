//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Configuration fields that several families share.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_IMPORT_FAMILYCONFIG_H
#define BRAID_LIB_IMPORT_FAMILYCONFIG_H

#include "Checkpoint.h"
#include "Config.h"
#include "braid/Import/HuggingFace.h"
#include "dialects/NN/IR/NN.h"

namespace braid {

/// The most layers a model may have.
inline constexpr int64_t kMaxLayers = 4096;

/// The activation in the field. When it is missing, `defaultValue`, or an error without one.
llvm::Expected<nn::ActivationKind> activationKind(const Config &config, llvm::StringRef field,
                                                  llvm::StringRef defaultValue = {});
/// The number of layers to import: all of them unless the options limit it.
llvm::Expected<int64_t> importedLayers(const Config &config, const ImportOptions &options,
                                       int64_t layers, llvm::StringRef field);
/// Whether `architectures` names a model with a head over the vocabulary, which is the default; an
/// error when it names neither.
llvm::Expected<bool> hasHead(const Config &config, llvm::StringRef headed, llvm::StringRef bare);
/// Whether the result is logits. The caller states whether the model has a head over the
/// vocabulary, and whether logits are its default result.
llvm::Expected<bool> givesLogits(const Config &config, const ImportOptions &options, bool hasHead,
                                 bool unasked, llvm::StringRef headed);
/// An error when sizes in bytes, or their sums, could overflow 64 bits.
llvm::Error checkElements(const Config &config, const ImportOptions &options, double weights,
                          double widest);

/// The prefix of a model's weights: `inner` with a head, else none, unless the checkpoint has its
/// tensor `first` the other way.
std::string weightPrefix(const Checkpoint *checkpoint, llvm::StringRef inner, bool headed,
                         llvm::StringRef first);
/// An error when the checkpoint, if any, has more layers than `field`; their names begin with
/// `path` and the number.
llvm::Error checkLayers(const Config &config, const Checkpoint *checkpoint, llvm::StringRef path,
                        int64_t layers, llvm::StringRef field);

} // namespace braid
#endif // BRAID_LIB_IMPORT_FAMILYCONFIG_H
