//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/RT/IR/RT.h"

#include "braid/Base/LibraryKernels.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace braid::rt;

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type,
                     int64_t rowDims) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getRowDimsAttrName(state.name), builder.getI64IntegerAttr(rowDims));
  Block &block = state.addRegion()->emplaceBlock();
  block.addArguments(type.getInputs(), SmallVector<Location>(type.getNumInputs(), state.location));
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto type = [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
                 function_interface_impl::VariadicFlag,
                 std::string &) { return builder.getFunctionType(inputs, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, getFunctionTypeAttrName(result.name), type,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(),
                                                  /*isVariadic=*/false, getResultTypes());
  SmallVector<StringRef> elided = {getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                   getResAttrsAttrName()};
  if (getRowDims() == 1)
    elided.push_back(getRowDimsAttrName());
  function_interface_impl::printFunctionAttributes(printer, *this, elided);
  if (isExternal())
    return;
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments())
    if (auto name = getArgAttrOfType<StringAttr>(argument.getArgNumber(), RTDialect::kNameAttrName))
      setName(argument, name);
}

bool KernelOp::isRowOperand(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() > 0 && tensor.isDynamicDim(0);
}

uint32_t KernelOp::getOptionalBits() {
  uint32_t bits = 0, next = 1;
  for (const auto &operand : braid::runtime::findLibraryKernel(getLibrary()->str())->operands)
    if (operand.optional) {
      for (StringRef name : getOptional().getAsValueRange<StringAttr>())
        bits |= name == operand.name ? next : 0;
      next *= 2;
    }
  return bits;
}

bool KernelOp::readsResult(unsigned result) {
  const auto *kernel =
      getLibrary() ? braid::runtime::findLibraryKernel(getLibrary()->str()) : nullptr;
  if (!kernel)
    return false;
  std::vector<int64_t> integers;
  for (Attribute scalar : getScalars())
    if (auto integer = dyn_cast<IntegerAttr>(scalar))
      integers.push_back(integer.getValue().getSExtValue());
  return integers.size() == kernel->integers.size() &&
         kernel->reads(kernel->firstOutput() + result, integers);
}

/// The layout of a value in memory, or of a tensor without gaps.
static braid::runtime::OperandType operandType(ShapedType type) {
  auto memory = dyn_cast<MemRefType>(type);
  SmallVector<int64_t> strides =
      memory ? getStrides(memory) : computeSuffixProduct(type.getShape());
  return {*braid::comm::toRuntime(type.getElementType()),
          {type.getShape().begin(), type.getShape().end()},
          {strides.begin(), strides.end()}};
}

FailureOr<braid::runtime::LibraryCall> KernelOp::getLibraryCall(int64_t parts) {
  braid::runtime::LibraryCall call;
  call.kernel = braid::runtime::findLibraryKernel(getLibrary()->str());
  if (!call.kernel)
    return emitOpError("expects a kernel of the library, got ")
           << getLibraryAttr() << " [rt.kernel_c10]";
  for (StringRef name : getOptional().getAsValueRange<StringAttr>())
    if (llvm::none_of(call.kernel->operands,
                      [&](const auto &o) { return o.optional && name == o.name; }))
      return emitOpError("expects optional operands of '")
             << *getLibrary() << "', got '" << name << "' [rt.kernel_c10]";
  SmallVector<Type> types(getArgumentTypes());
  llvm::append_range(types, getResultTypes());
  const std::vector<size_t> given = call.kernel->given(getOptionalBits());
  const size_t results = call.kernel->numOutputs(getOptionalBits());
  if (types.size() != given.size() || getResultTypes().size() != results)
    return emitOpError("expects ")
           << given.size() - results << " arguments and " << results << " results of '"
           << *getLibrary() << "', got " << getArgumentTypes().size() << " and "
           << getResultTypes().size() << " [rt.kernel_c10]";
  call.operands.resize(call.kernel->operands.size());
  for (auto [place, type] : llvm::zip_equal(given, types)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || !braid::comm::toRuntime(tensor.getElementType()))
      return emitOpError("expects static tensors of types that bundles hold, got ")
             << type << " [rt.kernel_c10]";
    call.operands[place] = operandType(tensor);
  }
  for (Attribute scalar : getScalars()) {
    if (auto number = dyn_cast<FloatAttr>(scalar))
      call.numbers.push_back(number.getValueAsDouble());
    else if (auto integer = dyn_cast<IntegerAttr>(scalar);
             integer && integer.getValue().getSignificantBits() <= 64)
      call.integers.push_back(integer.getValue().getSExtValue());
    else
      return emitOpError("expects scalars that are integers or floats, got ")
             << scalar << " [rt.kernel_c10]";
  }
  call.parts = parts;
  return call;
}

