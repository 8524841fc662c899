//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Encoded collectives as codecs and collectives of bytes. What a rank sends to another one, or
// receives from it, is a part of the payload of its own, with whole rows: parts are the leading
// dimensions of a payload, up to the dimension that the collective divides or joins.
//
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Transforms/Identity.h"
#include "braid/Transforms/Passes.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_EXPANDENCODED
#include "braid/Transforms/Passes.h.inc"

namespace {

using runtime::Encoding;

RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

int64_t rowsOf(RankedTensorType type) {
  int64_t rows = 1;
  for (int64_t dim : type.getShape().drop_back())
    rows *= dim;
  return rows;
}

/// Builds the operations that replace one collective.
class Expansion {
public:
  Expansion(Operation *op, EncodingAttr encoding, int64_t n)
      : op(op), builder(op), loc(op->getLoc()), encodings(encoding.getPair()), n(n) {}

  LogicalResult expand(SmallVectorImpl<Value> &results) {
    if (auto reduce = dyn_cast<AllReduceOp>(op))
      return allReduce(reduce, results);
    if (auto scatter = dyn_cast<ReduceScatterOp>(op))
      return reduceScatter(scatter, results);
    if (auto gather = dyn_cast<AllGatherOp>(op))
      return allGather(gather, results);
    if (auto exchange = dyn_cast<AllToAllOp>(op))
      return allToAll(exchange, results);
    if (auto exchange = dyn_cast<AllToAllVOp>(op))
      return allToAllV(exchange, results);
    return wholeValues(results);
  }

  /// Bytes of the payloads that are given to collectives.
  int64_t payloadBytes = 0;

private:
  using Values = SmallVectorImpl<Value>;

  /// What every rank adds goes to the rank that adds it, and its sum to all.
  LogicalResult allReduce(AllReduceOp reduce, Values &results) {
    SmallVector<Value> inputs, sums;
    for (Value input : reduce.getInputs()) {
      const int64_t pieces = piecesOf(tensorOf(input));
      inputs.push_back(pieces == 1 ? input : splitLast(input, pieces));
      sums.push_back(encode(inputs.back(), encodings.reduce, {n}));
    }
    auto sent = AllToAllOp::create(builder, loc, ValueRange(sums).getTypes(), sums, 0, 0,
                                   reduce.getGroup(), StringAttr());
    namePart(sent, op, "all_to_all");
    SmallVector<Value> payloads;
    SmallVector<Type> gathered;
    for (auto [input, part] : llvm::zip_equal(inputs, sent.getOutputs())) {
      RankedTensorType type = tensorOf(input);
      auto sum = RankedTensorType::get({(rowsOf(type) + n - 1) / n, type.getShape().back()},
                                       builder.getF32Type());
      payloads.push_back(
          encode(decodeSum(part, type.getElementType(), sum), encodings.gather, {1}));
      gathered.push_back(gatheredType(payloads.back().getType(), 0, n));
    }
    auto received =
        AllGatherOp::create(builder, loc, gathered, payloads, 0, reduce.getGroup(), StringAttr());
    namePart(received, op, "all_gather");
    for (auto [input, payload, output] :
         llvm::zip_equal(inputs, received.getOutputs(), reduce.getOutputs()))
      results.push_back(joinLast(
          decode(payload, encodings.gather, builder.getF32Type(), tensorOf(input)), output));
    return success();
  }

  LogicalResult reduceScatter(ReduceScatterOp scatter, Values &results) {
    const auto dim = static_cast<int64_t>(scatter.getDim());
    SmallVector<Value> payloads;
    for (Value input : scatter.getInputs()) {
      Value value = isLast(input, dim) ? splitLast(input, n) : input;
      payloads.push_back(encode(value, encodings.reduce, partsTo(value, dim, n)));
    }
    auto types = llvm::map_to_vector(payloads, [&](Value payload) -> Type {
      return gatheredType(shardType(payload.getType(), dim, n), 0, n);
    });
    auto sent = AllToAllOp::create(builder, loc, types, payloads, dim, 0, scatter.getGroup(),
                                   scatter.getRoleAttr());
    for (auto [part, output] : llvm::zip_equal(sent.getOutputs(), scatter.getOutputs())) {
      RankedTensorType type = tensorOf(output);
      RankedTensorType sum = isLast(output, dim) ? splitType(type, 1) : type;
      results.push_back(joinLast(decodeSum(part, type.getElementType(), sum), output));
    }
    return success();
  }

