//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ScalarFunctions.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/Core/Kernels.h"
#include "dialects/Comm/IR/Comm.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Support/DebugStringHelper.h"

#include <limits>

using namespace mlir;

namespace braid::interp {

Result<DType> dtypeOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (std::optional<DType> stored = comm::toRuntime(element))
    return *stored;
  if (element.isSignlessInteger(1))
    return DType::i8;
  if (element.isIndex())
    return DType::i64;
  return Status::error("element type " + debugString(element) +
                       " is none of f32, f16, bf16, f64, i1, i8, i32, i64 and index");
}

Result<Tensor> fromAttribute(ElementsAttr attr) {
  auto type = cast<ShapedType>(attr.getType());
  ASSIGN_OR_RETURN(DType dtype, dtypeOf(type));
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (!dense)
    return Status::error("expects dense elements");
  Shape shape(type.getShape().begin(), type.getShape().end());
  if (isFloat(dtype)) {
    std::vector<double> values;
    for (APFloat value : dense.getValues<APFloat>()) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      values.push_back(value.convertToDouble());
    }
    return Tensor::ofFloats(dtype, std::move(shape), std::move(values));
  }
  std::vector<int64_t> values;
  for (const APInt &value : dense.getValues<APInt>())
    values.push_back(value.getBitWidth() == 1 ? static_cast<int64_t>(value.getZExtValue())
                                              : value.getSExtValue());
  return Tensor::ofInts(dtype, std::move(shape), std::move(values));
}

namespace {
/// Static extents with dynamic ones replaced by operands.
Shape resolve(OpContext &context, ArrayRef<int64_t> fixed, OperandRange dynamic) {
  Shape result(fixed.begin(), fixed.end());
  size_t next = 0;
  for (int64_t &extent : result)
    if (ShapedType::isDynamic(extent))
      extent = context.tensor(dynamic[next++]).ints()[0];
  return result;
}

Status evaluateEmpty(OpContext &context, tensor::EmptyOp op) {
  ASSIGN_OR_RETURN(DType dtype, dtypeOf(op.getType()));
  Shape shape = resolve(context, op.getType().getShape(), op.getDynamicSizes());
  auto count = static_cast<size_t>(numElements(shape));
  // Unwritten elements are NaN or an unlikely integer, so that a read of one shows.
  if (isFloat(dtype))
    context.set(
        op.getResult(),
        Tensor::ofFloats(dtype, std::move(shape),
                         std::vector<double>(count, std::numeric_limits<double>::quiet_NaN())));
  else
    context.set(op.getResult(), Tensor::ofInts(dtype, std::move(shape),
                                               std::vector<int64_t>(count, int64_t(0x5a5a5a5a))));
  return {};
}

Status evaluateDim(OpContext &context, tensor::DimOp op) {
  const Tensor &source = context.tensor(op.getSource());
  int64_t index = context.tensor(op.getIndex()).ints()[0];
  if (index < 0 || index >= static_cast<int64_t>(source.rank()))
    return Status::error("expects a dimension of " + source.typeString() + ", got " +
                         std::to_string(index));
  context.set(op.getResult(),
              Tensor::ofInts(DType::i64, {}, {source.dim(static_cast<size_t>(index))}));
  return {};
}

Status evaluateCollapse(OpContext &context, tensor::CollapseShapeOp op) {
  const Tensor &source = context.tensor(op.getSrc());
  Shape shape;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    shape.push_back(1);
    for (int64_t d : group)
      shape.back() *= source.dim(static_cast<size_t>(d));
  }
  return context.set(op.getResult(), reshape(source, shape));
}

Status evaluateExpand(OpContext &context, tensor::ExpandShapeOp op) {
  return context.set(op.getResult(),
                     reshape(context.tensor(op.getSrc()),
                             resolve(context, op.getStaticOutputShape(), op.getOutputShape())));
}

Status evaluateExtractSlice(OpContext &context, tensor::ExtractSliceOp op) {
  const Tensor &source = context.tensor(op.getSource());
  Shape offsets = resolve(context, op.getStaticOffsets(), op.getOffsets());
  Shape sizes = resolve(context, op.getStaticSizes(), op.getSizes());
  Shape strides = resolve(context, op.getStaticStrides(), op.getStrides());
  for (size_t d = 0; d < sizes.size(); ++d)
    if (offsets[d] < 0 || sizes[d] < 0 ||
        (sizes[d] > 0 && offsets[d] + (sizes[d] - 1) * strides[d] >= source.dim(d)))
      return Status::error("expects a slice inside of " + source.typeString() + " in dimension " +
                           std::to_string(d));
  ElementWriter writer(source.dtype(), numElements(sizes));
  for (int64_t i = 0, count = numElements(sizes); i < count; ++i) {
    Shape index = unflatten(i, sizes);
    int64_t from = 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      from = from * source.dim(d) + offsets[d] + index[d] * strides[d];
    writer.set(i, elementAt(source, from));
  }
  Shape kept;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!dropped[d])
      kept.push_back(sizes[d]);
  context.set(op.getResult(), RuntimeValue(std::move(writer).finish(std::move(kept))));
  return {};
}