LogicalResult KernelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (size_t i = 0, end = getArgumentTypes().size() + getResultTypes().size(); i < end; ++i)
    if (PayloadAttr payload = getPayload(static_cast<unsigned>(i)); payload && payload.getGroup()) {
      if (failed(verifyGroup(*this, payload.getGroup(), symbols, "rt.kernel_c13")))
        return failure();
      const int64_t ranks = groupSize(*this, payload.getGroup());
      if (i < getArgumentTypes().size() && ranks != payload.getSenders())
        return emitOpError("expects a group of ")
               << payload.getSenders() << " ranks, as many as senders, got " << ranks
               << " [rt.kernel_c13]";
      if (i >= getArgumentTypes().size() && (ranks < 2 || payload.getFirst() >= ranks))
        return emitOpError("expects a group of at least ")
               << std::max<int64_t>(2, payload.getFirst() + 1) << " ranks, got " << ranks
               << " [rt.kernel_c13]";
    }
  if (!getLibrary())
    return success();
  if (getGroup() && failed(verifyGroup(*this, *getGroup(), symbols, "rt.kernel_c10")))
    return failure();
  FailureOr<braid::runtime::LibraryCall> call =
      getLibraryCall(getGroup() ? groupSize(*this, *getGroup()) : 1);
  if (failed(call))
    return failure();
  using Group = braid::runtime::LibraryKernel::Group;
  if (getGroup() ? call->kernel->group == Group::none : call->kernel->group == Group::required)
    return emitOpError("expects ") << (getGroup() ? "no 'group' of '" : "a 'group' of '")
                                   << *getLibrary() << "' [rt.kernel_c10]";
  if (braid::runtime::Status status = call->check(); !status.ok())
    return emitOpError("of '") << *getLibrary() << "': " << status.message() << " [rt.kernel_c10]";
  return success();
}

PayloadAttr KernelOp::getPayload(unsigned operand) {
  const auto arguments = static_cast<unsigned>(getArgumentTypes().size());
  constexpr StringRef name = RTDialect::kPayloadAttrName;
  return operand < arguments ? getArgAttrOfType<PayloadAttr>(operand, name)
                             : getResultAttrOfType<PayloadAttr>(operand - arguments, name);
}

bool KernelOp::hasPayloads() {
  const auto operands = static_cast<unsigned>(getArgumentTypes().size() + getResultTypes().size());
  return llvm::any_of(llvm::seq(0U, operands), [&](unsigned i) { return bool(getPayload(i)); });
}

braid::runtime::LibraryCall KernelOp::getCodecCall(unsigned operand, int64_t rows,
                                                   ShapedType payload) {
  PayloadAttr how = getPayload(operand);
  const bool encodes = operand >= getArgumentTypes().size();
  auto type = cast<RankedTensorType>(encodes ? getResultTypes()[operand - getArgumentTypes().size()]
                                             : getArgumentTypes()[operand]);
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = rows;
  braid::runtime::LibraryCall call;
  call.kernel = braid::runtime::findLibraryKernel(encodes                 ? "encode"
                                                  : how.getSenders() == 0 ? "decode"
                                                                          : "decode_sum");
  call.integers = {how.getEncoding().getPair().reduce.code()};
  if (encodes) {
    call.integers.push_back(how.getFirst());
  } else {
    call.integers.push_back(static_cast<int64_t>(*braid::comm::toRuntime(how.getType())));
    call.integers.push_back(how.getSenders() == 0 ? how.getAbsent() : how.getSenders());
  }
  call.operands.resize(call.kernel->operands.size());
  call.operands[codecRows(call)] = operandType(type.clone(shape));
  if (payload)
    call.operands[codecPayload(call)] = operandType(payload);
  if (how.getGroup())
    call.parts = groupSize(*this, how.getGroup());
  if (how.getOwn() >= 0)
    call.operands[braid::runtime::kOwnRows] = operandType(
        cast<RankedTensorType>(getArgumentTypes()[static_cast<size_t>(how.getOwn())]).clone(shape));
  return call;
}

