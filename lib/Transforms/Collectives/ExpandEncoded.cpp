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

#include "braid/Base/RowPieces.h"
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

/// How values are cut.
struct Chunking {
  int64_t leastMessageBytes; ///< of payload to each rank, in each of several chunks; 0: one chunk
  int64_t mostChunks;
};

/// Builds the operations that replace one collective.
class Expansion {
public:
  Expansion(Operation *op, EncodingAttr encoding, int64_t n, const Chunking &chunking)
      : op(op), builder(op), loc(op->getLoc()), codecLoc(named(op)), encodings(encoding.getPair()),
        n(n), chunking(chunking) {}

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
  /// What a remark says of chunks.
  std::string chunksText() const {
    if (leastChunkBytes == 0)
      return "";
    const std::string least = std::to_string(leastChunkBytes) + " bytes of payload";
    if (chunks == 1)
      return ", in one chunk, as there are no two of whole rows with " + least;
    return ", in " + std::to_string(chunks) + " chunks of at least " + least;
  }

private:
  /// An error of a codec names the collective.
  static Location named(Operation *op) {
    StringRef name = cast<CollectiveOpInterface>(op).getRoleName();
    if (name.empty())
      return op->getLoc();
    return NameLoc::get(StringAttr::get(op->getContext(), name), op->getLoc());
  }

  using Values = SmallVectorImpl<Value>;

  /// So many chunks are sent to the ranks that add them before the first one is added, and so many
  /// sums are on their way before the first one is decoded. A queue has as many under way at once;
  /// to encode more would only take the processor from it.
  static constexpr int64_t kAhead = 4;

  /// What every rank adds goes to the rank that adds it, and its sum to all, in chunks: while some
  /// are on their way, others are encoded, added or decoded.
  LogicalResult allReduce(AllReduceOp reduce, Values &results) {
    SmallVector<Value> values;
    for (Value input : reduce.getInputs()) {
      const int64_t pieces = piecesOf(tensorOf(input));
      values.push_back(pieces == 1 ? input : splitLast(input, pieces));
    }
    cut(values);
    const SmallVector<Value> matrices =
        llvm::map_to_vector(values, [&](Value v) { return matrix(v); });
    std::vector<SmallVector<Value>> decoded(values.size());
    // Of each chunk, those of the values that it has rows of.
    std::vector<SmallVector<Value>> payloads(static_cast<size_t>(chunks));
    for (int64_t chunk = 0; chunk < std::min(kAhead, chunks); ++chunk)
      payloads[chunk] = send(reduce, matrices, chunk);
    for (int64_t chunk = 0; chunk < chunks + kAhead; ++chunk) {
      if (chunk < chunks)
        payloads[chunk] = add(reduce, matrices, chunk, payloads[chunk]);
      if (chunk + kAhead < chunks)
        payloads[chunk + kAhead] = send(reduce, matrices, chunk + kAhead);
      if (chunk >= kAhead && chunk - kAhead < chunks)
        take(matrices, chunk - kAhead, payloads[chunk - kAhead], decoded);
    }
    for (auto [value, parts, output] : llvm::zip_equal(values, decoded, reduce.getOutputs()))
      results.push_back(joinLast(join(parts, tensorOf(value)), output));
    return success();
  }

  /// Encodes a chunk and sends its parts to the ranks that add them. Returns what comes from all.
  SmallVector<Value> send(AllReduceOp reduce, ArrayRef<Value> matrices, int64_t chunk) {
    SmallVector<Value> sent;
    for (Value value : matrices)
      if (const Rows rows = rowsOfChunk(value, chunk); rows.size != 0)
        sent.push_back(encode(slice(value, rows), encodings.reduce, {n}));
    auto exchange = AllToAllOp::create(builder, loc, ValueRange(sent).getTypes(), sent, 0, 0,
                                       reduce.getGroup(), StringAttr());
    nameChunk(exchange, matrices, chunk, "all_to_all");
    return llvm::to_vector_of<Value>(exchange.getOutputs());
  }