Status evaluateInsertSlice(OpContext &context, tensor::InsertSliceOp op) {
  const Tensor &source = context.tensor(op.getSource()), &dest = context.tensor(op.getDest());
  Shape offsets = resolve(context, op.getStaticOffsets(), op.getOffsets());
  Shape sizes = resolve(context, op.getStaticSizes(), op.getSizes());
  Shape strides = resolve(context, op.getStaticStrides(), op.getStrides());
  for (size_t d = 0; d < sizes.size(); ++d)
    if (offsets[d] < 0 || sizes[d] < 0 || strides[d] < 1 ||
        (sizes[d] > 0 && offsets[d] + (sizes[d] - 1) * strides[d] >= dest.dim(d)))
      return Status::error("expects a slice inside of " + dest.typeString() + " in dimension " +
                           std::to_string(d));
  if (numElements(sizes) != source.numElements())
    return Status::error("expects as many elements as the slice has, got " + source.typeString());
  ElementWriter writer(dest.dtype(), dest.numElements());
  for (int64_t i = 0, count = dest.numElements(); i < count; ++i) {
    Shape index = unflatten(i, dest.shape());
    int64_t from = 0;
    bool isInside = true;
    for (size_t d = 0; d < sizes.size(); ++d) {
      const int64_t beyond = index[d] - offsets[d];
      isInside &= beyond >= 0 && beyond % strides[d] == 0 && beyond / strides[d] < sizes[d];
      from = from * sizes[d] + beyond / strides[d];
    }
    writer.set(i, isInside ? elementAt(source, from) : elementAt(dest, i));
  }
  context.set(op.getResult(), RuntimeValue(std::move(writer).finish(dest.shape())));
  return {};
}

Status evaluateConcat(OpContext &context, tensor::ConcatOp op) {
  std::vector<PlacedTensor> parts;
  Shape shape;
  for (mlir::Value value : op.getInputs()) {
    const Tensor &part = context.tensor(value);
    parts.push_back({{Shape(part.rank(), 0), part.shape()}, part});
    if (shape.empty()) {
      shape = part.shape();
      continue;
    }
    parts.back().box.offsets[op.getDim()] = shape[op.getDim()];
    shape[op.getDim()] += part.dim(op.getDim());
  }
  DType type = parts.front().part.dtype();
  context.set(op.getResult(), RuntimeValue(assemble(type, std::move(shape), parts)));
  return {};
}

Status evaluateExtract(OpContext &context, tensor::ExtractOp op) {
  const Tensor &source = context.tensor(op.getTensor());
  int64_t from = 0;
  for (auto [d, v] : llvm::enumerate(op.getIndices())) {
    int64_t index = context.tensor(v).ints()[0];
    if (index < 0 || index >= source.dim(d))
      return Status::error("expects an index inside of " + source.typeString() + ", got " +
                           std::to_string(index) + " in dimension " + std::to_string(d));
    from = from * source.dim(d) + index;
  }
  ElementWriter writer(source.dtype(), 1);
  writer.set(0, elementAt(source, from));
  context.set(op.getResult(), RuntimeValue(std::move(writer).finish({})));
  return {};
}
} // namespace

void populateTensorEvaluators(EvaluatorTable &table) {
  table.add<tensor::EmptyOp>(evaluateEmpty);
  table.add<tensor::DimOp>(evaluateDim);
  table.add<tensor::CollapseShapeOp>(evaluateCollapse);
  table.add<tensor::ExpandShapeOp>(evaluateExpand);
  table.add<tensor::ExtractSliceOp>(evaluateExtractSlice);
  table.add<tensor::InsertSliceOp>(evaluateInsertSlice);
  table.add<tensor::ConcatOp>(evaluateConcat);
  table.add<tensor::ExtractOp>(evaluateExtract);
  table.add<tensor::CastOp>([](OpContext &context, tensor::CastOp op) -> Status {
    context.set(op.getResult(), context.tensor(op.getSource()));
    return {};
  });
}

} // namespace braid::interp