bool KernelOp::isOwn(unsigned argument) {
  return llvm::any_of(llvm::seq<size_t>(0, getArgumentTypes().size()), [&](size_t i) {
    PayloadAttr payload = getPayload(static_cast<unsigned>(i));
    return payload && payload.getOwn() == static_cast<int64_t>(argument);
  });
}

bool KernelOp::canShare(unsigned argument, unsigned result) {
  if (isExternal() || isOwn(argument) || getPayload(argument) ||
      getPayload(static_cast<unsigned>(getArgumentTypes().size()) + result))
    return false;
  Block &body = getBody().front();
  auto generics = body.getOps<linalg::GenericOp>();
  if (!llvm::hasSingleElement(generics))
    return false;
  linalg::GenericOp generic = *generics.begin();
  auto output = dyn_cast<OpResult>(cast<YieldOp>(body.back()).getValues()[result]);
  if (generic.getNumReductionLoops() != 0 || !output || output.getOwner() != generic ||
      getArgumentTypes()[argument] != getResultTypes()[result])
    return false;
  AffineMap written =
      generic.getMatchingIndexingMap(generic.getDpsInitOperand(output.getResultNumber()));
  for (OpOperand *input : generic.getDpsInputOperands())
    if (input->get() == body.getArgument(argument) &&
        generic.getMatchingIndexingMap(input) != written)
      return false;
  return true;
}

std::string KernelOp::getArgumentName(unsigned index) {
  if (auto name = getArgAttrOfType<StringAttr>(index, RTDialect::kNameAttrName))
    return name.str();
  return ("arg" + Twine(index)).str();
}

//===----------------------------------------------------------------------===//
// Verification.
//===----------------------------------------------------------------------===//

/// Verifies a kernel with a `library_symbol`.
static LogicalResult verifyLibraryKernel(KernelOp op) {
  for (Type type : llvm::concat<const Type>(op.getArgumentTypes(), op.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || llvm::any_of(tensor.getShape().drop_front(KernelOp::isRowOperand(type) ? 1 : 0),
                                ShapedType::isDynamic))
      return op.emitOpError(
                 "expects ranked tensors, static but for the outermost row dimension, got ")
             << type << " [rt.kernel_c9]";
  }
  if (op.getResultTypes().empty())
    return op.emitOpError("expects at least one result [rt.kernel_c9]");
  for (Attribute scalar : op.getScalars())
    if (!isa<IntegerAttr, FloatAttr>(scalar))
      return op.emitOpError("expects scalars that are integers or floats, got ")
             << scalar << " [rt.kernel_c9]";
  return success();
}

/// Verifies what launches of a kernel with a body encode.
static LogicalResult verifyPayloads(KernelOp op) {
  const size_t arguments = op.getArgumentTypes().size();
  for (auto [i, type] :
       llvm::enumerate(llvm::concat<const Type>(op.getArgumentTypes(), op.getResultTypes()))) {
    const bool encodes = i >= arguments;
    const size_t number = encodes ? i - arguments : i;
    Attribute given = encodes ? op.getResultAttr(number, RTDialect::kPayloadAttrName)
                              : op.getArgAttr(number, RTDialect::kPayloadAttrName);
    if (!given)
      continue;
    StringRef what = encodes ? "result" : "argument";
    auto payload = dyn_cast<PayloadAttr>(given);
    if (!payload)
      return op.emitOpError("expects '")
             << RTDialect::kPayloadAttrName << "' of " << what << " " << number
             << " to be #rt.payload, got " << given << " [rt.kernel_c13]";
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (op.isExternal() || !tensor || !KernelOp::isRowOperand(tensor) ||
        tensor.getRank() != static_cast<int64_t>(op.getRowDims()) + 1 ||
        !isa<FloatType>(tensor.getElementType()) ||
        !braid::comm::toRuntime(tensor.getElementType()))
      return op.emitOpError("expects '")
             << RTDialect::kPayloadAttrName
             << "' on rows and columns of floats of a kernel with a body only, got " << what << " "
             << number << " of type " << type << " [rt.kernel_c13]";
    if (!encodes && payload.getGroup() && payload.getOwn() < 0)
      return op.emitOpError("expects 'over' without 'own' on results only, got argument ")
             << number << " with " << payload << " [rt.kernel_c13]";
    if (payload.getOwn() >= 0) {
      const auto own = static_cast<size_t>(payload.getOwn());
      const auto rows = tensor.clone(payload.getType());
      if (encodes || own >= arguments || op.getPayload(static_cast<unsigned>(own)) ||
          op.getArgumentTypes()[own] != rows)
        return op.emitOpError("expects argument ")
               << own << ", which argument " << number << " has as its own rows, to be of type "
               << rows << " and not encoded [rt.kernel_c13]";
    }
    if (encodes && (payload.getType() != tensor.getElementType() || payload.getSenders() != 0 ||
                    payload.getAbsent()))
      return op.emitOpError("expects result ")
             << number << " to be encoded as a tensor of " << tensor.getElementType()
             << " without senders, got " << payload << " [rt.kernel_c13]";
  }
  return success();
}

