//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "KernelBuilder.h"

#include "dialects/Comm/IR/SaturatingCount.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace braid;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static bool isRowValue(OpOperand &operand) {
  auto decompose = dyn_cast<nn::DecomposeOpInterface>(operand.getOwner());
  return decompose && decompose.isRowValue(operand.getOperandNumber());
}

/// Of a payload; what a sum has of this rank is in memory as it is.
static Operation *decodeOf(OpOperand &operand) {
  return isDecode(operand.getOwner()) && operand.getOperandNumber() == 0 ? operand.getOwner()
                                                                         : nullptr;
}

bool braid::isRowOperation(Operation *op) {
  auto decompose = dyn_cast<nn::DecomposeOpInterface>(op);
  return decompose && decompose.isRowOperation();
}

bool braid::isDecode(Operation *op) { return isa<nn::DecodeOp, nn::DecodeSumOp>(op); }

RankedTensorType braid::domainOf(Operation *op) {
  auto encode = dyn_cast<nn::EncodeOp>(op);
  return typeOf(encode ? Value(encode.getInput()) : op->getResult(0));
}

LogicalResult braid::verifyRowOperation(Operation *op) {
  RankedTensorType domain = typeOf(op->getResult(0));
  if (domain.getRank() < 1)
    return op->emitOpError("expects at least one dimension to form a kernel, got ") << domain;
  for (Value result : op->getResults())
    if (typeOf(result).getShape() != domain.getShape())
      return op->emitOpError("expects results of one shape to form a kernel, got ")
             << domain << " and " << result.getType();
  for (auto [i, operand] : llvm::enumerate(op->getOpOperands())) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (isRowValue(operand)) {
      if (!type || type.getShape() != domain.getShape().drop_back())
        return op->emitOpError("expects operand ")
               << i
               << " to have the result's shape without its last dimension to form a kernel, got "
               << operand.get().getType();
      continue;
    }
    if (!type || type.getRank() > domain.getRank() ||
        type.getShape() != domain.getShape().take_back(type.getRank()))
      return op->emitOpError("expects operand ")
             << i << " to have the result's shape or the end of it to form a kernel, got "
             << operand.get().getType();
  }
  return success();
}

void KernelGroup::findInterface() {
  llvm::SmallPtrSet<Operation *, 8> members(ops.begin(), ops.end());
  domain = domainOf(ops.back());
  for (Operation *op : ops) {
    for (OpOperand &operand : op->getOpOperands())
      if (!members.contains(operand.get().getDefiningOp()) && inputOf(operand) == inputs.size()) {
        inputs.push_back(operand.get());
        rowValues.push_back(isRowValue(operand));
        decodes.push_back(decodeOf(operand));
      }
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !members.contains(user); })) {
        outputs.push_back(result);
        encodes.push_back(isEncode(op) ? op : nullptr);
      }
  }
}

size_t KernelGroup::inputOf(OpOperand &operand) const {
  size_t i = 0;
  while (i < inputs.size() && (inputs[i] != operand.get() || rowValues[i] != isRowValue(operand) ||
                               decodes[i] != decodeOf(operand)))
    ++i;
  return i;
}

bool KernelGroup::flattensRows() const {
  return llvm::all_of(llvm::zip_equal(inputs, rowValues, decodes), [&](auto entry) {
    auto [input, rowValue, decode] = entry;
    int64_t rank = typeOf(input).getRank();
    return rowValue || decode || rank == domain.getRank() || rank <= 1;
  });
}

int64_t KernelGroup::getRows() const {
  if (!flattensRows())
    return domain.getDimSize(0);
  return ShapedType::getNumElements(domain.getShape().drop_back());
}

std::string KernelGroup::getName() const {
  std::string name;
  for (Operation *op : ops) {
    auto decompose = dyn_cast<nn::DecomposeOpInterface>(op);
    name += (name.empty() ? "" : "_") +
            (decompose ? decompose.getKernelName() : op->getName().stripDialect()).str();
  }
  return name;
}

/// The type of a row operand or a weight in the kernel.
static RankedTensorType kernelType(RankedTensorType type, bool rowValue, RankedTensorType domain,
                                   bool flatten) {
  if (!rowValue && type.getRank() != domain.getRank())
    return type;
  SmallVector<int64_t> shape(flatten ? type.getShape().take_back(rowValue ? 0 : 1)
                                     : type.getShape().drop_front());
  shape.insert(shape.begin(), ShapedType::kDynamic);
  return RankedTensorType::get(shape, type.getElementType());
}

/// A readable name for an operand: the last part of its location's name.
static StringAttr argumentName(Value value) {
  auto loc = value.getLoc()->findInstanceOf<NameLoc>();
  if (!loc)
    return {};
  StringRef name = loc.getName().getValue();
  return StringAttr::get(value.getContext(), name.substr(name.rfind('.') + 1));
}