  LogicalResult allGather(AllGatherOp gather, Values &results) {
    const auto dim = static_cast<int64_t>(gather.getDim());
    SmallVector<Value> payloads;
    for (Value input : gather.getInputs()) {
      Value value = isLast(input, dim) ? splitLast(input, 1) : input;
      payloads.push_back(encode(value, encodings.gather, partsTo(value, dim, 1)));
    }
    auto types = llvm::map_to_vector(
        payloads, [&](Value payload) -> Type { return gatheredType(payload.getType(), dim, n); });
    auto received = AllGatherOp::create(builder, loc, types, payloads, dim, gather.getGroup(),
                                        gather.getRoleAttr());
    for (auto [payload, output] : llvm::zip_equal(received.getOutputs(), gather.getOutputs())) {
      RankedTensorType type = tensorOf(output);
      RankedTensorType whole = isLast(output, dim) ? splitType(type, n) : type;
      results.push_back(
          joinLast(decode(payload, encodings.gather, type.getElementType(), whole), output));
    }
    return success();
  }

  LogicalResult allToAll(AllToAllOp exchange, Values &results) {
    const auto split = static_cast<int64_t>(exchange.getSplitDim());
    const auto concat = static_cast<int64_t>(exchange.getConcatDim());
    const int64_t inner = std::max(split, concat);
    // Before the exchange the inner dimension is in n pieces if it is split, after it if it is
    // joined. Outer dimensions are enumerated.
    const int64_t before = inner == split ? n : 1, after = inner == concat ? n : 1;
    SmallVector<Value> payloads;
    SmallVector<Type> types;
    for (Value input : exchange.getInputs()) {
      Value value = isLast(input, inner) ? splitLast(input, before) : input;
      payloads.push_back(encode(value, encodings.gather, partsTo(value, inner, before)));
      types.push_back(gatheredType(shardType(payloads.back().getType(), split, n), concat, n));
    }
    auto sent = AllToAllOp::create(builder, loc, types, payloads, split, concat,
                                   exchange.getGroup(), exchange.getRoleAttr());
    for (auto [payload, output] : llvm::zip_equal(sent.getOutputs(), exchange.getOutputs())) {
      RankedTensorType type = tensorOf(output);
      RankedTensorType whole = isLast(output, inner) ? splitType(type, after) : type;
      results.push_back(
          joinLast(decode(payload, encodings.gather, type.getElementType(), whole), output));
    }
    return success();
  }

  /// Each row of a block travels by itself, as any number of them may.
  LogicalResult allToAllV(AllToAllVOp exchange, Values &results) {
    SmallVector<Value> payloads;
    for (Value input : exchange.getValues()) {
      const bool flat = tensorOf(input).getRank() == 2;
      payloads.push_back(encode(flat ? splitLast(input, tensorOf(input).getShape().back()) : input,
                                encodings.gather, tensorOf(input).getShape().take_front(2)));
    }
    auto sent = AllToAllVOp::create(builder, loc, payloads, exchange.getCounts(),
                                    exchange.getGroup(), exchange.getRoleAttr());
    for (auto [payload, output] : llvm::zip_equal(sent.getReceived(), exchange.getReceived())) {
      RankedTensorType type = tensorOf(output);
      RankedTensorType whole = type.getRank() == 2 ? splitType(type, type.getShape().back()) : type;
      results.push_back(
          joinLast(decode(payload, encodings.gather, type.getElementType(), whole, /*absent=*/true),
                   output));
    }
    results.push_back(sent.getReceivedCounts());
    return success();
  }

  /// Broadcasts, permutes, sends and receives hand on a payload as it is.
  LogicalResult wholeValues(Values &results) {
    OperationState state(loc, op->getName());
    state.attributes = op->getAttrDictionary();
    state.attributes.erase(CommDialect::kEncodingAttrName);
    for (Value input : op->getOperands())
      state.operands.push_back(encode(input, encodings.gather, {1}));
    for (Value output : op->getResults()) {
      RankedTensorType type = tensorOf(output);
      const auto layout =
          runtime::PayloadLayout::of(encodings.gather, *toRuntime(type.getElementType()),
                                     rowsOf(type), type.getShape().back(), 1);
      // What cannot be encoded was refused with the input, or by the sender.
      if (!layout.ok())
        return op->emitOpError() << layout.status().message();
      state.types.push_back(RankedTensorType::get({1, layout->partBytes}, builder.getI8Type()));
    }
    Operation *exchange = builder.create(state);
    // Ranks that are no target of a permute have zeros.
    const bool absent = isa<PermuteOp>(op);
    for (auto [payload, output] : llvm::zip_equal(exchange->getResults(), op->getResults()))
      results.push_back(decode(payload, encodings.gather, tensorOf(output).getElementType(),
                               tensorOf(output), absent));
    return success();
  }