LogicalResult KernelOp::verify() {
  if (failed(verifyPayloads(*this)))
    return failure();
  if (!isExternal() + getLibrarySymbol().has_value() + getLibrary().has_value() != 1)
    return emitOpError("expects either a body or 'library_symbol' or 'library' [rt.kernel_c9]");
  if (getRowFlops() && !getLibrarySymbol())
    return emitOpError("expects no 'row_flops' without 'library_symbol' [rt.kernel_c11]");
  if (!getLibrary() && (getOptionalAttr() || getGroup()))
    return emitOpError("expects no 'optional' and no 'group' without 'library' [rt.kernel_c10]");
  if (getLibrary())
    return success(); // verifySymbolUses does the rest, since it needs the mesh.
  if (isExternal())
    return verifyLibraryKernel(*this);
  if (getScalarsAttr())
    return emitOpError("expects no 'scalars' beside a body [rt.kernel_c9]");
  int64_t rowDims = getRowDims();
  auto check = [&](Type type, const Twine &what, bool mustBeRow) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getRank() > rowDims + 1)
      return emitOpError("expects ") << what << " to be a ranked tensor of at most " << rowDims + 1
                                     << " dimensions, got " << type << " [rt.kernel_c2]";
    bool row = isRowOperand(type);
    if (llvm::any_of(tensor.getShape().drop_front(row ? 1 : 0), ShapedType::isDynamic))
      return emitOpError("expects ")
             << what << " to be static but for the outermost row dimension, got " << type
             << " [rt.kernel_c2]";
    if (row && tensor.getRank() < rowDims)
      return emitOpError("expects ") << what << " to have all " << rowDims
                                     << " row dimensions, got " << type << " [rt.kernel_c2]";
    if (mustBeRow && !row)
      return emitOpError("expects ")
             << what << " to have a dynamic outermost dimension, got " << type << " [rt.kernel_c2]";
    return success();
  };
  for (auto [i, type] : llvm::enumerate(getArgumentTypes()))
    if (failed(check(type, "argument " + Twine(i), /*mustBeRow=*/false)))
      return failure();
  for (auto [i, type] : llvm::enumerate(getResultTypes()))
    if (failed(check(type, "result " + Twine(i), /*mustBeRow=*/true)))
      return failure();
  if (getResultTypes().empty() || llvm::none_of(getArgumentTypes(), isRowOperand))
    return emitOpError(
        "expects at least one result and one argument with a dynamic outermost dimension "
        "[rt.kernel_c2]");
  return success();
}

/// The operation that combines the accumulator, null when there is none.
static Operation *getCombiner(linalg::GenericOp generic) {
  if (generic->getNumResults() != 1)
    return nullptr;
  BlockArgument acc = generic.getRegionOutputArgs().front();
  Operation *combiner = generic.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  if (!combiner || !acc.hasOneUse() || *acc.user_begin() != combiner)
    return nullptr;
  if (!isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
           arith::MinNumFOp>(combiner))
    return nullptr;
  return combiner;
}