  /// Adds this rank's part of a chunk and sends the sum to all. Returns the sums of all ranks.
  SmallVector<Value> add(AllReduceOp reduce, ArrayRef<Value> matrices, int64_t chunk,
                         ArrayRef<Value> payloads) {
    SmallVector<Value> sums;
    SmallVector<Type> gathered;
    for (Value value : matrices) {
      const Rows rows = rowsOfChunk(value, chunk);
      if (rows.size == 0)
        continue;
      RankedTensorType type = tensorOf(value);
      auto sum = RankedTensorType::get(
          {llvm::divideCeilSigned(rows.size, n), type.getShape().back()}, builder.getF32Type());
      sums.push_back(encode(decodeSum(payloads[sums.size()], type.getElementType(), sum),
                            encodings.gather, {1}));
      gathered.push_back(gatheredType(sums.back().getType(), 0, n));
    }
    auto gather =
        AllGatherOp::create(builder, loc, gathered, sums, 0, reduce.getGroup(), StringAttr());
    nameChunk(gather, matrices, chunk, "all_gather");
    return llvm::to_vector_of<Value>(gather.getOutputs());
  }

  /// Decodes the sums of a chunk, the next rows of each value.
  void take(ArrayRef<Value> matrices, int64_t chunk, ArrayRef<Value> payloads,
            std::vector<SmallVector<Value>> &decoded) {
    for (auto [value, parts] : llvm::zip_equal(matrices, decoded))
      if (const Rows rows = rowsOfChunk(value, chunk); rows.size != 0) {
        parts.push_back(decode(payloads.front(), encodings.gather, builder.getF32Type(),
                               sliceType(tensorOf(value), rows)));
        payloads = payloads.drop_front();
      }
  }

  /// What each rank is to add goes to it, in chunks of the rows of every rank's part.
  LogicalResult reduceScatter(ReduceScatterOp scatter, Values &results) {
    const auto dim = static_cast<int64_t>(scatter.getDim());
    cutAlong(scatter.getInputs(), dim, encodings.reduce, n);
    SmallVector<Cut> values;
    for (Value input : scatter.getInputs()) {
      const bool last = isLast(input, dim);
      Value split = last || chunks > 1 ? splitDim(input, dim, n) : input;
      values.push_back(cutOf(split, last, dim, dim + 1));
    }
    std::vector<SmallVector<Value>> sums(values.size());
    auto send = [&](int64_t chunk) {
      SmallVector<Value> payloads;
      for (const Cut &value : values)
        if (Value part = slice(value, chunk))
          payloads.push_back(encode(part, encodings.reduce, partsTo(part, dim, n)));
      auto types = llvm::map_to_vector(payloads, [&](Value payload) -> Type {
        return gatheredType(shardType(payload.getType(), dim, n), 0, n);
      });
      auto sent = AllToAllOp::create(builder, loc, types, payloads, dim, 0, scatter.getGroup(),
                                     StringAttr());
      nameChunk(sent, values, chunk);
      return llvm::to_vector_of<Value>(sent.getOutputs());
    };
    auto add = [&](int64_t chunk, ArrayRef<Value> payloads) {
      for (auto [value, own, output] : llvm::zip_equal(values, sums, scatter.getOutputs()))
        if (RankedTensorType type = sliceType(value, chunk)) {
          if (isLast(output, dim))
            type = withSize(type, dim, 1);
          else
            type = chunks == 1 ? tensorOf(output) : withoutDim(type, dim);
          own.push_back(decodeSum(payloads.front(), type.getElementType(), type));
          payloads = payloads.drop_front();
        }
    };
    inChunks(send, add);
    for (auto [own, output] : llvm::zip_equal(sums, scatter.getOutputs()))
      results.push_back(
          mergeDim(joinAlong(own, isLast(output, dim) ? 0 : dim), dim, tensorOf(output)));
    return success();
  }

