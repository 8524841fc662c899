//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The constraints of NNOps.td, in their order.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

#include "braid/Base/Mesh.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace braid;
using namespace braid::nn;

static LogicalResult verifyPositive(Operation *op, StringRef what, const APFloat &value,
                                    StringRef id) {
  if (value.isFinite() && !value.isNegative() && !value.isZero())
    return success();
  SmallString<16> got;
  value.toString(got);
  return op->emitOpError("expects ")
         << what << " to be positive and finite, got " << got << " [" << id << "]";
}

//===----------------------------------------------------------------------===//
// nn.parameter
//===----------------------------------------------------------------------===//

LogicalResult ParameterOp::verify() {
  if (getName().empty())
    return emitOpError("expects a name [nn.parameter_c1]");
  if (getGlobalType().has_value() != getSharding().has_value())
    return emitOpError("expects 'global_type' and 'sharding' together [nn.parameter_c4]");
  if (getSharding() && getStored())
    return emitOpError("expects 'stored' before partitioning only, got it beside 'sharding' "
                       "[nn.parameter_c7]");
  if (std::optional<Type> type = getGlobalType()) {
    auto global = dyn_cast<RankedTensorType>(*type);
    if (!global || !global.hasStaticShape() ||
        global.getElementType() != typeOf(getResult()).getElementType())
      return emitOpError("expects a statically shaped tensor of ")
             << typeOf(getResult()).getElementType() << " as global type, got " << *type
             << " [nn.parameter_c5]";
    auto emitError = [&] { return emitOpError("global type: "); };
    if (failed(braid::verifyBounded(global, emitError, "nn.parameter_c5")))
      return failure();
  }

  SmallVector<int64_t> shape(getParameterType().getShape());
  Type element = getParameterType().getElementType();
  std::optional<QuantizedPart> part = getQuantized();
  const bool scales = part == QuantizedPart::Scales;
  if (element.isInteger(8) != (part == QuantizedPart::Values) || (scales && !element.isF32()) ||
      (part && shape.size() != (scales ? 1 : 2)))
    return emitOpError("expects two dimensions of i8 with 'quantized values', one of f32 with "
                       "'quantized scales', and floating-point numbers otherwise, got ")
           << getParameterType() << " [nn.parameter_c9]";
  if (scales) // any number of columns
    shape.push_back(std::numeric_limits<int64_t>::max());
  SmallVector<SliceAttr> slices = llvm::to_vector(getSlices().getAsRange<SliceAttr>());
  for (SliceAttr slice : slices) {
    if (slice.getSizes().size() != shape.size())
      return emitOpError("expects slices of rank ")
             << shape.size() << ", got tensor '" << slice.getTensor() << "' of rank "
             << slice.getSizes().size() << " [nn.parameter_c2]";
    for (size_t d = 0; d < shape.size(); ++d)
      if (slice.getSizes()[d] > shape[d] ||
          slice.getDestOffsets()[d] > shape[d] - slice.getSizes()[d])
        return emitOpError("expects the slice of tensor '")
               << slice.getTensor() << "' inside of shape " << text(shape) << ", got offset "
               << slice.getDestOffsets()[d] << " and size " << slice.getSizes()[d]
               << " in dimension " << d << " [nn.parameter_c2]";
  }
  // Slices overlap when their ranges overlap in every dimension.
  for (size_t i = 0; i < slices.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      bool overlap = true;
      for (size_t d = 0; d < shape.size(); ++d)
        overlap &=
            slices[i].getDestOffsets()[d] <
                slices[j].getDestOffsets()[d] + slices[j].getSizes()[d] &&
            slices[j].getDestOffsets()[d] < slices[i].getDestOffsets()[d] + slices[i].getSizes()[d];
      if (overlap)
        return emitOpError("expects slices that do not overlap, got tensors '")
               << slices[j].getTensor() << "' and '" << slices[i].getTensor()
               << "' in one place [nn.parameter_c3]";
    }
  return success();
}