static LogicalResult verifyReduction(linalg::GenericOp generic) {
  Operation *combiner = getCombiner(generic);
  if (!combiner)
    return generic.emitOpError(
        "expects a reduction in rt.kernel to yield combiner(acc, x) with acc used once "
        "[rt.kernel_c6]");
  auto fill = generic.getDpsInits().front().getDefiningOp<linalg::FillOp>();
  FloatAttr value;
  if (!fill || !matchPattern(fill.getInputs().front(), m_Constant(&value)))
    return generic.emitOpError(
        "expects a reduction in rt.kernel to start from a linalg.fill with a constant "
        "[rt.kernel_c7]");
  std::optional<TypedAttr> identity = arith::getNeutralElement(combiner);
  // maximumf and maxnumf (and the minima) have NaN-aware identities upstream; an infinity serves as
  // well.
  const llvm::fltSemantics &semantics = value.getValue().getSemantics();
  bool infinity =
      (isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner) &&
       value.getValue().bitwiseIsEqual(APFloat::getInf(semantics, /*Negative=*/true))) ||
      (isa<arith::MinimumFOp, arith::MinNumFOp>(combiner) &&
       value.getValue().bitwiseIsEqual(APFloat::getInf(semantics, /*Negative=*/false)));
  // Sums may start from either zero.
  bool zero = isa<arith::AddFOp>(combiner) && value.getValue().isZero();
  if (!infinity && !zero && (!identity || *identity != value))
    return generic.emitOpError("expects a reduction in rt.kernel to start from the identity of ")
           << combiner->getName() << ", got " << value << " [rt.kernel_c7]";
  return success();
}

static LogicalResult verifyGeneric(linalg::GenericOp generic, unsigned rowDims) {
  unsigned loops = generic.getNumLoops(), reductions = generic.getNumReductionLoops();
  bool lastReduced =
      loops && generic.getIteratorTypesArray().back() == utils::IteratorType::reduction;
  bool rowsAndColumn =
      loops == rowDims + 1 && (reductions == 0 || (reductions == 1 && lastReduced));
  bool rowsOnly = loops == rowDims && reductions == 0;
  if (!rowsAndColumn && !rowsOnly)
    return generic.emitOpError("expects a domain of (rows..., column), (rows..., reduced column) "
                               "or (rows...) with ")
           << rowDims << " row dimensions in rt.kernel [rt.kernel_c4]";
  for (AffineMap map : generic.getIndexingMapsArray()) {
    bool ordered = map.isProjectedPermutation();
    for (unsigned i = 1; ordered && i < map.getNumResults(); ++i)
      ordered = map.getDimPosition(i - 1) < map.getDimPosition(i);
    if (!ordered)
      return generic.emitOpError("expects maps in rt.kernel to project dimensions in order, the "
                                 "column innermost, got ")
             << AffineMapAttr::get(map) << " [rt.kernel_c5]";
  }
  for (Operation &op : generic.getBlock()->without_terminator())
    if (!isa<linalg::IndexOp>(op) &&
        !isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op.getDialect()))
      return op.emitOpError(
          "is not a scalar operation that rt.kernel allows inside of linalg.generic "
          "[rt.kernel_c8]");
  if (reductions != 0)
    return verifyReduction(generic);
  for (BlockArgument output : generic.getRegionOutputArgs())
    if (!output.use_empty())
      return generic.emitOpError(
          "expects no use of the output's former value in rt.kernel outside of a reduction "
          "[rt.kernel_c7]");
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  if (isExternal())
    return success();
  Block &block = getBody().front();
  for (Operation &op : block.without_terminator()) {
    if (isa<tensor::EmptyOp, tensor::DimOp, linalg::FillOp, arith::ConstantOp>(op))
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic)
      return op.emitOpError("is not allowed in rt.kernel [rt.kernel_c3]");
    if (failed(verifyGeneric(generic, getRowDims())))
      return failure();
  }
  auto yield = dyn_cast<YieldOp>(block.back());
  if (!yield || !llvm::equal(yield.getValues().getTypes(), getResultTypes()))
    return emitOpError("expects a body that ends in rt.yield of the result types [rt.kernel_c1]");
  return success();
}