  /// What each rank has goes to all, in chunks of its rows.
  LogicalResult allGather(AllGatherOp gather, Values &results) {
    const auto dim = static_cast<int64_t>(gather.getDim());
    cutAlong(gather.getInputs(), dim, encodings.gather, 1);
    SmallVector<Cut> values;
    for (Value input : gather.getInputs()) {
      const bool last = isLast(input, dim);
      values.push_back(cutOf(last ? splitDim(input, dim, 1) : input, last, dim, dim));
    }
    std::vector<SmallVector<Value>> decoded(values.size());
    auto send = [&](int64_t chunk) {
      SmallVector<Value> payloads;
      for (const Cut &value : values)
        if (Value part = slice(value, chunk))
          payloads.push_back(encode(part, encodings.gather, partsTo(part, dim, 1)));
      auto types = llvm::map_to_vector(
          payloads, [&](Value payload) -> Type { return gatheredType(payload.getType(), dim, n); });
      auto received =
          AllGatherOp::create(builder, loc, types, payloads, dim, gather.getGroup(), StringAttr());
      nameChunk(received, values, chunk);
      return llvm::to_vector_of<Value>(received.getOutputs());
    };
    auto take = [&](int64_t chunk, ArrayRef<Value> payloads) {
      for (auto [value, parts, output] : llvm::zip_equal(values, decoded, gather.getOutputs()))
        if (RankedTensorType type = sliceType(value, chunk)) {
          if (isLast(output, dim))
            type = withSize(type, dim, n);
          else
            type = chunks == 1 ? tensorOf(output) : withDim(type, dim, n);
          parts.push_back(decode(payloads.front(), encodings.gather, type.getElementType(), type));
          payloads = payloads.drop_front();
        }
    };
    inChunks(send, take);
    for (auto [parts, output] : llvm::zip_equal(decoded, gather.getOutputs()))
      results.push_back(
          mergeDim(joinAlong(parts, isLast(output, dim) ? 0 : dim + 1), dim, tensorOf(output)));
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
  // Chunks
  //===--------------------------------------------------------------------===//

  struct Rows {
    int64_t from, size;
  };

  /// Into as many chunks as have the least bytes of payload, of either half.
  void cut(ArrayRef<Value> values) {
    int64_t bytes = 0, most = 1;
    for (Value value : values) {
      const RankedTensorType type = tensorOf(value);
      const int64_t rows = rowsOf(type), columns = type.getShape().back();
      auto bytesAs = [&](const Encoding &encoding) {
        const auto layout = runtime::PayloadLayout::of(encoding, *toRuntime(type.getElementType()),
                                                       rows, columns, n);
        return layout.ok() ? layout->bytes : 0; // the verifier of nn.encode says why
      };
      bytes += std::min(bytesAs(encodings.reduce), bytesAs(encodings.gather));
      most = std::max(most, llvm::divideCeilSigned(rows, n));
    }
    if (chunking.leastMessageBytes == 0)
      return;
    leastChunkBytes = n * chunking.leastMessageBytes;
    chunks = std::clamp<int64_t>(bytes / leastChunkBytes, 1, std::min(chunking.mostChunks, most));
  }

  /// A chunk has equally many rows for every rank to add. Only the last one is padded, as the whole
  /// value would be, so that the bits are those of one chunk.
  Rows rowsOfChunk(Value value, int64_t chunk) const {
    const int64_t rows = rowsOf(tensorOf(value)), ofRank = llvm::divideCeilSigned(rows, n);
    auto begin = [&](int64_t i) { return std::min(rows, ofRank * i / chunks * n); };
    return {begin(chunk), begin(chunk + 1) - begin(chunk)};
  }

  /// A value and the dimension that is cut, or -1: the last chunk has all of it.
  struct Cut {
    Value value;
    int64_t along;
  };
  /// Along `rows`, or, where the last dimension is divided, along the first one, if there is
  /// another.
  Cut cutOf(Value value, bool last, int64_t dim, int64_t rows) const {
    return {value, chunks == 1 ? -1 : !last ? rows : dim > 0 ? 0 : -1};
  }
  /// The same of payloads of which a rank gets one of `pieces`.
  void cutAlong(ValueRange inputs, int64_t dim, const Encoding &encoding, int64_t pieces) {
    int64_t bytes = 0, most = 1;
    for (Value input : inputs) {
      const bool last = isLast(input, dim);
      const RankedTensorType type =
          last ? splitType(tensorOf(input), dim, pieces) : tensorOf(input);
      int64_t parts = pieces;
      for (int64_t size : type.getShape().take_front(dim))
        parts *= size;
      const auto layout = runtime::PayloadLayout::of(encoding, *toRuntime(type.getElementType()),
                                                     rowsOf(type), type.getShape().back(), parts);
      bytes += layout.ok() ? layout->bytes : 0; // the verifier of nn.encode says why
      if (!last)
        most = std::max(most, type.getDimSize(dim) / pieces);
      else if (dim > 0)
        most = std::max(most, type.getDimSize(0));
    }
    if (chunking.leastMessageBytes == 0)
      return;
    leastChunkBytes = pieces * chunking.leastMessageBytes;
    chunks = std::clamp<int64_t>(bytes / leastChunkBytes, 1, std::min(chunking.mostChunks, most));
  }
  Rows rowsOfChunk(const Cut &cut, int64_t chunk) const {
    if (cut.along < 0)
      return {0, chunk == chunks - 1 ? 1 : 0};
    const int64_t size = tensorOf(cut.value).getDimSize(cut.along);
    auto begin = [&](int64_t i) { return size * i / chunks; };
    return {begin(chunk), begin(chunk + 1) - begin(chunk)};
  }
  /// Null if the chunk has none of the value's rows.
  Value slice(const Cut &cut, int64_t chunk) {
    const Rows rows = rowsOfChunk(cut, chunk);
    if (rows.size == 0)
      return {};
    if (cut.along < 0 || rows.size == tensorOf(cut.value).getDimSize(cut.along))
      return cut.value;
    return nn::SliceOp::create(builder, loc, cut.value, cut.along, rows.from, rows.size);
  }
  RankedTensorType sliceType(const Cut &cut, int64_t chunk) const {
    const Rows rows = rowsOfChunk(cut, chunk);
    if (rows.size == 0)
      return {};
    return cut.along < 0 ? tensorOf(cut.value)
                         : withSize(tensorOf(cut.value), cut.along, rows.size);
  }
  Value joinAlong(ArrayRef<Value> parts, int64_t along) {
    return parts.size() == 1 ? parts.front()
                             : nn::ConcatOp::create(builder, loc, ValueRange(parts), along);
  }

  /// Sends every chunk, and does with what comes what is to be done when some more are sent.
  void inChunks(llvm::function_ref<SmallVector<Value>(int64_t chunk)> send,
                llvm::function_ref<void(int64_t chunk, ArrayRef<Value> payloads)> receive) {
    std::vector<SmallVector<Value>> payloads(static_cast<size_t>(chunks));
    for (int64_t chunk = 0; chunk < chunks + kAhead; ++chunk) {
      if (chunk < chunks)
        payloads[chunk] = send(chunk);
      if (chunk >= kAhead)
        receive(chunk - kAhead, payloads[chunk - kAhead]);
    }
  }

  static SmallVector<ReassociationIndices> matrixDims(int64_t rank) {
    SmallVector<ReassociationIndices> groups(2);
    for (int64_t d = 0; d + 1 < rank; ++d)
      groups[0].push_back(d);
    groups[1].push_back(rank - 1);
    return groups;
  }
  /// A value whose rows can be cut; the value itself where they are not.
  Value matrix(Value value) {
    const RankedTensorType type = tensorOf(value);
    if (chunks == 1 || type.getRank() <= 2)
      return value;
    auto flat =
        RankedTensorType::get({rowsOf(type), type.getShape().back()}, type.getElementType());
    return tensor::CollapseShapeOp::create(builder, loc, flat, value, matrixDims(type.getRank()));
  }
  static RankedTensorType sliceType(RankedTensorType type, Rows rows) {
    if (rows.size == rowsOf(type))
      return type;
    return RankedTensorType::get({rows.size, type.getShape().back()}, type.getElementType());
  }
  Value slice(Value value, Rows rows) {
    if (rows.size == rowsOf(tensorOf(value)))
      return value;
    return nn::SliceOp::create(builder, loc, value, 0, rows.from, rows.size);
  }
  Value join(ArrayRef<Value> parts, RankedTensorType type) {
    Value joined = parts.front();
    if (parts.size() > 1)
      joined = nn::ConcatOp::create(builder, loc, ValueRange(parts), 0);
    if (tensorOf(joined).getRank() == type.getRank())
      return joined;
    return tensor::ExpandShapeOp::create(builder, loc, type, joined, matrixDims(type.getRank()));
  }

  /// "mlp.down/all_gather" or, of several chunks, "mlp.down/chunk#2/all_gather", for each value
  /// that the chunk has rows of.
  void nameChunk(Operation *part, ArrayRef<Value> matrices, int64_t chunk, StringRef what) {
    setNames(part, chunk, what,
             [&](size_t i) { return rowsOfChunk(matrices[i], chunk).size != 0; });
  }
  /// The same of an exchange that has the collective's name.
  void nameChunk(Operation *part, ArrayRef<Cut> values, int64_t chunk) {
    setNames(part, chunk, "", [&](size_t i) { return rowsOfChunk(values[i], chunk).size != 0; });
  }
  void setNames(Operation *part, int64_t chunk, StringRef what,
                llvm::function_ref<bool(size_t)> hasRows) {
    SmallVector<std::string> names;
    for (auto [i, name] : llvm::enumerate(valueNames(op))) {
      if (!hasRows(i))
        continue;
      std::string own = name;
      if (!own.empty() && chunks > 1)
        own += ("/chunk#" + Twine(chunk)).str();
      names.push_back(own.empty() || what.empty() ? own : (own + "/" + what).str());
    }
    setValueNames(part, names);
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
    return runtime::rowPieces(encodings, rowsOf(type), type.getShape().back(), n);
  }

  /// [.., size, ..] as [.., pieces, size / pieces, ..], and back.
  static RankedTensorType splitType(RankedTensorType type, int64_t dim, int64_t pieces) {
    return withDim(shardType(type, dim, pieces), dim, pieces);
  }
  Value splitDim(Value value, int64_t dim, int64_t pieces) {
    RankedTensorType type = tensorOf(value);
    return tensor::ExpandShapeOp::create(builder, loc, splitType(type, dim, pieces), value,
                                         splitDims(type.getRank(), dim));
  }
  Value mergeDim(Value value, int64_t dim, RankedTensorType type) {
    if (tensorOf(value).getRank() == type.getRank())
      return value;
    return tensor::CollapseShapeOp::create(builder, loc, type, value,
                                           splitDims(type.getRank(), dim));
  }
  static int64_t lastOf(RankedTensorType type) { return type.getRank() - 1; }
  static RankedTensorType splitType(RankedTensorType type, int64_t pieces) {
    return splitType(type, lastOf(type), pieces);
  }
  Value splitLast(Value value, int64_t pieces) {
    return splitDim(value, lastOf(tensorOf(value)), pieces);
  }
  Value joinLast(Value value, Value original) {
    return mergeDim(value, lastOf(tensorOf(original)), tensorOf(original));
  }

  Operation *op;
  OpBuilder builder;
  Location loc, codecLoc;
  runtime::EncodingPair encodings;
  int64_t n;
  Chunking chunking;
  int64_t chunks = 1;
  int64_t leastChunkBytes = 0; ///< of payload; 0 where nothing is cut
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
      remarkMissed(op, "ExpandEncoded", "its group has one rank, so that nothing is sent");
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
