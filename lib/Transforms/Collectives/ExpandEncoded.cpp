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
#include "ChunkTags.h"
#include "Chunks.h"
#include "CollectiveUtils.h"

#include "braid/Base/RowPieces.h"
#include "braid/Transforms/Passes.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

#include "llvm/ADT/TypeSwitch.h"

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
            const cost::EncodedChunks &limits, ChunkTags &tags)
      : op(op), builder(op), loc(op->getLoc()), codecLoc(named(op)), encodings(encoding.getPair()),
        n(n), chunks(op, builder, limits), tags(tags) {}

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
    return handOn(results);
  }

  /// Bytes of the payloads that are given to collectives.
  int64_t payloadBytes = 0;
  /// What a remark says of chunks.
  std::string chunksText() const {
    return isa<AllToAllVOp>(op) ? ", in one chunk, as counts say how much is sent" : chunks.text();
  }

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
    const auto values =
        llvm::map_to_vector(rows, [&](Value v) { return chunks.byRows(tensorOf(v), v, n); });
    // Encodes the rows and sends their parts to the ranks that add them.
    auto send = [&](int64_t chunk) {
      SmallVector<Value> sent;
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType) {
        sent.push_back(encode(chunks.slice(values[i], chunk), encodings.reduce, {n}, toOthers()));
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
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType type) {
        auto sum =
            RankedTensorType::get({llvm::divideCeilSigned(rowsOf(type), n), type.getShape().back()},
                                  builder.getF32Type());
        Value own = ownRows(chunks.slice(values[i], chunk));
        sums.push_back(encode(decodeSum(payloads[sums.size()], own, sum), encodings.gather, {1}));
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
        const auto parts = partsTo(tensorOf(part), dim, n);
        payloads.push_back(values[i].along > dim
                               ? encodePieces(part, encodings.reduce, dim, parts, toOthers())
                               : encode(part, encodings.reduce, parts, toOthers()));
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
        Value part =
            createSlice(builder, loc, chunks.slice(values[i], chunk), dim, scatter.getGroup());
        sums[i].push_back(
            decodeSum(payloads.consume_front(), mergeDim(builder, loc, part, dim, type), type));
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
        payloads.push_back(encode(part, encodings.gather, partsTo(tensorOf(part), dim, 1)));
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
        Value payload = payloads.consume_front();
        decoded[i].push_back(values[i].along == dim
                                 ? decodePieces(payload, type, dim)
                                 : decode(payload, encodings.gather, type.getElementType(), type));
      });
    };
    chunks.inOrder(send, take);
    for (auto [parts, output] : llvm::zip_equal(decoded, gather.getOutputs()))
      results.push_back(mergeDim(builder, loc,
                                 chunks.join(parts, isLast(output, dim) ? 0 : dim + 1), dim,
                                 tensorOf(output)));
    return success();
  }

  /// Each part goes to its rank, in chunks along the longest dimension that a part has before its
  /// columns.
  LogicalResult allToAll(AllToAllOp exchange, Values &results) {
    const auto split = static_cast<int64_t>(exchange.getSplitDim());
    const auto concat = static_cast<int64_t>(exchange.getConcatDim());
    // A payload enumerates the dimensions before the inner one, and n pieces of that if it is
    // split.
    const int64_t inner = std::max(split, concat), pieces = inner == split ? n : 1;
    SmallVector<int64_t> dims; // that values are cut along
    int64_t bytes = 0, most = 1;
    for (Value input : exchange.getInputs()) {
      const RankedTensorType type = tensorOf(input), part = shardType(type, split, n);
      dims.push_back(cost::longestDim(part.getShape().drop_back().vec()));
      if (dims.back() >= 0)
        most = std::max(most, part.getDimSize(dims.back()));
      bytes += bytesOf(isLast(input, split) ? splitType(type, split, n) : type, encodings.gather,
                       product(partsTo(type, inner, pieces)));
    }
    chunks.decide(bytes, n, most);
    auto isCut = [&](size_t i) { return chunks.count() > 1 && dims[i] >= 0; };
    SmallVector<Chunks::Cut> values;
    for (auto [i, input] : llvm::enumerate(exchange.getInputs())) {
      // What goes to each rank is apart where it is columns, or is cut.
      const bool isApart = isLast(input, split) || (isCut(i) && dims[i] == split);
      values.push_back(chunks.along(isApart ? splitDim(builder, loc, input, split, n) : input,
                                    isCut(i) && dims[i] == split ? split + 1 : dims[i]));
    }
    auto send = [&](int64_t chunk) {
      SmallVector<Value> payloads;
      SmallVector<Type> types;
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType type) {
        const bool isApart = type.getRank() > tensorOf(exchange.getInputs()[i]).getRank();
        const auto parts = partsTo(isApart ? mergedType(type, split) : type, inner, pieces);
        Value part = chunks.slice(values[i], chunk);
        payloads.push_back(isCut(i) && dims[i] == split
                               ? encodePieces(part, encodings.gather, split, parts)
                               : encode(part, encodings.gather, parts));
        types.push_back(gatheredType(shardType(payloads.back().getType(), split, n), concat, n));
      });
      auto sent = AllToAllOp::create(builder, loc, types, payloads, split, concat,
                                     exchange.getGroup(), StringAttr());
      chunks.name(sent, values, chunk);
      return llvm::to_vector_of<Value>(sent.getOutputs());
    };
    std::vector<SmallVector<Value>> decoded(values.size());
    auto take = [&](int64_t chunk, ArrayRef<Value> payloads) {
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType part) {
        Value output = exchange.getOutputs()[i];
        RankedTensorType type = tensorOf(output);
        if (isCut(i)) {
          const int64_t size = part.getDimSize(values[i].along);
          type = withSize(type, dims[i], dims[i] == concat ? n * size : size);
        }
        const bool cutsJoined = isCut(i) && dims[i] == concat;
        if (isLast(output, concat) || cutsJoined)
          type = splitType(type, concat, n);
        Value payload = payloads.consume_front();
        decoded[i].push_back(cutsJoined
                                 ? decodePieces(payload, type, concat)
                                 : decode(payload, encodings.gather, type.getElementType(), type));
      });
    };
    chunks.inOrder(send, take);
    for (auto [parts, dim, output] : llvm::zip_equal(decoded, dims, exchange.getOutputs()))
      results.push_back(mergeDim(builder, loc, chunks.join(parts, dim == concat ? dim + 1 : dim),
                                 concat, tensorOf(output)));
    return success();
  }

  /// A codec takes rows that are equally far apart. Those of a chunk are not where they are some of
  /// each of n pieces along a dimension. Where nothing is before it, each piece is encoded, or
  /// decoded, where it is, by itself; otherwise the rows will be copied.
  Value encodePieces(Value value, const Encoding &encoding, int64_t dim, SmallVector<int64_t> parts,
                     GroupAttr group = {}) {
    if (product(tensorOf(value).getShape().take_front(dim)) != 1)
      return encode(value, encoding, parts, group);
    parts[dim] /= n;
    SmallVector<Value> pieces;
    for (int64_t piece = 0; piece < n; ++piece)
      pieces.push_back(encode(nn::SliceOp::create(builder, loc, value, dim, piece, 1), encoding,
                              parts, group, group ? piece : 0));
    return chunks.join(pieces, dim);
  }
  Value decodePieces(Value payload, RankedTensorType type, int64_t dim) {
    if (product(type.getShape().take_front(dim)) != 1)
      return decode(payload, encodings.gather, type.getElementType(), type);
    const int64_t size = tensorOf(payload).getDimSize(dim) / n;
    SmallVector<Value> pieces;
    for (int64_t piece = 0; piece < n; ++piece)
      pieces.push_back(decode(nn::SliceOp::create(builder, loc, payload, dim, piece * size, size),
                              encodings.gather, type.getElementType(), withSize(type, dim, 1)));
    return chunks.join(pieces, dim);
  }

  /// Each row of a block travels by itself, as any number of them may. How many is known at run
  /// time only, and so they are not cut.
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
      RankedTensorType whole =
          type.getRank() == 2 ? splitType(type, 1, type.getShape().back()) : type;
      results.push_back(
          joinLast(decode(payload, encodings.gather, type.getElementType(), whole, /*absent=*/true),
                   output));
    }
    results.push_back(sent.getReceivedCounts());
    return success();
  }

  /// Broadcasts, permutes, sends and receives hand on payloads as they are, in chunks of rows. What
  /// is received is cut like what is sent, which has the same types.
  LogicalResult handOn(Values &results) {
    const bool receives = isa<RecvOp>(op);
    auto types = llvm::map_to_vector(receives ? TypeRange(op->getResultTypes())
                                              : TypeRange(op->getOperandTypes()),
                                     [](Type type) { return cast<RankedTensorType>(type); });
    auto layoutOf = [&](RankedTensorType type) {
      return runtime::PayloadLayout::of(encodings.gather, *toRuntime(type.getElementType()),
                                        rowsOf(type), type.getShape().back(), 1);
    };
    int64_t bytes = 0, most = 1;
    for (RankedTensorType type : types) {
      const auto layout = layoutOf(type);
      if (!layout.ok())
        return op->emitOpError() << layout.status().message();
      bytes += layout->bytes;
      most = std::max(most, rowsOf(type));
    }
    chunks.decide(bytes, 1, most);
    SmallVector<Chunks::Cut> values;
    for (auto [i, type] : llvm::enumerate(types))
      values.push_back(chunks.byRows(type, receives ? Value() : op->getOperand(i)));
    auto send = [&](int64_t chunk) {
      OperationState state(loc, op->getName());
      state.attributes = op->getAttrDictionary();
      state.attributes.erase(CommDialect::kEncodingAttrName);
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType type) {
        if (!receives)
          state.operands.push_back(encode(chunks.slice(values[i], chunk), encodings.gather, {1}));
        if (op->getNumResults() != 0)
          state.types.push_back(
              RankedTensorType::get({1, layoutOf(type)->partBytes}, builder.getI8Type()));
      });
      Operation *part = builder.create(state);
      llvm::TypeSwitch<Operation *>(part).Case<SendOp, RecvOp>(
          [&](auto message) { message.setTag(tags.of(message.getTag(), chunk)); });
      chunks.name(part, values, chunk);
      return llvm::to_vector_of<Value>(part->getResults());
    };
    std::vector<SmallVector<Value>> decoded(op->getNumResults());
    auto take = [&](int64_t chunk, ArrayRef<Value> payloads) {
      if (decoded.empty())
        return;
      chunks.forValues(values, chunk, [&](size_t i, RankedTensorType type) {
        // Ranks that are no target have zeros.
        decoded[i].push_back(decode(payloads.consume_front(), encodings.gather,
                                    type.getElementType(), type, isa<PermuteOp, RecvOp>(op)));
      });
    };
    chunks.inOrder(send, take);
    for (auto [parts, output] : llvm::zip_equal(decoded, op->getResults()))
      results.push_back(chunks.joinRows(parts, tensorOf(output)));
    return success();
  }

  /// With a group, the parts are for its ranks, from `first` on, and none for the rank itself.
  Value encode(Value value, const Encoding &encoding, ArrayRef<int64_t> parts, GroupAttr group = {},
               int64_t first = 0) {
    auto encoded = nn::EncodeOp::create(builder, codecLoc, value, encoding, parts, group, first);
    payloadBytes += tensorOf(encoded).getNumElements();
    return encoded;
  }
  Value decode(Value payload, const Encoding &encoding, Type encoded, RankedTensorType type,
               bool absent = false) {
    return nn::DecodeOp::create(builder, codecLoc, type, payload, attribute(encoding),
                                TypeAttr::get(encoded), absent ? builder.getUnitAttr() : nullptr);
  }
  /// What a rank adds itself does not travel, and so it is neither encoded nor decoded.
  GroupAttr toOthers() { return op.getGroup(); }
  Value decodeSum(Value payload, Value own, RankedTensorType type) {
    return nn::DecodeSumOp::create(builder, codecLoc, type, payload, own, op.getGroup(),
                                   builder.getI64IntegerAttr(n), attribute(encodings.reduce),
                                   TypeAttr::get(tensorOf(own).getElementType()));
  }
  /// The part of an all_reduce's rows, as a matrix, that this rank adds. Where the ranks do not
  /// divide the rows, copies of some stand for those that are missing, whose sum is nobody's.
  Value ownRows(Value value) {
    const RankedTensorType type = tensorOf(value);
    const int64_t columns = type.getShape().back(), count = rowsOf(type);
    Value rows = value;
    const auto matrix = RankedTensorType::get({count, columns}, type.getElementType());
    if (type.getRank() == 1)
      rows = tensor::ExpandShapeOp::create(builder, loc, matrix, value,
                                           ArrayRef<ReassociationIndices>{{0, 1}});
    else if (type.getRank() > 2)
      rows =
          tensor::CollapseShapeOp::create(builder, loc, matrix, value, matrixDims(type.getRank()));
    SmallVector<Value> all;
    for (int64_t missing = llvm::alignTo(count, n); missing > 0; missing -= count)
      all.push_back(missing >= count
                        ? rows
                        : nn::SliceOp::create(builder, loc, rows, 0, 0, missing).getResult());
    return createSlice(builder, loc, chunks.join(all, 0), 0, op.getGroup());
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
      const RankedTensorType type =
          last ? splitType(tensorOf(input), dim, pieces) : tensorOf(input);
      bytes += bytesOf(type, encoding, product(partsTo(type, dim, pieces)));
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
  static SmallVector<int64_t> partsTo(RankedTensorType type, int64_t dim, int64_t pieces) {
    SmallVector<int64_t> parts(type.getShape().take_front(dim));
    parts.push_back(pieces);
    return parts;
  }
  static int64_t product(ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  }

  /// [.., size, ..] as [.., pieces, size / pieces, ..], and back.
  static RankedTensorType splitType(RankedTensorType type, int64_t dim, int64_t pieces) {
    return withDim(shardType(type, dim, pieces), dim, pieces);
  }
  static RankedTensorType mergedType(RankedTensorType type, int64_t dim) {
    return withoutDim(withSize(type, dim + 1, type.getDimSize(dim) * type.getDimSize(dim + 1)),
                      dim);
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
  ChunkTags &tags;
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
    ChunkTags tags(getOperation());
    for (CollectiveOpInterface op : encoded)
      if (failed(expand(op, tags)))
        return signalPassFailure();
  }

  LogicalResult expand(CollectiveOpInterface op, ChunkTags &tags) {
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
    Expansion expansion(op, encoding, n, {messageBytes, mostChunks}, tags);
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
