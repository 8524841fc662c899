//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// nn.encode, nn.decode and nn.decode_sum: constraints, sharding rules, costs and kernels.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/IR/OpUtils.h"

using namespace mlir;
using namespace braid;
using namespace braid::nn;
using braid::comm::EncodingAttr;
using braid::comm::FactorKind;
using braid::comm::ShardingRule;

namespace {

/// The number of rows, or of parts: of all dimensions but the last.
int64_t leadingSize(Value value) {
  int64_t size = 1;
  for (int64_t dim : shapeOf(value).drop_back())
    size *= dim;
  return size;
}

LogicalResult verifyCodec(Operation *op, Value tensor, Value payload, EncodingAttr encoding,
                          Type type, int64_t senders = 1) {
  if (!encoding.isSingle())
    return op->emitOpError("expects one encoding, got '")
           << encoding.getText() << "' [nn.codec_c1]";
  if (typeOf(tensor).getRank() == 0 || typeOf(payload).getRank() == 0)
    return op->emitOpError("expects at least one dimension of tensor and payload [nn.codec_c2]");
  if (!type.isF32() && !type.isF16() && !type.isBF16())
    return op->emitOpError("expects an encoded type f32, f16 or bf16, got ")
           << type << " [nn.codec_c2]";
  const int64_t parts = leadingSize(payload);
  if (senders < 1 || parts % senders != 0)
    return op->emitOpError("expects parts of ")
           << senders << " senders, got " << parts << " [nn.codec_c4]";
  const auto layout =
      runtime::PayloadLayout::of(encoding.getPair().reduce, *comm::toRuntime(type),
                                 leadingSize(tensor), shapeOf(tensor).back(), parts / senders);
  if (!layout.ok())
    return op->emitOpError() << layout.status().message() << " [nn.codec_c3]";
  if (const int64_t got = shapeOf(payload).back(); got != layout->partBytes)
    return op->emitOpError("expects a payload of ")
           << layout->partBytes << " bytes a part, got " << got << " [nn.codec_c3]";
  return success();
}

/// Each rank has all of it: parts and groups are those of the whole tensor.
ShardingRule wholeRule(ValueRange inputs, Value result) {
  ShardingRule rule;
  auto factors = [&](Value value, StringRef prefix) {
    comm::TensorFactors all;
    for (auto [d, size] : llvm::enumerate(shapeOf(value)))
      all.push_back({rule.addFactor((prefix + Twine(d)).str(), size, FactorKind::Replicated)});
    return all;
  };
  for (auto [i, input] : llvm::enumerate(inputs))
    rule.operands.push_back(factors(input, i == 0 ? "in" : "own"));
  rule.results = {factors(result, "out")};
  return rule;
}

OpCost costOf(ValueRange inputs, Value result, int64_t flops) {
  OpCost cost;
  for (Value input : inputs)
    cost.bytesRead += bytes(input);
  cost.bytesWritten = bytes(result);
  cost.vectorFlops = flops;
  return cost;
}

int64_t codeOf(EncodingAttr encoding) { return encoding.getPair().reduce.code(); }
int64_t numberOf(Type type) { return static_cast<int64_t>(*comm::toRuntime(type)); }

} // namespace

void EncodeOp::build(OpBuilder &builder, OperationState &state, Value input,
                     const runtime::Encoding &encoding, ArrayRef<int64_t> parts,
                     comm::GroupAttr group, int64_t first) {
  SmallVector<int64_t> shape(parts);
  int64_t count = 1;
  for (int64_t dim : parts)
    count *= dim;
  // The verifier tells of a tensor that cannot be encoded.
  const auto layout =
      runtime::PayloadLayout::of(encoding, *comm::toRuntime(typeOf(input).getElementType()),
                                 leadingSize(input), shapeOf(input).back(), count);
  shape.push_back(layout.ok() ? layout->partBytes : 0);
  build(builder, state, RankedTensorType::get(shape, builder.getI8Type()), input, group,
        static_cast<uint64_t>(first),
        EncodingAttr::get(builder.getContext(), runtime::EncodingPair{encoding, encoding}));
}