LogicalResult ParameterOp::verifySymbolUses(SymbolTableCollection &) {
  RankedTensorType global = getParameterType();
  auto suits = [&](comm::ShardingAttr sharding, StringRef id) -> LogicalResult {
    if (sharding.isPartial())
      return emitOpError("expects a sharding without partial axes [") << id << "]";
    if (sharding.isOpen())
      return emitOpError("expects a sharding without open dimensions, got ")
             << sharding << " [" << id << "]";
    return comm::verifySharding(*this, global, sharding, [&] { return emitOpError(); });
  };
  comm::ShardingAttr sharding = getShardingAttr();
  auto emitPlaceError = [&] { return emitOpError("'on': "); };
  if (comm::PlaceAttr place = getPlaceAttr())
    if (failed(comm::verifyPlace(*this, place, emitPlaceError)) ||
        failed(comm::verifyShardingOn(place, sharding, "nn.parameter_c8", emitPlaceError)))
      return failure();
  if (getStored())
    return suits(*getStored(), "nn.parameter_c7");
  if (!sharding)
    return success();
  if (failed(suits(sharding, "nn.parameter_c6")))
    return failure();
  FailureOr<RankedTensorType> local = comm::localType(*this, global, sharding);
  if (failed(local) || *local != getResult().getType()) {
    InFlightDiagnostic diag = emitOpError("expects result type ");
    if (succeeded(local))
      diag << *local << ", got " << getResult().getType();
    else
      diag << "that its sharding gives";
    return diag << " [nn.parameter_c6]";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Operations of a model.
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  SmallVector<int64_t> shape(typeOf(getIds()).getShape());
  shape.push_back(typeOf(getTable()).getDimSize(1));
  if (failed(
          verifyShape(*this, "a result", shape, typeOf(getResult()).getShape(), "nn.embedding_c1")))
    return failure();
  return verifySameElementType(*this, {getTable(), getResult()}, "nn.embedding_c2");
}

LogicalResult EmbeddingOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getGroup() && failed(comm::verifyGroup(*this, *getGroup(), symbols, "nn.embedding_c3")))
    return failure();
  if (!getRows())
    return success();
  auto rows = static_cast<uint64_t>(typeOf(getTable()).getDimSize(0));
  if (getGroup())
    rows =
        llvm::SaturatingMultiply(rows, static_cast<uint64_t>(comm::groupSize(*this, *getGroup())));
  if (auto has = static_cast<int64_t>(*getRows()); has < 1 || *getRows() > rows)
    return emitOpError("expects 'rows' of 1 to ")
           << rows << ", got " << has << " [nn.embedding_c4]";
  return success();
}

LogicalResult LinearOp::verify() {
  RankedTensorType input = typeOf(getInput()), weight = typeOf(getWeight());
  if (input.getRank() == 0 || input.getShape().back() != weight.getDimSize(1))
    return emitOpError("expects an input whose last dimension is ")
           << weight.getDimSize(1) << " as the weight's second, got shape "
           << text(input.getShape()) << " [nn.linear_c1]";
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = weight.getDimSize(0);
  if (failed(verifyShape(*this, "a result", shape, typeOf(getResult()).getShape(), "nn.linear_c2")))
    return failure();
  return verifySameElementType(*this, {getInput(), getWeight(), getResult()}, "nn.linear_c3");
}

static LogicalResult verifyHeads(Operation *op, Value merged, Value split, StringRef shapeId,
                                 StringRef typeId) {
  ArrayRef<int64_t> flat = typeOf(merged).getShape(), heads = typeOf(split).getShape();
  if (flat.take_front(2) != heads.take_front(2) ||
      flat[2] != braid::saturatingProduct({heads[2], heads[3]}))
    return op->emitOpError(
               "expects [batch, seq, heads * head_dim] and [batch, seq, heads, head_dim], got ")
           << text(flat) << " and " << text(heads) << " [" << shapeId << "]";
  return verifySameElementType(op, {op->getOperand(0), op->getResult(0)}, typeId);
}
LogicalResult SplitHeadsOp::verify() {
  return verifyHeads(*this, getInput(), getResult(), "nn.split_heads_c1", "nn.split_heads_c2");
}
LogicalResult MergeHeadsOp::verify() {
  return verifyHeads(*this, getResult(), getInput(), "nn.merge_heads_c1", "nn.merge_heads_c2");
}

