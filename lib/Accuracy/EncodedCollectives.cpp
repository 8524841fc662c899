//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Accuracy/EncodedCollectives.h"

#include "braid/Base/Algorithm.h"
#include "braid/Base/RowPieces.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Transforms/Identity.h"
#include "braid/Transforms/ShardingUtils.h"
#include "braid/Transforms/TablePasses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using braid::runtime::CollectiveKind;
using braid::runtime::Encoding;

namespace braid {

namespace {

using OptionalEncoding = std::optional<Encoding>;

int64_t rawBytes(const EncodedCollective::Value &value) {
  return value.rows * value.columns * runtime::byteSize(value.type);
}

int64_t payloadBytes(const Encoding &encoding, const EncodedCollective::Value &value) {
  const auto layout =
      runtime::PayloadLayout::of(encoding, value.type, value.rows, value.columns, value.parts);
  // What a collective has can be encoded; its sizes are those of a tensor.
  return layout.ok() ? layout->bytes : rawBytes(value);
}

int64_t sent(CollectiveKind kind, int64_t bytes, int64_t ranks) {
  return runtime::bytesSent(runtime::Algorithm::direct, kind, bytes, ranks);
}

int64_t allReduceBytes(EncodedCollective::Value value, int64_t ranks,
                       const OptionalEncoding &reduce, const OptionalEncoding &gather) {
  const int64_t raw = rawBytes(value);
  if (reduce && gather) {
    const int64_t pieces = runtime::rowPieces({*reduce, *gather}, value.rows, value.columns, ranks);
    value.rows *= pieces;
    value.columns /= pieces;
  }
  value.parts = ranks;
  const int64_t first = reduce ? sent(CollectiveKind::allToAll, payloadBytes(*reduce, value), ranks)
                               : sent(CollectiveKind::reduceScatter, raw, ranks);
  // The sum that a rank has is f32.
  const EncodedCollective::Value sum{runtime::DType::f32, (value.rows + ranks - 1) / ranks,
                                     value.columns, 1};
  const int64_t second = gather ? sent(CollectiveKind::allGather, payloadBytes(*gather, sum), ranks)
                                : sent(CollectiveKind::allReduce, raw, ranks) -
                                      sent(CollectiveKind::reduceScatter, raw, ranks);
  return first + second;
}

/// What a value is cut into, as braid-expand-encoded does it.
EncodedCollective::Value valueOf(comm::CollectiveOpInterface op, RankedTensorType type,
                                 int64_t ranks) {
  const ArrayRef<int64_t> shape = type.getShape();
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  EncodedCollective::Value value{*comm::toRuntime(type.getElementType()), 1, shape.back(), 1};
  for (int64_t dim : shape.drop_back())
    value.rows *= dim;
  // The parts of a payload are the dimensions before `dim`, and the pieces of that.
  auto cut = [&](int64_t dim, int64_t pieces) {
    for (int64_t size : shape.take_front(static_cast<size_t>(dim)))
      value.parts *= size;
    value.parts *= pieces;
    if (dim == last) {
      value.rows *= pieces;
      value.columns /= pieces;
    }
  };
  Operation *operation = op;
  if (auto scatter = dyn_cast<comm::ReduceScatterOp>(operation)) {
    cut(static_cast<int64_t>(scatter.getDim()), ranks);
  } else if (auto gather = dyn_cast<comm::AllGatherOp>(operation)) {
    cut(static_cast<int64_t>(gather.getDim()), 1);
  } else if (auto exchange = dyn_cast<comm::AllToAllOp>(operation)) {
    const auto split = static_cast<int64_t>(exchange.getSplitDim());
    const auto concat = static_cast<int64_t>(exchange.getConcatDim());
    cut(std::max(split, concat), split >= concat ? ranks : 1);
  } else if (isa<comm::AllToAllVOp>(operation)) {
    value.parts = shape[0] * shape[1];
    if (last == 1) {
      value.rows *= value.columns;
      value.columns = 1;
    }
  }
  return value;
}

runtime::Status collect(func::FuncOp function, const std::string &path, CollectiveTimes *times,
                        std::vector<EncodedCollective> &found) {
  runtime::Status status;
  function.walk([&](Operation *op) {
    if (auto call = dyn_cast<func::CallOp>(op))
      if (func::FuncOp callee = calleeOf(call); !callee.isExternal())
        status = collect(callee, path + "/@" + callName(call), times, found);
    if (!status.ok())
      return WalkResult::interrupt();
    auto collective = dyn_cast<comm::CollectiveOpInterface>(op);
    if (!collective || !tableObstacle(collective).empty())
      return WalkResult::advance();
    EncodedCollective one;
    one.identity = path + "/" + collective.getRoleName().str();
    one.kind = collective.getCollectiveKind();
    one.ranks = comm::groupSize(op, collective.getGroup());
    for (Value input : collective.getInputs())
      if (auto type = cast<RankedTensorType>(input.getType());
          isa<FloatType>(type.getElementType()))
        one.values.push_back(valueOf(collective, type, one.ranks));
    if (times) {
      auto placed = times->locate(collective);
      status = placed.status().within("'" + one.identity + "'");
      if (!status.ok())
        return WalkResult::interrupt();
      one.placed = std::move(*placed);
    }
    found.push_back(std::move(one));
    return WalkResult::advance();
  });
  return status;
}

} // namespace

bool EncodedCollective::hasReduce() const { return runtime::hasReduction(kind); }
bool EncodedCollective::hasGather() const { return kind != CollectiveKind::reduceScatter; }

int64_t EncodedCollective::bytesSent(const OptionalEncoding &reduce,
                                     const OptionalEncoding &gather) const {
  int64_t bytes = 0;
  for (const Value &value : values) {
    if (kind == CollectiveKind::allReduce) {
      bytes += allReduceBytes(value, ranks, reduce, gather);
      continue;
    }
    const OptionalEncoding &half = hasGather() ? gather : reduce;
    bytes +=
        half ? sent(kind, payloadBytes(*half, value), ranks) : sent(kind, rawBytes(value), ranks);
  }
  return bytes;
}

runtime::Result<std::vector<EncodedCollective>>
encodableCollectives(ModuleOp module, StringRef entry, CollectiveTimes *times) {
  std::vector<EncodedCollective> found;
  if (auto function = module.lookupSymbol<func::FuncOp>(entry))
    RETURN_IF_ERROR(collect(function, "@" + entry.str(), times, found));
  return found;
}

int64_t bytesSent(const std::vector<EncodedCollective> &collectives,
                  const runtime::EncodingTable &table) {
  int64_t bytes = 0;
  for (const EncodedCollective &collective : collectives)
    for (const runtime::EncodingTable::Entry &entry : table.entries)
      if (entry.identity == collective.identity)
        bytes += collective.bytesSent(entry.reduce, entry.gather);
  return bytes;
}

} // namespace braid
