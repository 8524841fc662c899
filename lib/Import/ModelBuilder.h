//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the importers of all families build modules with: the entry, the layers, the head, and the
// operations in them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_IMPORT_MODELBUILDER_H
#define BRAID_LIB_IMPORT_MODELBUILDER_H

#include "Checkpoint.h"
#include "braid/Import/HuggingFace.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace braid {

/// A part of a checkpoint's tensor, the tensor perhaps permuted first.
struct WeightPart {
  llvm::SmallVector<int64_t, 2> permutation, offsets, sizes;
};

/// A weight of the model: its tensor's name in the checkpoint, what that looks like there, and what
/// random weights it gets.
struct Weight {
  std::string name;
  llvm::SmallVector<int64_t, 2> shape;
  nn::InitKind init = nn::InitKind::Normal;
  std::optional<WeightPart> part = std::nullopt; ///< the whole tensor when absent
  std::string parameter = {};                    ///< its parameter's name; the tensor's when empty
};

/// The weights of a layer in the order in which its function takes them, their names without what
/// says which layer.
class LayerWeights : public llvm::SmallVector<Weight> {
public:
  /// A weight [out, in] and perhaps its bias.
  void linear(llvm::StringRef name, int64_t out, int64_t in, bool biased = true);
  void norm(llvm::StringRef name, int64_t size, bool biased = true);
};

class ModelBuilder;

/// The body of a layer's function while it is built. Weights are taken in the order in which they
/// were listed.
class LayerBody {
public:
  LayerBody(ModelBuilder &model, mlir::Block &block, size_t numOperands)
      : model(model), block(block), next(block.args_begin() + numOperands) {}

  mlir::Value operand(unsigned i) { return block.getArgument(i); }
  mlir::Value linear(llvm::StringRef role, mlir::Value input, bool biased = true);
  mlir::Value layerNorm(const llvm::Twine &name, mlir::Value input, double epsilon);
  mlir::Value rmsNorm(const llvm::Twine &name, mlir::Value input, double epsilon);

private:
  mlir::Value weight() { return *next++; }

  ModelBuilder &model;
  mlir::Block &block;
  mlir::Block::args_iterator next;
};

class ModelBuilder {
public:
  ModelBuilder(mlir::MLIRContext *context, const ImportOptions &options,
               const Checkpoint *checkpoint)
      : builder(context), checkpoint(checkpoint), batch(options.batch), seq(options.seq) {}
  virtual ~ModelBuilder() = default;

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

  /// A module of this name, with an entry @main over operands of the model's names. Its result, of
  /// `width` elements for each token, is what `body` builds of them.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  buildModule(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> operands,
              llvm::StringRef result, int64_t width,
              llvm::function_ref<llvm::Expected<mlir::Value>(mlir::ValueRange)> body);

  /// What sets apart the layers of a family. They are equal, so there is one function for them.
  struct Layers {
    llvm::StringRef function;                       ///< its name
    llvm::SmallVector<llvm::StringRef, 4> operands; ///< names of what it takes before its weights
    std::string path;                               ///< names of weights begin with it and a number
    LayerWeights weights;
  };
  /// Calls of as many layers, the first operand going through them, and `body` as the function's.
  llvm::Expected<mlir::Value> buildLayers(const Layers &layers, int64_t count,
                                          llvm::ArrayRef<mlir::Value> operands,
                                          llvm::function_ref<mlir::Value(LayerBody &)> body);
  /// Logits of a decoder, whose table of the embedding is its head, too, when weights are tied.
  llvm::Expected<mlir::Value> buildHead(mlir::Value hidden, mlir::Value table, bool tied);

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

  /// The weight as a parameter. An error when the checkpoint does not have it as described.
  virtual llvm::Expected<mlir::Value> parameter(const Weight &weight);
  /// The weight `name`.weight of this shape and `name`.bias of its first dimension.
  struct WeightAndBias {
    mlir::Value weight, bias;
  };
  llvm::Expected<WeightAndBias> weightAndBias(const std::string &name,
                                              llvm::ArrayRef<int64_t> shape, nn::InitKind init);

  mlir::OpBuilder builder;
  const Checkpoint *checkpoint; ///< null when only the configuration is known
  const int64_t batch, seq;

private:
  mlir::func::FuncOp buildEntry(llvm::ArrayRef<llvm::StringRef> operands, llvm::StringRef result,
                                mlir::Type resultType);
  /// A private function for calls with these operands: some of these names, then weights, whose
  /// names lose what stands before those of the layer's parts. Its body is open for building.
  mlir::func::FuncOp buildFunction(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> names,
                                   llvm::ArrayRef<mlir::Value> operands, llvm::StringRef before);
};

} // namespace braid
#endif // BRAID_LIB_IMPORT_MODELBUILDER_H
