//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Cost/CommunicationCost.h"
#include "braid/Transforms/Identity.h"
#include "braid/Transforms/ShardingUtils.h"

#include "mlir/IR/Remarks.h"

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
