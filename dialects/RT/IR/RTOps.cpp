//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/RT/IR/RT.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace braid::rt;

#define GET_OP_CLASSES
#include "dialects/RT/IR/RTOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Facts about memory.
//===----------------------------------------------------------------------===//

int64_t braid::rt::sizeInBytes(ShapedType type) {
  return type.getNumElements() * elementBytes(type);
}

bool braid::rt::hasStaticStrides(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(type.getStridesAndOffset(strides, offset)) && offset == 0 &&
         llvm::none_of(strides, ShapedType::isDynamic);
}

SmallVector<int64_t> braid::rt::getStrides(MemRefType type) {
  return type.getStridesAndOffset().first;
}

/// Whether the strides are row-major without gaps; those of dimensions of size 1 are never used.
static bool areContiguous(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  int64_t expected = 1;
  for (int64_t d = shape.size() - 1; d >= 0; --d) {
    if (shape[d] != 1 && strides[d] != expected)
      return false;
    expected *= shape[d];
  }
  return true;
}

bool braid::rt::isContiguous(MemRefType type) {
  return type.getLayout().isIdentity() ||
         (hasStaticStrides(type) && areContiguous(type.getShape(), getStrides(type)));
}

MemRefType braid::rt::viewType(ArrayRef<int64_t> shape, Type elementType, ArrayRef<int64_t> strides,
                               Attribute space) {
  MemRefLayoutAttrInterface layout;
  if (!areContiguous(shape, strides))
    layout = StridedLayoutAttr::get(elementType.getContext(), /*offset=*/0, strides);
  return MemRefType::get(shape, elementType, layout, space);
}

MemRefType braid::rt::reshapedType(MemRefType source, ArrayRef<int64_t> shape) {
  if (ShapedType::getNumElements(shape) != source.getNumElements())
    return {};
  // Sizes and strides, innermost first, with dimensions joined that are contiguous to each other.
  // Dimensions of size 1 have no stride of their own.
  SmallVector<std::pair<int64_t, int64_t>> given;
  for (auto [size, stride] :
       llvm::reverse(llvm::zip_equal(source.getShape(), getStrides(source)))) {
    if (!given.empty() && stride == given.back().first * given.back().second)
      given.back().first *= size;
    else if (size != 1)
      given.emplace_back(size, stride);
  }
  SmallVector<int64_t> strides(shape.size(), 1);
  size_t next = 0;
  int64_t left = 1,
          stride = 1; // elements of the dimension that are not taken yet, and their stride
  for (int64_t d = shape.size() - 1; d >= 0; --d) {
    if (left == 1 && shape[d] != 1)
      std::tie(left, stride) = given[next++];
    if (left % shape[d] != 0)
      return {};
    strides[d] = stride;
    left /= shape[d];
    stride *= shape[d];
  }
  return viewType(shape, source.getElementType(), strides, source.getMemorySpace());
}

Value braid::rt::getRoot(Value memory) {
  while (Operation *view = memory.getDefiningOp())
    if (!isa<ViewOp, SubviewOp>(view))
      break;
    else
      memory = view->getOperand(0);
  return memory;
}

QueueAttr braid::rt::queueOf(Operation *command) {
  if (auto start = dyn_cast<StartOp>(command))
    return start.getQueue();
  if (auto queue = command->getAttrOfType<QueueAttr>("queue"))
    return queue;
  return QueueAttr::get(command->getContext(), QueueKind::Compute);
}

SmallVector<Value> braid::rt::getWrittenRoots(Operation *op) {
  SmallVector<MemoryEffects::EffectInstance> instances;
  if (auto effects = dyn_cast<MemoryEffectOpInterface>(op))
    effects.getEffects(instances);
  SmallVector<Value> written;
  for (const MemoryEffects::EffectInstance &instance : instances)
    if (instance.getValue() && isa<MemoryEffects::Write>(instance.getEffect()))
      written.push_back(getRoot(instance.getValue()));
  return written;
}

//===----------------------------------------------------------------------===//
// rt.procedure
//===----------------------------------------------------------------------===//

void ProcedureOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                        TypeRange arguments, unsigned numEvents) {
  SmallVector<Type> results(numEvents, EventType::get(builder.getContext()));
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name),
                     TypeAttr::get(builder.getFunctionType(arguments, results)));
  Block &block = state.addRegion()->emplaceBlock();
  block.addArguments(arguments, SmallVector<Location>(arguments.size(), state.location));
}