/// Fuses elementwise operations, resolves sizes to the arguments' and removes duplicates and unused
/// operations.
static LogicalResult cleanUp(rt::KernelOp kernel) {
  RewritePatternSet patterns(kernel.getContext());
  // Does not recompute a value for several users, nor a row's value for each column.
  linalg::populateElementwiseOpsFusionPatterns(patterns, [](OpOperand *operand) {
    auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
    auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
    return producer && consumer && producer->hasOneUse() &&
           producer.getNumLoops() == consumer.getNumLoops();
  });
  linalg::populateEraseUnnecessaryInputsPatterns(patterns);
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  linalg::GenericOp::getCanonicalizationPatterns(patterns, kernel.getContext());
  tensor::EmptyOp::getCanonicalizationPatterns(patterns, kernel.getContext());
  if (failed(applyPatternsGreedily(kernel.getBody(), std::move(patterns))))
    return kernel.emitOpError("did not reach a fixed point when it was cleaned up");
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
  return success();
}

/// How the launches of a kernel encode what a codec reads or writes. `own` is the argument that
/// has the own rows of a sum.
static rt::PayloadAttr payloadOf(Operation *codec, int64_t own = -1) {
  MLIRContext *context = codec->getContext();
  if (auto encode = dyn_cast<nn::EncodeOp>(codec))
    return rt::PayloadAttr::get(context, encode.getEncoding(), domainOf(encode).getElementType(),
                                /*senders=*/0, /*absent=*/false, /*own=*/-1, encode.getGroupAttr(),
                                static_cast<int64_t>(encode.getFirst()));
  if (auto sum = dyn_cast<nn::DecodeSumOp>(codec))
    return rt::PayloadAttr::get(context, sum.getEncoding(), sum.getType(),
                                static_cast<int64_t>(sum.getSenders()), /*absent=*/false, own,
                                own < 0 ? comm::GroupAttr() : sum.getGroupAttr(), /*first=*/0);
  auto decode = cast<nn::DecodeOp>(codec);
  return rt::PayloadAttr::get(context, decode.getEncoding(), decode.getType(), /*senders=*/0,
                              decode.getAbsent(), /*own=*/-1, {}, /*first=*/0);
}

RowCodec braid::rowCodecOf(Operation *codec) {
  rt::PayloadAttr payload = payloadOf(codec);
  RankedTensorType rows = domainOf(codec);
  return {payload.getEncoding().getPair().reduce, *comm::toRuntime(payload.getType()),
          *comm::toRuntime(rows.getElementType()), rows.getShape().back(), isEncode(codec)};
}

FailureOr<rt::KernelOp> braid::buildKernel(OpBuilder &builder, const KernelGroup &group) {
  OpBuilder::InsertionGuard guard(builder);
  bool flatten = group.flattensRows();
  auto type = [&](Value value, bool rowValue) -> Type {
    return kernelType(typeOf(value), rowValue, group.domain, flatten);
  };
  SmallVector<Type> inputs, outputs;
  for (auto [input, rowValue, decode] :
       llvm::zip_equal(group.inputs, group.rowValues, group.decodes))
    inputs.push_back(type(decode ? decode->getResult(0) : input, rowValue));
  for (auto [output, encode] : llvm::zip_equal(group.outputs, group.encodes))
    outputs.push_back(type(encode ? encode->getOperand(0) : output, /*rowValue=*/false));
  auto locs = llvm::map_to_vector(group.ops, [](Operation *op) { return op->getLoc(); });
  auto kernel = rt::KernelOp::create(builder, builder.getFusedLoc(locs), group.getName(),
                                     builder.getFunctionType(inputs, outputs),
                                     flatten ? 1 : group.domain.getRank() - 1);
  Block &body = kernel.getBody().front();
  IRMapping mapping; // of results
  auto lookup = [&](Value value) -> Value { return mapping.lookup(value); };
  llvm::StringSet<> names;
  for (auto [i, input] : llvm::enumerate(group.inputs))
    if (StringAttr name = argumentName(input); name && names.insert(name).second)
      kernel.setArgAttr(i, rt::RTDialect::kNameAttrName, name);

  for (auto [i, decode] : llvm::enumerate(group.decodes))
    if (decode) {
      auto sum = dyn_cast<nn::DecodeSumOp>(decode);
      const int64_t own = sum && sum.getOwn()
                              ? static_cast<int64_t>(group.inputOf(*sum.getOwnMutable().begin()))
                              : -1;
      kernel.setArgAttr(i, rt::RTDialect::kPayloadAttrName, payloadOf(decode, own));
    }
  for (auto [i, encode] : llvm::enumerate(group.encodes))
    if (encode)
      kernel.setResultAttr(i, rt::RTDialect::kPayloadAttrName, payloadOf(encode));

  builder.setInsertionPointToStart(&body);
  for (Operation *op : group.ops) {
    // The codec is no part of the body: its rows are the argument or the result.
    if (isDecode(op)) {
      mapping.map(op->getResult(0), body.getArgument(group.inputOf(op->getOpOperand(0))));
      continue;
    }
    if (isEncode(op)) {
      mapping.map(op->getResult(0), mapping.lookup(op->getOperand(0)));
      continue;
    }
    auto operands = llvm::map_to_vector(op->getOpOperands(), [&](OpOperand &operand) -> Value {
      if (Value result = mapping.lookupOrNull(operand.get()))
        return result;
      return body.getArgument(group.inputOf(operand));
    });
    FailureOr<SmallVector<Value>> results =
        cast<nn::DecomposeOpInterface>(op).decompose(builder, operands);
    if (failed(results))
      return op->emitOpError("cannot be decomposed into a kernel");
    mapping.map(op->getResults(), *results);
  }
  rt::YieldOp::create(builder, kernel.getLoc(), llvm::map_to_vector(group.outputs, lookup));
  if (failed(cleanUp(kernel)))
    return failure();
  return kernel;
}