LogicalResult EncodeOp::verify() {
  if (!getGroup() && getFirst() != 0)
    return emitOpError("expects 'first' of 0 without 'over', got ")
           << getFirst() << " [nn.codec_c6]";
  return verifyCodec(*this, getInput(), getPayload(), getEncoding(),
                     typeOf(getInput()).getElementType());
}
LogicalResult EncodeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getGroup())
    return success();
  if (failed(comm::verifyGroup(*this, *getGroup(), symbols, "nn.codec_c6")))
    return failure();
  const int64_t ranks = comm::groupSize(*this, *getGroup());
  if (ranks < 2)
    return emitOpError("expects a group of at least 2 ranks, got 1 [nn.codec_c6]");
  if (const auto first = static_cast<int64_t>(getFirst()); first < 0 || first >= ranks)
    return emitOpError("expects 'first' in [0, ")
           << ranks << "), got " << first << " [nn.codec_c6]";
  return success();
}
ShardingRule EncodeOp::getShardingRule() { return wholeRule(getInput(), getPayload()); }
OpCost EncodeOp::getCost() {
  OpCost cost = costOf(getInput(), getPayload(), 6 * elements(getInput()));
  // What this rank would send to itself is neither read nor encoded.
  if (getGroup()) {
    const int64_t ranks = comm::groupSize(*this, *getGroup());
    cost.bytesRead = cost.bytesRead / ranks * (ranks - 1);
    cost.vectorFlops = cost.vectorFlops / ranks * (ranks - 1);
  }
  return cost;
}
KernelCall EncodeOp::getKernelCall() {
  return {"encode",
          {getInput()},
          {codeOf(getEncoding()), static_cast<int64_t>(getFirst())},
          {},
          getGroupAttr()};
}

LogicalResult DecodeOp::verify() {
  return verifyCodec(*this, getResult(), getPayload(), getEncoding(), getType());
}
ShardingRule DecodeOp::getShardingRule() { return wholeRule(getPayload(), getResult()); }
OpCost DecodeOp::getCost() { return costOf(getPayload(), getResult(), 2 * elements(getResult())); }
KernelCall DecodeOp::getKernelCall() {
  return {"decode",
          {getPayload()},
          {codeOf(getEncoding()), numberOf(getType()), static_cast<int64_t>(getAbsent())}};
}

LogicalResult DecodeSumOp::verify() {
  if (failed(verifyCodec(*this, getResult(), getPayload(), getEncoding(), getType(),
                         static_cast<int64_t>(getSenders()))))
    return failure();
  if (static_cast<bool>(getOwn()) != getGroup().has_value())
    return emitOpError("expects 'own' and 'over' together [nn.codec_c5]");
  if (!getOwn())
    return success();
  if (const auto expected = RankedTensorType::get(shapeOf(getResult()), getType());
      getOwn().getType() != expected)
    return emitOpError("expects 'own' of ")
           << expected << ", got " << getOwn().getType() << " [nn.codec_c5]";
  return success();
}
LogicalResult DecodeSumOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getGroup())
    return success();
  if (failed(comm::verifyGroup(*this, *getGroup(), symbols, "nn.codec_c5")))
    return failure();
  if (const int64_t ranks = comm::groupSize(*this, *getGroup());
      ranks != static_cast<int64_t>(getSenders()))
    return emitOpError("expects a group of ")
           << getSenders() << " ranks, as many as senders, got " << ranks << " [nn.codec_c5]";
  return success();
}
ShardingRule DecodeSumOp::getShardingRule() { return wholeRule(getOperands(), getResult()); }
OpCost DecodeSumOp::getCost() {
  return costOf(getOperands(), getResult(),
                3 * elements(getResult()) * static_cast<int64_t>(getSenders()));
}
KernelCall DecodeSumOp::getKernelCall() {
  return {"decode_sum",
          {getPayload(), getOwn()},
          {codeOf(getEncoding()), numberOf(getType()), static_cast<int64_t>(getSenders())},
          {},
          getGroupAttr()};
}