ParseResult ProcedureOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  if (succeeded(parser.parseOptionalKeyword("entry")))
    result.addAttribute(getEntryAttrName(result.name), builder.getUnitAttr());
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  bool variadic = false;
  SmallVector<Type> resultTypes;
  SmallVector<DictionaryAttr> resultAttrs;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes) ||
      function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, variadic, resultTypes, resultAttrs))
    return failure();
  for (Type type : resultTypes)
    if (!isa<EventType>(type))
      return parser.emitError(loc, "expects rt.result arguments instead of function results other "
                                   "than events [rt.procedure_c1]");
  SmallVector<Type> types;
  for (OpAsmParser::Argument &argument : arguments)
    types.push_back(argument.type);
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(builder.getFunctionType(types, resultTypes)));
  if (succeeded(parser.parseOptionalKeyword("frame"))) {
    FrameAttr frame;
    if (parser.parseCustomAttributeWithFallback(frame))
      return failure();
    result.addAttribute(getFrameAttrName(result.name), frame);
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  call_interface_impl::addArgAndResultAttrs(builder, result, arguments, resultAttrs,
                                            getArgAttrsAttrName(result.name),
                                            getResAttrsAttrName(result.name));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void ProcedureOp::print(OpAsmPrinter &printer) {
  if (getEntry())
    printer << " entry";
  printer << ' ';
  printer.printSymbolName(getSymName());
  function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(),
                                                  /*isVariadic=*/false, getResultTypes());
  if (FrameAttr frame = getFrameAttr()) {
    printer << " frame ";
    printer.printStrippedAttrOrType(frame);
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getFunctionTypeAttrName(), getArgAttrsAttrName(),
                            getResAttrsAttrName(), getEntryAttrName(), getFrameAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void ProcedureOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (auto name = getArgAttrOfType<StringAttr>(index, RTDialect::kNameAttrName))
      setName(argument, name);
    else if (auto state = getArgAttrOfType<ValueAttr>(index, RTDialect::kStateAttrName))
      setName(argument, state.getName());
    else if (auto value = getArgAttrOfType<ValueAttr>(index, RTDialect::kOperandAttrName))
      setName(argument, value.getName());
    else if (auto result = getArgAttrOfType<ValueAttr>(index, RTDialect::kResultAttrName))
      setName(argument, result.getName());
    else if (auto parameter = getArgAttrOfType<ParameterAttr>(index, RTDialect::kParameterAttrName))
      setName(argument, parameter.getName());
  }
}

braid::comm::PlaceAttr ProcedureOp::getPlace(unsigned argument) {
  if (auto parameter = getArgAttrOfType<ParameterAttr>(argument, RTDialect::kParameterAttrName))
    return parameter.getPlace();
  for (StringRef name :
       {RTDialect::kStateAttrName, RTDialect::kOperandAttrName, RTDialect::kResultAttrName})
    if (auto value = getArgAttrOfType<ValueAttr>(argument, name))
      return value.getPlace();
  return {};
}

ArrayRef<Type> ProcedureOp::getMemoryTypes() {
  return getArgumentTypes().take_while([](Type type) { return isa<MemRefType>(type); });
}

Space AllocOp::getSpace() {
  return cast<SpaceAttr>(getBuffer().getType().getMemorySpace()).getValue();
}
int64_t AllocOp::getSizeInBytes() { return sizeInBytes(getBuffer().getType()); }

Value ViewOp::getViewSource() { return getSource(); }
Value SubviewOp::getViewSource() { return getSource(); }

int64_t SubviewOp::getOffsetInElements() {
  int64_t sum = 0;
  for (auto [offset, stride] : llvm::zip_equal(getOffsets(), getStrides(getSource().getType())))
    sum += offset * stride;
  return sum;
}

//===----------------------------------------------------------------------===//
// Launches and calls
//===----------------------------------------------------------------------===//

void LaunchOp::build(OpBuilder &builder, OperationState &state, TypeRange results,
                     FlatSymbolRefAttr kernel, int64_t rows, ValueRange inputs) {
  build(builder, state, results, kernel, builder.getI64IntegerAttr(rows), inputs, ValueRange{},
        QueueAttr::get(builder.getContext(), QueueKind::Compute));
}

void LaunchOp::build(OpBuilder &builder, OperationState &state, FlatSymbolRefAttr kernel,
                     int64_t rows, ValueRange inputs, ValueRange outputs, QueueAttr queue) {
  build(builder, state, TypeRange{}, kernel, builder.getI64IntegerAttr(rows), inputs, outputs,
        queue ? queue : QueueAttr::get(builder.getContext(), QueueKind::Compute));
}

KernelOp LaunchOp::getKernelOp() {
  return SymbolTable::lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
}

void LaunchOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &input : getInputsMutable())
    if (isa<MemRefType>(input.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &input);
  if (getOutputs().empty())
    return;
  KernelOp kernel = getKernelOp();
  for (auto [i, output] : llvm::enumerate(getOutputsMutable())) {
    if (kernel && kernel.readsResult(i))
      effects.emplace_back(MemoryEffects::Read::get(), &output);
    effects.emplace_back(MemoryEffects::Write::get(), &output);
  }
}

ProcedureOp CallOp::getProcedure() {
  return SymbolTable::lookupNearestSymbolFrom<ProcedureOp>(*this, getCalleeAttr());
}

void CallOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  ProcedureOp callee = getProcedure();
  for (OpOperand &argument : getArgumentsMutable()) {
    if (!isa<MemRefType>(argument.get().getType()))
      continue;
    // A result may be used as memory between the callee's commands, so what it held before is lost.
    if (!callee || callee.isWritten(argument.getOperandNumber()))
      effects.emplace_back(MemoryEffects::Write::get(), &argument);
    if (!callee || callee.isRead(argument.getOperandNumber()))
      effects.emplace_back(MemoryEffects::Read::get(), &argument);
  }
  effects.emplace_back(MemoryEffects::Read::get(), QueueResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), QueueResource::get());
}
