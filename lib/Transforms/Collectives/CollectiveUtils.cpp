//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Cost/CommunicationCost.h"
#include "braid/Transforms/Identity.h"
#include "braid/Transforms/ShardingUtils.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {

RankedTensorType gatheredType(Type type, int64_t dim, int64_t n) {
  // The verifier of its user refuses too large a type.
  return withDim(type, dim, saturatingProduct({cast<ShapedType>(type).getDimSize(dim), n}));
}

RankedTensorType shardType(Type type, int64_t dim, int64_t n) {
  return withDim(type, dim, cast<ShapedType>(type).getDimSize(dim) / n);
}

RankedTensorType withSize(RankedTensorType type, int64_t dim, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[static_cast<size_t>(dim)] = size;
  return RankedTensorType::get(shape, type.getElementType());
}

RankedTensorType withoutDim(RankedTensorType type, int64_t dim) {
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  return RankedTensorType::get(shape, type.getElementType());
}

RankedTensorType withDim(RankedTensorType type, int64_t dim, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + dim, size);
  return RankedTensorType::get(shape, type.getElementType());
}

SmallVector<ReassociationIndices> splitDims(int64_t rank, int64_t dim) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0; d < rank; ++d) {
    groups.push_back({d + (d > dim)});
    if (d == dim)
      groups.back().push_back(d + 1);
  }
  return groups;
}

Value splitDim(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t pieces) {
  RankedTensorType type = tensorOf(value);
  return tensor::ExpandShapeOp::create(builder, loc,
                                       withDim(shardType(type, dim, pieces), dim, pieces), value,
                                       splitDims(type.getRank(), dim));
}

Value mergeDim(OpBuilder &builder, Location loc, Value value, int64_t dim, RankedTensorType type) {
  if (tensorOf(value).getRank() == type.getRank())
    return value;
  return tensor::CollapseShapeOp::create(builder, loc, type, value, splitDims(type.getRank(), dim));
}

SmallVector<ReassociationIndices> matrixDims(int64_t rank) {
  SmallVector<ReassociationIndices> groups(2);
  for (int64_t d = 0; d + 1 < rank; ++d)
    groups[0].push_back(d);
  groups[1].push_back(rank - 1);
  return groups;
}

int64_t rowsOf(RankedTensorType type) {
  int64_t rows = 1;
  for (int64_t dim : type.getShape().drop_back())
    rows *= dim;
  return rows;
}

int64_t piecesOfRows(CollectiveOpInterface op, Value operand) {
  const RankedTensorType type = tensorOf(operand);
  const int64_t n = groupSize(op, op.getGroup()), last = type.getRank() - 1;
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case<ReduceScatterOp>([&](ReduceScatterOp scatter) {
        return static_cast<int64_t>(scatter.getDim()) == last ? n : 1;
      })
      .Case<AllToAllOp>([&](AllToAllOp exchange) {
        return static_cast<int64_t>(exchange.getSplitDim()) == last ? n : 1;
      })
      // The rows of a block of two dimensions are elements.
      .Case<AllToAllVOp>([&](AllToAllVOp) { return last == 1 ? type.getShape().back() : 1; })
      .Default(int64_t(1));
}

SaturatingCount gatherBytes(Type shard, int64_t n) {
  return collectiveCost(runtime::CollectiveKind::allGather, totalBytes(shard), n).bytes;
}

bool isStarted(Operation *collective) { return isa<StartOp>(collective->getParentOp()); }

PartOp createSlice(OpBuilder &builder, Location loc, Value value, int64_t dim, GroupAttr group) {
  int64_t n = groupSize(builder.getInsertionBlock()->getParentOp(), group);
  return PartOp::create(builder, loc, shardType(value.getType(), dim, n), value, dim, /*shift=*/0,
                        group);
}

ReduceScatterOp createReduceScatter(AllReduceOp reduce, int64_t dim) {
  int64_t n = groupSize(reduce, reduce.getGroup());
  auto types = llvm::map_to_vector(
      reduce.getInputs(), [&](Value value) -> Type { return shardType(value.getType(), dim, n); });
  OpBuilder builder(reduce);
  return ReduceScatterOp::create(builder, reduce.getLoc(), types, reduce.getKind(),
                                 reduce.getInputs(), dim, reduce.getGroup(), reduce.getRoleAttr());
}

void replaceByAllReduce(ReduceScatterOp scatter, AllGatherOp gather) {
  OpBuilder builder(scatter);
  auto reduce = AllReduceOp::create(
      builder, scatter.getLoc(), llvm::to_vector(scatter.getInputs().getTypes()), scatter.getKind(),
      scatter.getInputs(), scatter.getGroup(), scatter.getRoleAttr());
  if (gather) {
    nameWhole(reduce, {scatter, gather});
    gather.replaceAllUsesWith(reduce.getOutputs());
    gather.erase();
  }
  for (auto [shard, value] : llvm::zip_equal(scatter.getOutputs(), reduce.getOutputs()))
    if (!shard.use_empty())
      shard.replaceAllUsesWith(
          createSlice(builder, scatter.getLoc(), value, scatter.getDim(), scatter.getGroup()));
  scatter.erase();
}

static std::string title(Operation *collective) {
  std::string text = collective->getName().getStringRef().str();
  if (auto role = collective->getAttrOfType<StringAttr>("role"))
    text += (" '" + role.getValue() + "'").str();
  return text;
}

void remarkDone(Operation *collective, StringRef name, const Twine &what) {
  remark::passed(collective->getLoc(), remark::RemarkOpts::name(name).category("communication"))
      << (Twine(title(collective)) + ": " + what).str();
}

void remarkMissed(Operation *collective, StringRef name, const Twine &why) {
  remark::missed(collective->getLoc(), remark::RemarkOpts::name(name).category("communication"))
      << (Twine(title(collective)) + ": " + why).str();
}

} // namespace braid
