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
#include "Chunks.h"
#include "CollectiveUtils.h"

#include "braid/Base/RowPieces.h"
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

/// Builds the operations that replace one collective.
class Expansion {
public:
  Expansion(CollectiveOpInterface op, EncodingAttr encoding, int64_t n,
            const cost::EncodedChunks &limits)
      : op(op), builder(op), loc(op->getLoc()), codecLoc(named(op)), encodings(encoding.getPair()),
        n(n), chunks(op, builder, limits) {}

  LogicalResult expand(SmallVectorImpl<Value> &results) {
    if (auto reduce = dyn_cast<AllReduceOp>(op.getOperation()))
      return allReduce(reduce, results);
    if (auto scatter = dyn_cast<ReduceScatterOp>(op.getOperation()))
      return reduceScatter(scatter, results);
    if (auto gather = dyn_cast<AllGatherOp>(op.getOperation()))
      return allGather(gather, results);
    if (auto exchange = dyn_cast<AllToAllOp>(op.getOperation()))
      return allToAll(exchange, results);
    if (auto exchange = dyn_cast<AllToAllVOp>(op.getOperation()))
      return allToAllV(exchange, results);
    return wholeValues(results);
  }

  /// Bytes of the payloads that are given to collectives.
  int64_t payloadBytes = 0;
  /// What a remark says of chunks.
  std::string chunksText() const { return chunks.text(); }

private:
  /// An error of a codec names the collective.
  static Location named(CollectiveOpInterface op) {
    if (op.getRoleName().empty())
      return op->getLoc();
    return NameLoc::get(StringAttr::get(op->getContext(), op.getRoleName()), op->getLoc());
  }

  using Values = SmallVectorImpl<Value>;

