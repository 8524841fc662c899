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
    std::optional<braid::runtime::DType> dtype;
    if (tensor && tensor.hasStaticShape())
      dtype = braid::comm::toRuntime(tensor.getElementType());
    if (!dtype)
      return emitOpError("expects static tensors of types that bundles hold, got ")
             << type << " [rt.kernel_c10]";
    SmallVector<int64_t> strides = computeSuffixProduct(tensor.getShape());
    call.operands[place] = {*dtype,
                            {tensor.getShape().begin(), tensor.getShape().end()},
                            {strides.begin(), strides.end()}};
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

bool KernelOp::canShare(unsigned argument, unsigned result) {
  if (isExternal())
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

LogicalResult KernelOp::verify() {
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
