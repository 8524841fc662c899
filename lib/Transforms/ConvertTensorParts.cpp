//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "TensorParts.h"

#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"

#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace braid {
#define GEN_PASS_DEF_CONVERTTENSORPARTS
#include "braid/Transforms/Passes.h.inc"

bool isTensorPart(Operation *op) {
  return isa<tensor::ExtractSliceOp, tensor::InsertSliceOp, tensor::ConcatOp>(op);
}

StringRef whyNoPart(Operation *op) {
  if (auto view = dyn_cast<OffsetSizeAndStrideOpInterface>(op)) {
    if (llvm::any_of(view.getStaticOffsets(), ShapedType::isDynamic) ||
        llvm::any_of(view.getStaticSizes(), ShapedType::isDynamic))
      return "offsets and sizes of a part are static";
    if (llvm::any_of(view.getStaticStrides(), [](int64_t stride) { return stride != 1; }))
      return "a part has strides of 1";
  }
  for (Value value : llvm::concat<const Value>(SmallVector<Value>(op->getOperands()),
                                               SmallVector<Value>(op->getResults()))) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      continue;
    if (!type.hasStaticShape() || !isBounded(type))
      return "a part is of a value of static shape with at most 2^48 elements";
    if (type.getNumElements() == 0)
      return "a part has at least one element";
    Type element = type.getElementType();
    if (!isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(element) &&
        !element.isSignlessInteger(64) && !element.isSignlessInteger(32) &&
        !element.isSignlessInteger(8))
      return "a part is of a value of f64, f32, bf16, f16, i64, i32 or i8";
  }
  return {};
}

namespace {

class Converter {
public:
  explicit Converter(Operation *op) : builder(op), loc(op->getLoc()) {}

  Value convert(tensor::ExtractSliceOp op) {
    Value part = op.getSource();
    for (auto [dim, from, size] : llvm::enumerate(op.getStaticOffsets(), op.getStaticSizes()))
      part = slice(part, dim, from, size);
    return reshape(part, op.getType());
  }

  Value convert(tensor::InsertSliceOp op) {
    RankedTensorType type = op.getType();
    Value source = reshape(op.getSource(), type.clone(op.getStaticSizes()));
    return insert(source, op.getDest(), op.getStaticOffsets(), op.getStaticSizes(), 0);
  }

  Value convert(tensor::ConcatOp op) { return concat(op.getInputs(), op.getDim()); }

  /// A sharding that the module states goes to the operation that gives the result; a value that is
  /// there already may have one of its own.
  Value stateSharding(Value part, comm::ShardingAttr stated) {
    auto type = cast<RankedTensorType>(part.getType());
    if (!isNew(part) && type.getRank() != 0)
      part =
          made(nn::SliceOp::create(builder, loc, part, int64_t(0), int64_t(0), type.getDimSize(0)));
    if (isNew(part))
      setSharding(part, stated);
    return part;
  }

private:
  template <typename OpT> Value made(OpT op) {
    last = op;
    return op.getResult();
  }
  /// Whether an operation of this conversion gives the value. The last one gives its result.
  bool isNew(Value value) const { return last && value.getDefiningOp() == last; }

  Value slice(Value value, size_t dim, int64_t from, int64_t size) {
    if (size == cast<RankedTensorType>(value.getType()).getDimSize(dim))
      return value;
    return made(nn::SliceOp::create(builder, loc, value, static_cast<int64_t>(dim), from, size));
  }

  /// Adds or drops dimensions of size 1.
  Value reshape(Value value, RankedTensorType type) {
    auto from = cast<RankedTensorType>(value.getType());
    if (from == type)
      return value;
    SmallVector<ReassociationIndices> groups;
    if (from.getRank() != 0 && type.getRank() != 0)
      groups = *getReassociationIndicesForReshape(from, type);
    if (type.getRank() > from.getRank())
      return made(tensor::ExpandShapeOp::create(builder, loc, type, value, groups));
    return made(tensor::CollapseShapeOp::create(builder, loc, type, value, groups));
  }

  /// `into` with `part` at the offsets; their dimensions before `dim` are the same.
  Value insert(Value part, Value into, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
               size_t dim) {
    auto type = cast<RankedTensorType>(into.getType());
    if (part.getType() == type)
      return part;
    const int64_t begin = offsets[dim], end = begin + sizes[dim], all = type.getDimSize(dim);
    SmallVector<Value> parts;
    if (begin > 0)
      parts.push_back(slice(into, dim, 0, begin));
    // Where only this dimension is left, the rows between are all replaced.
    bool isLast = ArrayRef(sizes).drop_front(dim + 1) == type.getShape().drop_front(dim + 1);
    parts.push_back(
        isLast ? part : insert(part, slice(into, dim, begin, sizes[dim]), offsets, sizes, dim + 1));
    if (end < all)
      parts.push_back(slice(into, dim, end, all - end));
    return parts.size() == 1 ? parts[0] : concat(parts, dim);
  }

  Value concat(ValueRange parts, size_t dim) {
    return made(nn::ConcatOp::create(builder, loc, parts, static_cast<int64_t>(dim)));
  }

  OpBuilder builder;
  Location loc;
  Operation *last = nullptr;
};

struct ConvertTensorParts : impl::ConvertTensorPartsBase<ConvertTensorParts> {
  void runOnOperation() override {
    SmallVector<Operation *> parts;
    getOperation().walk([&](Operation *op) {
      if (isTensorPart(op))
        parts.push_back(op);
    });
    for (Operation *op : parts) {
      if (StringRef why = whyNoPart(op); !why.empty()) {
        op->emitOpError("cannot be nn.slice and nn.concat: ") << why;
        return signalPassFailure();
      }
      Converter converter(op);
      Value part;
      if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op))
        part = converter.convert(extract);
      else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
        part = converter.convert(insert);
      else
        part = converter.convert(cast<tensor::ConcatOp>(op));
      if (comm::ShardingAttr stated = getSharding(op->getResult(0)))
        part = converter.stateSharding(part, stated);
      op->getResult(0).replaceAllUsesWith(part);
      op->erase();
      ++numConverted;
    }
  }
};

} // namespace
} // namespace braid
