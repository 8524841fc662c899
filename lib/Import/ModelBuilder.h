//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds modules for the importers of all families: the entry, the layers, the head, and their
// operations.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_IMPORT_MODELBUILDER_H
#define BRAID_LIB_IMPORT_MODELBUILDER_H

#include "Checkpoint.h"
#include "braid/Import/HuggingFace.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace braid {

/// A slice of a checkpoint's tensor, perhaps permuted first.
struct WeightSlice {
  llvm::SmallVector<int64_t, 2> permutation, offsets, sizes;
};

/// A weight of the model: its tensor in the checkpoint, slices of it, and the distribution of
/// random weights.
struct Weight {
  std::string name;
  llvm::SmallVector<int64_t, 2> shape;
  nn::InitKind init = nn::InitKind::Normal;
  std::optional<WeightSlice> slice = std::nullopt; ///< the full tensor when absent
  std::string parameter = {}; ///< its parameter's name; the tensor's when empty
};

/// The weights of a layer in the order of its function's arguments, with names relative to the
/// layer.
class LayerWeights : public llvm::SmallVector<Weight> {
public:
  /// A weight [out, in] and perhaps its bias.
  void linear(llvm::StringRef name, int64_t out, int64_t in, bool biased = true);
  void norm(llvm::StringRef name, int64_t size, bool biased = true);
};

class ModelBuilder;

/// The body of a layer's function under construction. Weights are taken in the order of the list.
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
      : builder(context), checkpoint(checkpoint), batch(options.batch), seq(options.seq),
        lastLogits(options.logits == "last") {}
  virtual ~ModelBuilder() = default;

  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, builder.getF32Type());
  }
  mlir::RankedTensorType idsType() {
    return mlir::RankedTensorType::get({batch, seq}, builder.getI64Type());
  }
  /// Operations have the model's names.
  mlir::Location at(const llvm::Twine &name) {
    return mlir::NameLoc::get(builder.getStringAttr(name));
  }

  /// An operand of the entry, of integers below `below`.
  struct Input {
    llvm::StringRef name; ///< as the model calls it
    int64_t below;
    std::optional<int64_t> defaultValue =
        std::nullopt; ///< of every element, when the operand is left out
  };
  /// 1 for valid tokens, 0 for padding. All tokens are valid when it is left out.
  static constexpr Input kAttentionMask{"attention_mask", 2, 1};

  /// A module of this name with an entry @main that has these operands. `body` builds its result,
  /// which has `width` elements per token.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  buildModule(llvm::StringRef name, llvm::ArrayRef<Input> operands, llvm::StringRef result,
              int64_t width,
              llvm::function_ref<llvm::Expected<mlir::Value>(mlir::ValueRange)> body);

  /// The layers of a family, which share one function.
  struct Layers {
    llvm::StringRef function;                       ///< its name
    llvm::SmallVector<llvm::StringRef, 4> operands; ///< names of the operands before the weights
    std::string path; ///< names of weights begin with it and the layer
    LayerWeights weights;
  };
  /// Calls all layers on the first operand; `body` builds their function.
  llvm::Expected<mlir::Value> buildLayers(const Layers &layers, int64_t count,
                                          llvm::ArrayRef<mlir::Value> operands,
                                          llvm::function_ref<mlir::Value(LayerBody &)> body);
  /// The rows from which the result is computed: all, or for the last logits only the row of each
  /// sequence's last token.
  mlir::Value resultRows(mlir::Value hidden, mlir::Value mask);
  /// Logits of a decoder; with tied weights, the embedding's table is the head.
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

  /// The weight as a parameter, or an error when the checkpoint's tensor differs from the
  /// description.
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
  const bool lastLogits;

private:
  mlir::func::FuncOp buildEntry(llvm::ArrayRef<Input> operands, llvm::StringRef result,
                                mlir::Type resultType);
  /// A private function for calls with these operands: first operands of these names, then weights
  /// with names relative to the layer. The builder is left in its body.
  mlir::func::FuncOp buildFunction(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> names,
                                   llvm::ArrayRef<mlir::Value> operands, llvm::StringRef before);
};

} // namespace braid
#endif // BRAID_LIB_IMPORT_MODELBUILDER_H