LogicalResult AttentionOp::verify() {
  ArrayRef<int64_t> query = typeOf(getQuery()).getShape(), key = typeOf(getKey()).getShape(),
                    value = typeOf(getValue()).getShape();
  if (query[0] != key[0] || query[0] != value[0])
    return emitOpError("expects one batch size, got ")
           << query[0] << ", " << key[0] << " and " << value[0] << " [nn.attention_c1]";
  if (key[1] != value[1] || key[2] != value[2])
    return emitOpError("expects key and value of one sequence length and number of heads, got ")
           << text(key) << " and " << text(value) << " [nn.attention_c2]";
  if (query[3] != key[3])
    return emitOpError("expects query and key of one head_dim, got ")
           << query[3] << " and " << key[3] << " [nn.attention_c3]";
  if (key[2] == 0 || query[2] % key[2] != 0)
    return emitOpError("expects query heads to be a multiple of key heads, got ")
           << query[2] << " and " << key[2] << " [nn.attention_c4]";
  if (failed(verifyShape(*this, "a result", {query[0], query[1], query[2], value[3]},
                         typeOf(getResult()).getShape(), "nn.attention_c5")) ||
      failed(verifySameElementType(*this, {getQuery(), getKey(), getValue(), getResult()},
                                   "nn.attention_c6")))
    return failure();
  if (getMask() &&
      failed(verifyShape(*this, "a mask", {key[0], key[1]}, shapeOf(getMask()), "nn.attention_c7")))
    return failure();
  if (getValidLength() && failed(verifyShape(*this, "valid_length", query[0],
                                             shapeOf(getValidLength()), "nn.attention_c8")))
    return failure();
  if (getPositionOffset() && failed(verifyShape(*this, "position_offset", query[0],
                                                shapeOf(getPositionOffset()), "nn.attention_c8")))
    return failure();
  if (getPositionOffset() && !getCausal())
    return emitOpError("expects position_offset with causal attention only [nn.attention_c9]");
  if (failed(verifyPositive(*this, "scale", getScale(), "nn.attention_c10")))
    return failure();
  if (!getLogSum())
    return success();
  if (Type element = typeOf(getLogSum()).getElementType(); !element.isF32())
    return emitOpError("expects a second result of f32, got ") << element << " [nn.attention_c11]";
  return verifyShape(*this, "a second result", query.take_front(3), shapeOf(getLogSum()),
                     "nn.attention_c11");
}

namespace {
struct NormalizationIds {
  StringRef shape, result, elementType, epsilon;
};
} // namespace

/// The constraints that normalizations over the last dimension share.
template <typename Op>
static LogicalResult verifyNormalization(Op op, ArrayRef<std::pair<StringRef, Value>> vectors,
                                         const NormalizationIds &ids) {
  RankedTensorType input = typeOf(op.getInput());
  if (input.getRank() == 0)
    return op.emitOpError("expects an input of at least one dimension [") << ids.shape << "]";
  for (auto [what, vector] : vectors)
    if (failed(verifyShape(op, what, input.getShape().back(), shapeOf(vector), ids.shape)))
      return failure();
  if (op.getResult().getType() != input)
    return op.emitOpError("expects result type ")
           << input << ", got " << op.getResult().getType() << " [" << ids.result << "]";
  if (failed(verifySameElementType(op, op->getOperands(), ids.elementType)))
    return failure();
  return verifyPositive(op, "epsilon", op.getEpsilon(), ids.epsilon);
}

LogicalResult LayerNormOp::verify() {
  return verifyNormalization(
      *this, {{"a weight", getWeight()}, {"a bias", getBias()}},
      {"nn.layer_norm_c1", "nn.layer_norm_c2", "nn.layer_norm_c3", "nn.layer_norm_c4"});
}

LogicalResult RmsNormOp::verify() {
  return verifyNormalization(
      *this, {{"a weight", getWeight()}},
      {"nn.rms_norm_c1", "nn.rms_norm_c2", "nn.rms_norm_c3", "nn.rms_norm_c4"});
}

LogicalResult SoftmaxOp::verify() {
  if (typeOf(getInput()).getRank() == 0)
    return emitOpError("expects an input of at least one dimension [nn.softmax_c1]");
  return success();
}

template <typename Op>
static LogicalResult verifyBroadcast(Op op, StringRef shapeId, StringRef resultId,
                                     StringRef typeId) {
  ArrayRef<int64_t> lhs = typeOf(op.getLhs()).getShape(), rhs = typeOf(op.getRhs()).getShape();
  if (rhs.size() > lhs.size() || lhs.take_back(rhs.size()) != rhs)
    return op.emitOpError("expects the second operand's shape at the end of the first one's, got ")
           << text(rhs) << " and " << text(lhs) << " [" << shapeId << "]";
  if (op.getResult().getType() != op.getLhs().getType())
    return op.emitOpError("expects result type ")
           << op.getLhs().getType() << ", got " << op.getResult().getType() << " [" << resultId
           << "]";
  return verifySameElementType(op, op->getOperands(), typeId);
}
LogicalResult AddOp::verify() {
  return verifyBroadcast(*this, "nn.add_c1", "nn.add_c2", "nn.add_c3");
}
LogicalResult MulOp::verify() {
  return verifyBroadcast(*this, "nn.mul_c1", "nn.mul_c2", "nn.mul_c3");
}
