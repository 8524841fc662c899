//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The numbered constraints of NNOps.td, in their order.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

#include "braid/Runtime/Mesh.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace braid;
using namespace braid::nn;

static LogicalResult verifyPositive(Operation *op, StringRef what, const APFloat &value) {
  if (value.isFinite() && !value.isNegative() && !value.isZero())
    return success();
  SmallString<16> got;
  value.toString(got);
  return op->emitOpError("expects ") << what << " to be positive and finite, got " << got;
}

//===----------------------------------------------------------------------===//
// nn.parameter
//===----------------------------------------------------------------------===//

LogicalResult ParameterOp::verify() {
  if (getName().empty()) // C1
    return emitOpError("expects a name");
  if (getGlobalType().has_value() != getSharding().has_value()) // C4
    return emitOpError("expects 'global_type' and 'sharding' together");
  if (std::optional<Type> type = getGlobalType()) { // C5
    auto global = dyn_cast<RankedTensorType>(*type);
    if (!global || !global.hasStaticShape() ||
        global.getElementType() != typeOf(getResult()).getElementType())
      return emitOpError("expects a statically shaped tensor of ")
             << typeOf(getResult()).getElementType() << " as global type, got " << *type;
    if (failed(braid::verifyBounded(global, [&] { return emitOpError("global type: "); })))
      return failure();
  }

  ArrayRef<int64_t> shape = getParameterType().getShape();
  SmallVector<SliceAttr> slices = llvm::to_vector(getSlices().getAsRange<SliceAttr>());
  for (SliceAttr slice : slices) { // C2
    if (slice.getSizes().size() != shape.size())
      return emitOpError("expects slices of rank ")
             << shape.size() << ", got tensor '" << slice.getTensor() << "' of rank "
             << slice.getSizes().size();
    for (size_t d = 0; d < shape.size(); ++d)
      if (slice.getSizes()[d] > shape[d] ||
          slice.getDestOffsets()[d] > shape[d] - slice.getSizes()[d])
        return emitOpError("expects the slice of tensor '")
               << slice.getTensor() << "' inside of shape " << text(shape) << ", got offset "
               << slice.getDestOffsets()[d] << " and size " << slice.getSizes()[d]
               << " in dimension " << d;
  }
  // C3: boxes overlap when they do in every dimension.
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
               << slices[j].getTensor() << "' and '" << slices[i].getTensor() << "' in one place";
    }
  return success();
}

LogicalResult ParameterOp::verifySymbolUses(SymbolTableCollection &) {
  comm::ShardingAttr sharding = getShardingAttr(); // C6
  if (!sharding)
    return success();
  if (sharding.isPartial())
    return emitOpError("expects a sharding without partial axes");
  if (sharding.isOpen())
    return emitOpError("expects a sharding without open dimensions, got ") << sharding;
  RankedTensorType global = getParameterType();
  if (failed(comm::verifySharding(*this, global, sharding, [&] { return emitOpError(); })))
    return failure();
  FailureOr<RankedTensorType> local = comm::localType(*this, global, sharding);
  if (failed(local) || *local != getResult().getType()) {
    InFlightDiagnostic diag = emitOpError("expects result type ");
    return succeeded(local) ? diag << *local << ", got " << getResult().getType()
                            : diag << "that its sharding gives";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Operations of a model.
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  SmallVector<int64_t> shape(typeOf(getIds()).getShape());
  shape.push_back(typeOf(getTable()).getDimSize(1));
  if (failed(verifyShape(*this, "a result", shape, typeOf(getResult()).getShape()))) // C1
    return failure();
  return verifySameElementType(*this, {getTable(), getResult()}); // C2
}

LogicalResult EmbeddingOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getGroup() && failed(comm::verifyGroup(*this, *getGroup(), symbols))) // C3
    return failure();
  if (!getRows())
    return success();
  auto rows = static_cast<uint64_t>(typeOf(getTable()).getDimSize(0));
  if (getGroup())
    rows =
        llvm::SaturatingMultiply(rows, static_cast<uint64_t>(comm::groupSize(*this, *getGroup())));
  if (auto has = static_cast<int64_t>(*getRows()); has < 1 || *getRows() > rows) // C4
    return emitOpError("expects 'rows' of 1 to ") << rows << ", got " << has;
  return success();
}

LogicalResult LinearOp::verify() {
  RankedTensorType input = typeOf(getInput()), weight = typeOf(getWeight());
  if (input.getRank() == 0 || input.getShape().back() != weight.getDimSize(1)) // C1
    return emitOpError("expects an input whose last dimension is ")
           << weight.getDimSize(1) << " as the weight's second, got shape "
           << text(input.getShape());
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = weight.getDimSize(0);
  if (failed(verifyShape(*this, "a result", shape, typeOf(getResult()).getShape()))) // C2
    return failure();
  return verifySameElementType(*this, {getInput(), getWeight(), getResult()}); // C3
}