  Value encode(Value value, const Encoding &encoding, ArrayRef<int64_t> parts) {
    auto encoded = nn::EncodeOp::create(builder, loc, value, encoding, parts);
    payloadBytes += tensorOf(encoded).getNumElements();
    return encoded;
  }
  Value decode(Value payload, const Encoding &encoding, Type encoded, RankedTensorType type,
               bool absent = false) {
    return nn::DecodeOp::create(builder, loc, type, payload, attribute(encoding),
                                TypeAttr::get(encoded), absent ? builder.getUnitAttr() : nullptr);
  }
  Value decodeSum(Value payload, Type encoded, RankedTensorType type) {
    return nn::DecodeSumOp::create(builder, loc, type, payload, builder.getI64IntegerAttr(n),
                                   attribute(encodings.reduce), TypeAttr::get(encoded));
  }
  EncodingAttr attribute(const Encoding &encoding) {
    return EncodingAttr::get(builder.getContext(), runtime::EncodingPair{encoding, encoding});
  }

  static bool isLast(Value value, int64_t dim) { return dim == tensorOf(value).getRank() - 1; }

  /// The dimensions before `dim`, and the pieces of that.
  static SmallVector<int64_t> partsTo(Value value, int64_t dim, int64_t pieces) {
    SmallVector<int64_t> parts(tensorOf(value).getShape().take_front(dim));
    parts.push_back(pieces);
    return parts;
  }

  /// Into how many pieces a row is cut so that all ranks add as much: 1 if its rows divide, or if
  /// no number of whole groups does.
  int64_t piecesOf(RankedTensorType type) const {
    const int64_t rows = rowsOf(type), columns = type.getShape().back();
    const int64_t unit = encodings.reduce.isCast() && encodings.gather.isCast()
                             ? 1
                             : std::max({encodings.reduce.group, encodings.gather.group});
    const bool nested = encodings.reduce.isCast() || encodings.gather.isCast() ||
                        unit % std::min(encodings.reduce.group, encodings.gather.group) == 0;
    if (rows % n == 0 || !nested || columns % unit != 0)
      return 1;
    for (int64_t pieces = 2; pieces <= n; ++pieces)
      if ((columns / unit) % pieces == 0 && rows * pieces % n == 0)
        return pieces;
    return 1;
  }

  static RankedTensorType splitType(RankedTensorType type, int64_t pieces) {
    SmallVector<int64_t> shape(type.getShape());
    shape.back() /= pieces;
    shape.insert(shape.end() - 1, pieces);
    return RankedTensorType::get(shape, type.getElementType());
  }
  static SmallVector<ReassociationIndices> lastTwo(int64_t rank) {
    SmallVector<ReassociationIndices> groups;
    for (int64_t d = 0; d < rank; ++d)
      groups.push_back({d});
    groups.back().push_back(rank);
    return groups;
  }
  /// [..., columns] as [..., pieces, columns / pieces], and back.
  Value splitLast(Value value, int64_t pieces) {
    RankedTensorType type = tensorOf(value);
    return tensor::ExpandShapeOp::create(builder, loc, splitType(type, pieces), value,
                                         lastTwo(type.getRank()));
  }
  Value joinLast(Value value, Value original) {
    RankedTensorType type = tensorOf(original);
    if (tensorOf(value).getRank() == type.getRank())
      return value;
    return tensor::CollapseShapeOp::create(builder, loc, type, value, lastTwo(type.getRank()));
  }

  Operation *op;
  OpBuilder builder;
  Location loc;
  runtime::EncodingPair encodings;
  int64_t n;
};

struct ExpandEncoded : impl::ExpandEncodedBase<ExpandEncoded> {
  void runOnOperation() override {
    SmallVector<CollectiveOpInterface> encoded;
    getOperation().walk([&](CollectiveOpInterface op) {
      if (op->hasAttr(CommDialect::kEncodingAttrName))
        encoded.push_back(op);
    });
    for (CollectiveOpInterface op : encoded)
      if (failed(expand(op)))
        return signalPassFailure();
  }

  LogicalResult expand(CollectiveOpInterface op) {
    auto encoding = op->getAttrOfType<EncodingAttr>(CommDialect::kEncodingAttrName);
    if (isStarted(op))
      return op->emitOpError("with encoding '")
             << encoding.getText() << "' expects to be outside of comm.start";
    const int64_t n = groupSize(op, op.getGroup());
    // Nothing travels in a group of one rank.
    if (n == 1) {
      remarkMissed(op, "ExpandEncoded", "its group has one rank, so that nothing is sent");
      op->removeAttr(CommDialect::kEncodingAttrName);
      return success();
    }
    Expansion expansion(op, encoding, n);
    SmallVector<Value> results;
    if (failed(expansion.expand(results)))
      return failure();
    remarkDone(op, "ExpandEncoded",
               "encoded as " + encoding.getText() + ": payloads of " +
                   Twine(expansion.payloadBytes) + " bytes for values of " +
                   Twine(totalBytes(op.getInputs().getTypes())));
    op->replaceAllUsesWith(results);
    op->erase();
    ++numExpanded;
    return success();
  }
};

} // namespace
} // namespace braid
