//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the importers of all families build modules with.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_IMPORT_MODELBUILDER_H
#define BRAID_LIB_IMPORT_MODELBUILDER_H

#include "Checkpoint.h"
#include "Config.h"
#include "braid/Import/HuggingFace.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace braid {

/// A weight of the model: its name in the checkpoint, what it looks like there, and what random
/// weights it gets.
struct Weight {
  std::string name;
  llvm::SmallVector<int64_t, 2> shape;
  nn::InitKind init = nn::InitKind::Normal;
};

/// A part of a checkpoint's tensor, the tensor perhaps permuted first.
struct WeightPart {
  llvm::SmallVector<int64_t, 2> permutation, offsets, sizes;
};

class ModelBuilder {
public:
  ModelBuilder(mlir::MLIRContext *context, const ImportOptions &options,
               const Checkpoint *checkpoint)
      : builder(context), checkpoint(checkpoint), batch(options.batch), seq(options.seq) {}

  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, builder.getF32Type());
  }
  mlir::RankedTensorType idsType() {
    return mlir::RankedTensorType::get({batch, seq}, builder.getI64Type());
  }
  /// Operations are called what the model calls them.
  mlir::Location at(const llvm::Twine &name) {
    return mlir::NameLoc::get(builder.getStringAttr(name));
  }

  /// An entry @main over operands of the model's names, its body open for building.
  mlir::func::FuncOp buildEntry(llvm::ArrayRef<llvm::StringRef> operands, llvm::StringRef result,
                                mlir::Type resultType);
  /// A private function for calls with these operands: some of these names, then weights, whose
  /// names lose what stands before those of the layer's parts. Its body is open for building.
  mlir::func::FuncOp buildFunction(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> names,
                                   llvm::ArrayRef<mlir::Value> operands, llvm::StringRef before,
                                   mlir::Type result);

  mlir::Value linear(llvm::StringRef role, mlir::Value input, mlir::Value weight,
                     mlir::Value bias = {});
  mlir::Value layerNorm(const llvm::Twine &name, mlir::Value input, mlir::Value weight,
                        mlir::Value bias, double epsilon);
  mlir::Value rmsNorm(const llvm::Twine &name, mlir::Value input, mlir::Value weight,
                      double epsilon);
  mlir::Value add(const llvm::Twine &name, mlir::Value lhs, mlir::Value rhs);
  mlir::Value embedding(const llvm::Twine &name, llvm::StringRef role, mlir::Value ids,
                        mlir::Value table);
  mlir::Value splitHeads(const llvm::Twine &name, mlir::Value input, int64_t heads);
  mlir::Value mergeHeads(const llvm::Twine &name, mlir::Value input);
  mlir::Value attention(mlir::Value query, mlir::Value key, mlir::Value value, mlir::Value mask,
                        bool causal);

  /// The weight, or the part of it, as a parameter of this name. An error when the checkpoint does
  /// not have it as described.
  llvm::Expected<mlir::Value> parameter(const Weight &weight, const WeightPart *part = nullptr,
                                        llvm::StringRef name = {});

  mlir::OpBuilder builder;
  const Checkpoint *checkpoint; ///< null when only the configuration is known
  const int64_t batch, seq;
};

/// The number of layers to import: all of them when the options ask for none.
llvm::Expected<int64_t> importedLayers(const Config &config, const ImportOptions &options,
                                       int64_t layers, llvm::StringRef field);
/// Whether `architectures` means a model with a head over the vocabulary, which it does when it
/// says nothing; an error when it names neither.
llvm::Expected<bool> hasHead(const Config &config, llvm::StringRef headed, llvm::StringRef bare);
/// Whether the result is logits, which a model with a head over the vocabulary gives: whether this
/// is one, and whether it gives them unasked, its caller knows.
llvm::Expected<bool> givesLogits(const Config &config, const ImportOptions &options, bool hasHead,
                                 bool unasked, llvm::StringRef headed);
/// Sizes in bytes, and sums of them, must stay far inside of 64 bits.
llvm::Error checkElements(const Config &config, const ImportOptions &options, double weights,
                          double widest);

} // namespace braid
#endif // BRAID_LIB_IMPORT_MODELBUILDER_H