static LogicalResult verifyHeads(Operation *op, Value merged, Value split) {
  ArrayRef<int64_t> flat = typeOf(merged).getShape(), heads = typeOf(split).getShape();
  if (flat.take_front(2) != heads.take_front(2) ||
      flat[2] != braid::saturatingProduct({heads[2], heads[3]})) // C1
    return op->emitOpError(
               "expects [batch, seq, heads * head_dim] and [batch, seq, heads, head_dim], got ")
           << text(flat) << " and " << text(heads);
  return verifySameElementType(op, {op->getOperand(0), op->getResult(0)}); // C2
}
LogicalResult SplitHeadsOp::verify() { return verifyHeads(*this, getInput(), getResult()); }
LogicalResult MergeHeadsOp::verify() { return verifyHeads(*this, getResult(), getInput()); }

LogicalResult AttentionOp::verify() {
  ArrayRef<int64_t> query = typeOf(getQuery()).getShape(), key = typeOf(getKey()).getShape(),
                    value = typeOf(getValue()).getShape();
  if (query[0] != key[0] || query[0] != value[0]) // C1
    return emitOpError("expects one batch size, got ")
           << query[0] << ", " << key[0] << " and " << value[0];
  if (key[1] != value[1] || key[2] != value[2]) // C2
    return emitOpError("expects key and value of one sequence length and number of heads, got ")
           << text(key) << " and " << text(value);
  if (query[3] != key[3]) // C3
    return emitOpError("expects query and key of one head_dim, got ")
           << query[3] << " and " << key[3];
  if (key[2] == 0 || query[2] % key[2] != 0) // C4
    return emitOpError("expects query heads to be a multiple of key heads, got ")
           << query[2] << " and " << key[2];
  if (failed(verifyShape(*this, "a result", {query[0], query[1], query[2], value[3]},
                         typeOf(getResult()).getShape())) ||                                 // C5
      failed(verifySameElementType(*this, {getQuery(), getKey(), getValue(), getResult()}))) // C6
    return failure();
  if (getMask() &&
      failed(verifyShape(*this, "a mask", {key[0], key[1]}, typeOf(getMask()).getShape()))) // C7
    return failure();
  if (getValidLength() && failed(verifyShape(*this, "valid_length", query[0],
                                             typeOf(getValidLength()).getShape()))) // C8
    return failure();
  if (getPositionOffset() && failed(verifyShape(*this, "position_offset", query[0],
                                                typeOf(getPositionOffset()).getShape())))
    return failure();
  if (getPositionOffset() && !getCausal()) // C9
    return emitOpError("expects position_offset with causal attention only");
  return verifyPositive(*this, "scale", getScale()); // C10
}

/// The constraints of normalizations over the last dimension, which have the same numbers.
template <typename Op>
static LogicalResult verifyNormalization(Op op, ArrayRef<std::pair<StringRef, Value>> vectors) {
  RankedTensorType input = typeOf(op.getInput());
  if (input.getRank() == 0) // C1
    return op.emitOpError("expects an input of at least one dimension");
  for (auto [what, vector] : vectors)
    if (failed(verifyShape(op, what, input.getShape().back(), shapeOf(vector))))
      return failure();
  if (op.getResult().getType() != input) // C2
    return op.emitOpError("expects result type ") << input << ", got " << op.getResult().getType();
  if (failed(verifySameElementType(op, op->getOperands()))) // C3
    return failure();
  return verifyPositive(op, "epsilon", op.getEpsilon()); // C4
}

LogicalResult LayerNormOp::verify() {
  return verifyNormalization(*this, {{"a weight", getWeight()}, {"a bias", getBias()}});
}

LogicalResult RmsNormOp::verify() {
  return verifyNormalization(*this, {{"a weight", getWeight()}});
}

LogicalResult SoftmaxOp::verify() {
  if (typeOf(getInput()).getRank() == 0) // C1
    return emitOpError("expects an input of at least one dimension");
  return success();
}

template <typename Op> static LogicalResult verifyBroadcast(Op op) {
  ArrayRef<int64_t> lhs = typeOf(op.getLhs()).getShape(), rhs = typeOf(op.getRhs()).getShape();
  if (rhs.size() > lhs.size() || lhs.take_back(rhs.size()) != rhs) // C1
    return op.emitOpError("expects the second operand's shape at the end of the first one's, got ")
           << text(rhs) << " and " << text(lhs);
  if (op.getResult().getType() != op.getLhs().getType()) // C2
    return op.emitOpError("expects result type ")
           << op.getLhs().getType() << ", got " << op.getResult().getType();
  return verifySameElementType(op, op->getOperands()); // C3
}
LogicalResult AddOp::verify() { return verifyBroadcast(*this); }
LogicalResult MulOp::verify() { return verifyBroadcast(*this); }