  /// What every rank adds goes to the rank that adds it, and its sum to all.
  LogicalResult allReduce(AllReduceOp reduce, Values &results) {
    SmallVector<Value> rows;
    int64_t bytes = 0, most = 1;
    for (Value input : reduce.getInputs()) {
      // So that all ranks add as much: 1 if the rows divide, or if no number of whole groups does.
      const RankedTensorType type = tensorOf(input);
      const int64_t pieces = runtime::rowPieces(encodings, rowsOf(type), type.getShape().back(), n);
      rows.push_back(pieces == 1 ? input : splitLast(input, pieces));
      const RankedTensorType cut = tensorOf(rows.back());
      bytes += std::min(bytesOf(cut, encodings.reduce, n), bytesOf(cut, encodings.gather, n));
      most = std::max(most, llvm::divideCeilSigned(rowsOf(cut), n));
    }
    chunks.decide(bytes, n, most);
    // A chunk has equally many rows for every rank to add.
    const auto values = llvm::map_to_vector(rows, [&](Value v) { return chunks.byRows(v, n); });
    // Encodes the rows and sends their parts to the ranks that add them.
    auto send = [&](int64_t chunk) {
      SmallVector<Value> sent;
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType) {
        sent.push_back(encode(chunks.slice(values[i], chunk), encodings.reduce, {n}));
      });
      auto exchange = AllToAllOp::create(builder, loc, ValueRange(sent).getTypes(), sent, 0, 0,
                                         reduce.getGroup(), StringAttr());
      chunks.name(exchange, values, chunk, "all_to_all");
      return llvm::to_vector_of<Value>(exchange.getOutputs());
    };
    // Adds this rank's part and sends the sum to all.
    auto add = [&](int64_t chunk, ArrayRef<Value> payloads) {
      SmallVector<Value> sums;
      SmallVector<Type> gathered;
      chunks.forValues(values, chunk, [&](size_t, RankedTensorType type) {
        auto sum =
            RankedTensorType::get({llvm::divideCeilSigned(rowsOf(type), n), type.getShape().back()},
                                  builder.getF32Type());
        sums.push_back(encode(decodeSum(payloads[sums.size()], type.getElementType(), sum),
                              encodings.gather, {1}));
        gathered.push_back(gatheredType(sums.back().getType(), 0, n));
      });
      auto gather =
          AllGatherOp::create(builder, loc, gathered, sums, 0, reduce.getGroup(), StringAttr());
      chunks.name(gather, values, chunk, "all_gather");
      return llvm::to_vector_of<Value>(gather.getOutputs());
    };
    std::vector<SmallVector<Value>> decoded(values.size());
    auto take = [&](int64_t chunk, ArrayRef<Value> payloads) {
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType type) {
        decoded[i].push_back(
            decode(payloads.consume_front(), encodings.gather, builder.getF32Type(), type));
      });
    };
    chunks.inOrder(send, add, take);
    for (auto [value, parts, output] : llvm::zip_equal(rows, decoded, reduce.getOutputs()))
      results.push_back(joinLast(chunks.joinRows(parts, tensorOf(value)), output));
    return success();
  }

  /// What each rank is to add goes to it, in chunks of the rows of every rank's part.
  LogicalResult reduceScatter(ReduceScatterOp scatter, Values &results) {
    const auto dim = static_cast<int64_t>(scatter.getDim());
    decideAlong(scatter.getInputs(), dim, encodings.reduce, n);
    SmallVector<Chunks::Cut> values;
    for (Value input : scatter.getInputs()) {
      const bool last = isLast(input, dim);
      Value split = last || chunks.count() > 1 ? splitDim(builder, loc, input, dim, n) : input;
      values.push_back(cutAlong(split, last, dim, dim + 1));
    }
    auto send = [&](int64_t chunk) {
      SmallVector<Value> payloads;
      SmallVector<Type> types;
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType) {
        Value part = chunks.slice(values[i], chunk);
        payloads.push_back(encode(part, encodings.reduce, partsTo(part, dim, n)));
        types.push_back(gatheredType(shardType(payloads.back().getType(), dim, n), 0, n));
      });
      auto sent = AllToAllOp::create(builder, loc, types, payloads, dim, 0, scatter.getGroup(),
                                     StringAttr());
      chunks.name(sent, values, chunk);
      return llvm::to_vector_of<Value>(sent.getOutputs());
    };
    std::vector<SmallVector<Value>> sums(values.size());
    auto add = [&](int64_t chunk, ArrayRef<Value> payloads) {
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType type) {
        Value output = scatter.getOutputs()[i];
        if (isLast(output, dim))
          type = withSize(type, dim, 1);
        else
          type = chunks.count() == 1 ? tensorOf(output) : withoutDim(type, dim);
        sums[i].push_back(decodeSum(payloads.consume_front(), type.getElementType(), type));
      });
    };
    chunks.inOrder(send, add);
    for (auto [own, output] : llvm::zip_equal(sums, scatter.getOutputs()))
      results.push_back(mergeDim(builder, loc, chunks.join(own, isLast(output, dim) ? 0 : dim), dim,
                                 tensorOf(output)));
    return success();
  }

  /// What each rank has goes to all, in chunks of its rows.
  LogicalResult allGather(AllGatherOp gather, Values &results) {
    const auto dim = static_cast<int64_t>(gather.getDim());
    decideAlong(gather.getInputs(), dim, encodings.gather, 1);
    SmallVector<Chunks::Cut> values;
    for (Value input : gather.getInputs()) {
      const bool last = isLast(input, dim);
      values.push_back(
          cutAlong(last ? splitDim(builder, loc, input, dim, 1) : input, last, dim, dim));
    }
    auto send = [&](int64_t chunk) {
      SmallVector<Value> payloads;
      SmallVector<Type> types;
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType) {
        Value part = chunks.slice(values[i], chunk);
        payloads.push_back(encode(part, encodings.gather, partsTo(part, dim, 1)));
        types.push_back(gatheredType(payloads.back().getType(), dim, n));
      });
      auto received =
          AllGatherOp::create(builder, loc, types, payloads, dim, gather.getGroup(), StringAttr());
      chunks.name(received, values, chunk);
      return llvm::to_vector_of<Value>(received.getOutputs());
    };
    std::vector<SmallVector<Value>> decoded(values.size());
    auto take = [&](int64_t chunk, ArrayRef<Value> payloads) {
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType type) {
        Value output = gather.getOutputs()[i];
        if (isLast(output, dim))
          type = withSize(type, dim, n);
        else
          type = chunks.count() == 1 ? tensorOf(output) : withDim(type, dim, n);
        decoded[i].push_back(
            decode(payloads.consume_front(), encodings.gather, type.getElementType(), type));
      });
    };
    chunks.inOrder(send, take);
    for (auto [parts, output] : llvm::zip_equal(decoded, gather.getOutputs()))
      results.push_back(mergeDim(builder, loc,
                                 chunks.join(parts, isLast(output, dim) ? 0 : dim + 1), dim,
                                 tensorOf(output)));
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
      payloads.push_back(encode(flat ? splitLast(input, piecesOfRows(op, input)) : input,
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
    // Ranks that are no target have zeros.
    const bool absent = isa<PermuteOp, RecvOp>(op);
    for (auto [payload, output] : llvm::zip_equal(exchange->getResults(), op->getResults()))
      results.push_back(decode(payload, encodings.gather, tensorOf(output).getElementType(),
                               tensorOf(output), absent));
    return success();
  }

  Value encode(Value value, const Encoding &encoding, ArrayRef<int64_t> parts) {
    auto encoded = nn::EncodeOp::create(builder, codecLoc, value, encoding, parts);
    payloadBytes += tensorOf(encoded).getNumElements();
    return encoded;
  }
  Value decode(Value payload, const Encoding &encoding, Type encoded, RankedTensorType type,
               bool absent = false) {
    return nn::DecodeOp::create(builder, codecLoc, type, payload, attribute(encoding),
                                TypeAttr::get(encoded), absent ? builder.getUnitAttr() : nullptr);
  }
  Value decodeSum(Value payload, Type encoded, RankedTensorType type) {
    return nn::DecodeSumOp::create(builder, codecLoc, type, payload, builder.getI64IntegerAttr(n),
                                   attribute(encodings.reduce), TypeAttr::get(encoded));
  }
  EncodingAttr attribute(const Encoding &encoding) {
    return EncodingAttr::get(builder.getContext(), runtime::EncodingPair{encoding, encoding});
  }

  //===--------------------------------------------------------------------===//
  // Rows and parts
  //===--------------------------------------------------------------------===//

  static int64_t bytesOf(RankedTensorType type, const Encoding &encoding, int64_t parts) {
    const auto layout = runtime::PayloadLayout::of(encoding, *toRuntime(type.getElementType()),
                                                   rowsOf(type), type.getShape().back(), parts);
    return layout.ok() ? layout->bytes : 0; // the verifier of nn.encode says why
  }

  /// Decides the number of chunks of payloads of which a rank gets one of `pieces` along a
  /// dimension.
  void decideAlong(ValueRange inputs, int64_t dim, const Encoding &encoding, int64_t pieces) {
    int64_t bytes = 0, most = 1;
    for (Value input : inputs) {
      const bool last = isLast(input, dim);
      const RankedTensorType type = last ? splitType(tensorOf(input), pieces) : tensorOf(input);
      int64_t parts = pieces;
      for (int64_t size : type.getShape().take_front(dim))
        parts *= size;
      bytes += bytesOf(type, encoding, parts);
      if (!last)
        most = std::max(most, type.getDimSize(dim) / pieces);
      else if (dim > 0)
        most = std::max(most, type.getDimSize(0));
    }
    chunks.decide(bytes, pieces, most);
  }
  /// Along `rows`, or, where the last dimension is divided, along the first one, if there is
  /// another.
  Chunks::Cut cutAlong(Value value, bool last, int64_t dim, int64_t rows) const {
    return chunks.along(value, !last ? rows : dim > 0 ? 0 : -1);
  }

  /// The dimensions before `dim`, and the pieces of that.
  static SmallVector<int64_t> partsTo(Value value, int64_t dim, int64_t pieces) {
    SmallVector<int64_t> parts(tensorOf(value).getShape().take_front(dim));
    parts.push_back(pieces);
    return parts;
  }

  /// [.., size] as [.., pieces, size / pieces], and back.
  static RankedTensorType splitType(RankedTensorType type, int64_t pieces) {
    const int64_t last = type.getRank() - 1;
    return withDim(shardType(type, last, pieces), last, pieces);
  }
  Value splitLast(Value value, int64_t pieces) {
    return splitDim(builder, loc, value, tensorOf(value).getRank() - 1, pieces);
  }
  Value joinLast(Value value, Value original) {
    const RankedTensorType type = tensorOf(original);
    return mergeDim(builder, loc, value, type.getRank() - 1, type);
  }

  CollectiveOpInterface op;
  OpBuilder builder;
  Location loc, codecLoc;
  runtime::EncodingPair encodings;
  int64_t n;
  Chunks chunks;
};

struct ExpandEncoded : impl::ExpandEncodedBase<ExpandEncoded> {
  using ExpandEncodedBase::ExpandEncodedBase;

  void runOnOperation() override {
    if (messageBytes < 0 || mostChunks < 1) {
      getOperation().emitError(
          "expects message-bytes of at least 0 and most-chunks of at least 1, got ")
          << messageBytes.getValue() << " and " << mostChunks.getValue();
      return signalPassFailure();
    }
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
      remarkMissed(op, "ExpandEncoded", kOneRank);
      op->removeAttr(CommDialect::kEncodingAttrName);
      return success();
    }
    Expansion expansion(op, encoding, n, {messageBytes, mostChunks});
    SmallVector<Value> results;
    if (failed(expansion.expand(results)))
      return failure();
    remarkDone(op, "ExpandEncoded",
               "encoded as " + encoding.getText() + ": payloads of " +
                   Twine(expansion.payloadBytes) + " bytes for values of " +
                   Twine(totalBytes(op.getInputs().getTypes())) + expansion.chunksText());
    op->replaceAllUsesWith(results);
    op->erase();
    ++numExpanded;
    return success();
  }
};

} // namespace
} // namespace braid