static bool haveEqualPayloads(rt::KernelOp a, rt::KernelOp b) {
  const auto count = static_cast<unsigned>(a.getArgumentTypes().size() + a.getResultTypes().size());
  return llvm::all_of(llvm::seq(0U, count),
                      [&](unsigned i) { return a.getPayload(i) == b.getPayload(i); });
}

bool braid::areEquivalent(rt::KernelOp a, rt::KernelOp b) {
  return a.getFunctionType() == b.getFunctionType() && haveEqualPayloads(a, b) &&
         a.getRowDims() == b.getRowDims() && a.getLibrarySymbolAttr() == b.getLibrarySymbolAttr() &&
         a.getScalarsAttr() == b.getScalarsAttr() && a.getRowFlopsAttr() == b.getRowFlopsAttr() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                    OperationEquivalence::IgnoreLocations);
}

FailureOr<rt::KernelOp> braid::declareKernel(OpBuilder &builder, nn::LibraryKernelOpInterface op,
                                             int64_t &rows) {
  const int64_t rowDims = op.getKernelRowDims();
  std::optional<ArrayRef<int64_t>> rowShape;
  unsigned number = 0; // counts operands, then results
  auto kernelTypes = [&](TypeRange types, StringRef what) -> FailureOr<SmallVector<Type>> {
    SmallVector<Type> result;
    for (auto [i, type] : llvm::enumerate(types)) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape())
        return op->emitOpError("expects ")
               << what << " " << i
               << " to be a tensor of static shape for a kernel of a library, got " << type;
      if (!op.isKernelRowOperand(number++)) {
        result.push_back(tensor);
        continue;
      }
      if (rowDims < 1 || tensor.getRank() < rowDims)
        return op->emitOpError("expects ")
               << what << " " << i << " to have rows in its first " << rowDims
               << " dimensions for a kernel of a library, got " << type;
      ArrayRef<int64_t> shape = tensor.getShape();
      if (rowShape.value_or(shape.take_front(rowDims)) != shape.take_front(rowDims))
        return op->emitOpError("expects ")
               << what << " " << i << " to have the rows [" << *rowShape
               << "] of the row operands before it for a kernel of a library, got " << type;
      rowShape = shape.take_front(rowDims);
      SmallVector<int64_t> collapsed = {ShapedType::kDynamic};
      llvm::append_range(collapsed, shape.drop_front(rowDims));
      result.push_back(tensor.clone(collapsed));
    }
    return result;
  };
  FailureOr<SmallVector<Type>> inputs = kernelTypes(op->getOperandTypes(), "operand");
  if (failed(inputs))
    return failure();
  FailureOr<SmallVector<Type>> results = kernelTypes(op->getResultTypes(), "result");
  if (failed(results))
    return failure();
  rows = rowShape ? ShapedType::getNumElements(*rowShape) : 1;

  std::string symbol = op.getKernelSymbol();
  std::string name = op->getName().getStringRef().str();
  llvm::replace(name, '.', '_');
  // Both are functions of one shared library.
  if (name == symbol)
    name += "_kernel";
  auto kernel = rt::KernelOp::create(builder, op->getLoc(), name,
                                     builder.getFunctionType(*inputs, *results), /*rowDims=*/1);
  kernel.getBody().getBlocks().clear();
  kernel.setLibrarySymbol(symbol);
  if (SmallVector<Attribute> scalars = op.getKernelScalars(); !scalars.empty())
    kernel.setScalarsAttr(builder.getArrayAttr(scalars));
  if (auto computation = dyn_cast<nn::CostOpInterface>(op.getOperation())) {
    nn::OpCost cost = computation.getCost();
    SaturatingCount flops = SaturatingCount(cost.matrixFlops) + cost.vectorFlops;
    kernel.setRowFlops(flops.getValue() / rows);
  }
  return kernel;
}
