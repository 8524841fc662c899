//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RowPrinter.h"

#include "braid/Analysis/CodecFusion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace braid;
using namespace braid::cuda;
using rows::kColumn;
using rows::Node;
using rows::NodeValue;
using rows::Position;
using rows::Sweep;

//===----------------------------------------------------------------------===//
// RowShape
//===----------------------------------------------------------------------===//

/// Columns that vectors run along: the innermost extent of operands with all dimensions.
static int64_t countColumns(rt::KernelOp kernel) {
  int64_t columns = 1;
  for (auto generic : kernel.getBody().getOps<linalg::GenericOp>())
    if (generic.getNumLoops() == kernel.getRowDims() + 1)
      columns = generic.getStaticLoopRanges().back();
  for (Type type : kernel.getResultTypes())
    if (auto tensor = cast<RankedTensorType>(type);
        tensor.getRank() == static_cast<int64_t>(kernel.getRowDims()) + 1)
      columns = tensor.getShape().back();
  return columns;
}

RowShape RowShape::choose(rt::KernelOp kernel, int64_t maxVector) {
  RowShape shape;
  shape.columns = countColumns(kernel);
  // 16 bytes of the narrowest type loaded or stored along the row.
  unsigned narrowest = 64;
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getRank() > 0 && tensor.getShape().back() == shape.columns)
      narrowest = std::min(narrowest, tensor.getElementTypeBitWidth());
  }
  shape.vector = std::min<int64_t>({8, 128 / narrowest, maxVector});
  while (shape.columns % shape.vector != 0)
    shape.vector /= 2;

  // All results have all row dimensions.
  auto result = cast<RankedTensorType>(kernel.getResultTypes().front());
  shape.rowsPerOuter = 1;
  for (int64_t dim = 1, end = kernel.getRowDims(); dim < end; ++dim)
    shape.rowsPerOuter *= result.getDimSize(dim);

  bool reduces = llvm::any_of(kernel.getBody().getOps<linalg::GenericOp>(),
                              [](auto generic) { return generic.getNumReductionLoops() != 0; });
  int64_t vectors = shape.columns / shape.vector;
  // A codec needs whole rows.
  SmallVector<RowCodec> codecs = rowCodecsOf(kernel);
  if (!reduces && codecs.empty()) {
    shape.skeleton = Skeleton::Map;
    shape.threads = 256;
    shape.steps = 1;
  } else if (vectors <= 4 * 32) {
    shape.skeleton = Skeleton::WarpRow;
    shape.threads = 128;
    shape.steps = static_cast<int64_t>(llvm::divideCeil(vectors, 32));
    while (!codecs.empty() && shape.threads > 32 &&
           cudaSharedBytes(codecs, shape.rowsPerBlock(), shape.warpsPerRow()) > kCUDASharedBytes)
      shape.threads /= 2;
  } else {
    shape.skeleton = Skeleton::BlockRow;
    shape.threads = 128;
    while (shape.threads < 1024 && vectors > 2 * shape.threads)
      shape.threads *= 2;
    shape.steps = static_cast<int64_t>(llvm::divideCeil(vectors, shape.threads));
  }
  return shape;
}

StringRef RowShape::skeletonName() const {
  switch (skeleton) {
  case Skeleton::Map:
    return "Map";
  case Skeleton::WarpRow:
    return "WarpRow";
  case Skeleton::BlockRow:
    return "BlockRow";
  }
  llvm_unreachable("all skeletons are named");
}

int64_t RowShape::itemsPerRow() const {
  return rowsPerOuter * (skeleton == Skeleton::Map ? columns / vector : 1);
}

int64_t RowShape::itemsPerBlock() const {
  return skeleton == Skeleton::BlockRow ? 1 : threads / (skeleton == Skeleton::WarpRow ? 32 : 1);
}

bool RowShape::isRagged() const {
  int64_t perRow = skeleton == Skeleton::WarpRow ? 32 : threads;
  return skeleton != Skeleton::Map && columns % (vector * perRow) != 0;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

RowPrinter::RowPrinter(rt::KernelOp kernel, RowShape shape, const rows::RowSchedule &schedule,
                       llvm::raw_ostream &os)
    : kernel(kernel), shape(shape), schedule(schedule), os(os) {
  for (unsigned dim = 0; dim < schedule.numRowDims; ++dim)
    names.fresh("row" + std::to_string(dim));
}

static Type operandType(rt::KernelOp kernel, unsigned number) {
  unsigned numArguments = kernel.getArgumentTypes().size();
  return number < numArguments ? kernel.getArgumentTypes()[number]
                               : kernel.getResultTypes()[number - numArguments];
}

FailureOr<runtime::CudaKernel> RowPrinter::print(const std::string &name) {
  runtime::CudaKernel made;
  made.symbol = kernel.getSymName().str();
  made.function = name;
  made.threads = shape.threads;
  made.itemsPerRow = shape.itemsPerRow();
  made.itemsPerBlock = shape.itemsPerBlock();
  unsigned numArguments = kernel.getArgumentTypes().size(),
           numOperands = numArguments + kernel.getResultTypes().size();
  made.outputs = numOperands - numArguments;
  for (unsigned number = 0; number < numOperands; ++number) {
    auto type = cast<RankedTensorType>(operandType(kernel, number));
    runtime::CudaOperand operand;
    if (number < numArguments) {
      operand.name = names.fresh(kernel.getArgumentName(number));
    } else {
      auto named = kernel.getResultAttrOfType<StringAttr>(number - numArguments,
                                                          rt::RTDialect::kNameAttrName);
      operand.name = names.fresh(named ? named.getValue() : StringRef("out"));
    }
    operandNames.push_back(operand.name);
    operand.dtype = *comm::toRuntime(type.getElementType());
    operand.shape.assign(type.getShape().begin(), type.getShape().end());
    if (rt::KernelOp::isRowOperand(type))
      operand.shape.front() = runtime::kLaunchRows;
    addCodec(number, operand);
    // Only operands accessed by vectors need alignment.
    bool moved = type.getRank() > 0 && type.getShape().back() == shape.columns;
    int64_t bytes = type.getElementTypeBitWidth() / 8;
    if (operand.codec.empty())
      operand.alignment = moved ? std::min<int64_t>(16, bytes * shape.vector) : bytes;
    strideNames.emplace_back();
    for (size_t dim = 0, end = operand.numStrides(); dim < end; ++dim)
      strideNames.back().push_back(
          names.fresh(operand.name + "_stride" + (end > 1 ? std::to_string(dim) : "")));
    made.operands.push_back(std::move(operand));
  }
  printSignature(made);
  printPayloadChecks();
  printRowNumbers();
  printPayloadRows();

  for (NodeValue value : schedule.kept) {
    Location loc = value.node->op ? value.node->op.getLoc() : value.node->value.getLoc();
    std::string held;
    if (auto argument = dyn_cast<BlockArgument>(value.node->value))
      held = names.fresh(operandNames[argument.getArgNumber()] + "_row");
    else
      held = names.fresh(loc, "kept");
    os << "  " << vectorType(elementType(value)) << " " << held;
    if (shape.steps > 1)
      os << "[Row::steps]";
    os << ";\n";
    registers[key(value)] = held + (shape.steps > 1 ? "[s]" : "");
  }
  for (const Sweep &sweep : schedule.sweeps)
    if (failed(printSweep(sweep)))
      return failure();
  if (failed(printScalarResults()))
    return failure();
  printEncodes();
  os << "}\n";
  return made;
}

void RowPrinter::printSignature(const runtime::CudaKernel &made) {
  os << "extern \"C\" __global__ void __launch_bounds__(" << made.threads;
  // 64 registers of a thread in the largest blocks, and 72 or more in others, since with some
  // encodings 64 are a few too little. Without a number of blocks ptxas spills to use fewer.
  if (!codecs.empty())
    os << ", " << std::max<int64_t>(1, 896 / made.threads);
  os << ")\n" << made.function << "(";
  unsigned numArguments = kernel.getArgumentTypes().size(),
           numResults = kernel.getResultTypes().size();
  std::string indent(made.function.size() + 1, ' ');
  for (auto [number, operand] : llvm::enumerate(made.operands)) {
    if (!operand.codec.empty()) {
      os << "const braid::library::Codec " << operand.name << ",\n" << indent;
      continue;
    }
    bool input = number < numArguments;
    // Operands that may alias another one are not restricted.
    bool shared = false;
    for (unsigned i = 0, end = input ? numResults : numArguments; i != end; ++i)
      shared |= input ? kernel.canShare(number, i) : kernel.canShare(i, number - numArguments);
    Type element = getElementTypeOrSelf(operandType(kernel, number));
    os << (input ? "const " : "") << typeName(element) << " *" << (shared ? "" : "__restrict__ ")
       << operand.name << ",";
    for (const std::string &stride : strideNames[number])
      os << " long long " << stride << ",";
    os << "\n" << indent;
  }
  os << "unsigned rows) {\n";
}

void RowPrinter::printRowNumbers() {
  os << "  using Row = braid::" << shape.skeletonName() << "<" << shape.columns << ", "
     << shape.vector << ", " << shape.threads << ">;\n";
  auto result = cast<RankedTensorType>(kernel.getResultTypes().front());
  int64_t numRowDims = schedule.numRowDims;
  os << "  const unsigned row = Row::row();\n  if (row >= rows";
  if (shape.rowsPerOuter != 1)
    os << " * " << shape.rowsPerOuter << "u";
  os << ")\n    return;\n";
  if (numRowDims == 1)
    return;
  std::string rest = "row";
  for (int64_t dim = numRowDims - 1; dim > 0; --dim) {
    int64_t extent = result.getDimSize(dim);
    os << "  const unsigned row" << dim << " = " << rest << " % " << extent << "u;\n";
    rest += " / " + std::to_string(extent) + "u";
  }
  os << "  const unsigned row0 = " << rest << ";\n";
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Type RowPrinter::elementType(NodeValue value) const {
  return getElementTypeOrSelf(value.node->op ? value.node->op->getResult(value.result).getType()
                                             : value.node->value.getType());
}

std::string RowPrinter::vectorType(Type element) const {
  return ("braid::vec<" + typeName(element) + ", " + Twine(shape.vector) + ">").str();
}

Expression RowPrinter::index(Position place) const {
  if (place == kColumn)
    return shape.vector > 1 ? Expression{"(c + j)"} : Expression{"c"};
  if (schedule.numRowDims == 1)
    return {"row"};
  return {"row" + std::to_string(place)};
}

std::string RowPrinter::pointer(unsigned number, ArrayRef<Position> position) {
  if (auto coded = codecs.find(number); coded != codecs.end())
    return coded->second.row;
  // All dimensions but the column, which is innermost if present.
  ArrayRef<Position> outer = position;
  if (!outer.empty() && outer.back() == kColumn)
    outer = outer.drop_back();
  if (outer.empty())
    return operandNames[number];
  for (const auto &[where, name] : rowPointers)
    if (where.first == number && ArrayRef<Position>(where.second) == position)
      return name;
  std::string name = names.fresh(operandNames[number] + "_at_row");
  bool input = number < kernel.getArgumentTypes().size();
  os << "  " << (input ? "const " : "")
     << typeName(getElementTypeOrSelf(operandType(kernel, number))) << " *const " << name << " = "
     << operandNames[number];
  for (auto [dim, place] : llvm::enumerate(outer)) {
    os << " + " << index(place).text;
    if (dim < strideNames[number].size())
      os << " * " << strideNames[number][dim];
  }
  os << ";\n";
  rowPointers.push_back({{number, SmallVector<Position>(position)}, name});
  return name;
}

FailureOr<Expression> RowPrinter::splat(Node &node) {
  Attribute value;
  if (auto fill = node.value.getDefiningOp<linalg::FillOp>())
    matchPattern(fill.value(), m_Constant(&value));
  else if (DenseElementsAttr elements; matchPattern(node.value, m_Constant(&elements)))
    value = elements.getSplatValue<Attribute>();
  FailureOr<Expression> printed = printConstant(value);
  if (failed(printed))
    return kernel.emitOpError("has a constant of type ")
           << getElementTypeOrSelf(node.value.getType()) << ", which has no form in CUDA";
  return printed;
}

LogicalResult RowPrinter::printNode(Node &node, ScalarPrinter &printer,
                                    const llvm::DenseMap<Key, Expression> &known,
                                    Operation *skipped) {
  SmallVector<Expression> arguments;
  for (NodeValue argument : node.arguments) {
    Expression expression;
    if (argument.node && !argument.node->varies) {
      FailureOr<Expression> found = scalar(argument);
      if (failed(found))
        return failure();
      expression = *found;
    } else if (argument.node) {
      expression = known.lookup(key(argument));
    }
    arguments.push_back(std::move(expression));
  }
  auto at = [&](int64_t dim) {
    return Expression{"(long long)" + index(node.position[dim]).in(Binding::Unary), Binding::Unary};
  };
  return printer.printRegion(node.op, arguments, at, skipped);
}

FailureOr<Expression> RowPrinter::scalar(NodeValue value) {
  if (auto found = scalars.find(key(value)); found != scalars.end())
    return found->second;
  Node *node = value.node;
  switch (node->kind) {
  case Node::Kind::Splat: {
    FailureOr<Expression> printed = splat(*node);
    if (failed(printed))
      return failure();
    return scalars[key(value)] = *printed;
  }
  case Node::Kind::Operand: {
    unsigned number = cast<BlockArgument>(node->value).getArgNumber();
    std::string from = pointer(number, node->position),
                name = names.fresh(operandNames[number] + "_of_row");
    os << "  const " << typeName(elementType(value)) << " " << name << " = *" << from << ";\n";
    return scalars[key(value)] = Expression{name};
  }
  case Node::Kind::Map: {
    for (NodeValue argument : node->arguments)
      if (argument.node && failed(scalar(argument)))
        return failure();
    ScalarPrinter printer(os, names, "  ");
    if (failed(printNode(*node, printer, scalars)))
      return failure();
    Operation *yield = node->op.getBody()->getTerminator();
    for (auto [number, yielded] : llvm::enumerate(yield->getOperands())) {
      FailureOr<Expression> printed = printer.get(yielded);
      if (failed(printed))
        return failure();
      if (!printed->isTrivial())
        printed = printer.declare(elementType({node, unsigned(number)}), *printed,
                                  names.fresh(node->op.getLoc(), "r"));
      scalars[{node, unsigned(number)}] = *printed;
    }
    return scalars[key(value)];
  }
  case Node::Kind::Reduce:
    break;
  }
  llvm_unreachable("a reduction is known after its sweep");
}

//===----------------------------------------------------------------------===//
// Sweeps
//===----------------------------------------------------------------------===//

LogicalResult RowPrinter::hoistScalars(Node &node) {
  for (NodeValue argument : node.arguments)
    if (argument.node && !argument.node->varies && failed(scalar(argument)))
      return failure();
  return success();
}

unsigned RowPrinter::countUses(const Sweep &sweep, NodeValue value) const {
  unsigned uses = schedule.isKept(value) ? 1 : 0;
  auto count = [&](Node *node) {
    for (auto [number, argument] : llvm::enumerate(node->arguments))
      if (argument == value)
        uses += node->op.getBody()->getArgument(number).getNumUses();
  };
  for (const Sweep::Step &step : sweep.steps)
    if (step.action == Sweep::Action::Compute)
      count(step.value.node);
  for (Node *reduction : sweep.reductions)
    count(reduction);
  for (unsigned output : sweep.outputs)
    uses += schedule.results[output].value == value;
  return uses;
}

static Operation *combinerOf(linalg::GenericOp reduction) {
  return reduction.getBody()->getTerminator()->getOperand(0).getDefiningOp();
}

static StringRef combinerName(Operation *combiner) {
  return llvm::TypeSwitch<Operation *, StringRef>(combiner)
      .Case([](arith::AddFOp) { return "Sum"; })
      .Case([](arith::MulFOp) { return "Product"; })
      .Case([](arith::MaximumFOp) { return "Maximum"; })
      .Case([](arith::MinimumFOp) { return "Minimum"; })
      .Case([](arith::MaxNumFOp) { return "MaxNum"; })
      .Case([](arith::MinNumFOp) { return "MinNum"; });
}

LogicalResult RowPrinter::printSweep(const Sweep &sweep) {
  // Values that do not vary along the column, and pointers to rows, come before the loop.
  for (const Sweep::Step &step : sweep.steps)
    if (step.action == Sweep::Action::Compute && failed(hoistScalars(*step.value.node)))
      return failure();
  for (Node *reduction : sweep.reductions) {
    if (!elementType({reduction, 0}).isF32())
      return reduction->op.emitOpError("expects to reduce in f32 on the CUDA target, got ")
             << elementType({reduction, 0});
    if (failed(hoistScalars(*reduction)))
      return failure();
    std::string name = names.fresh(reduction->op.getLoc(), "total");
    os << "  float " << name << " = " << scalar(reduction->arguments.back())->text << ";\n";
    accumulators[reduction] = name;
  }
  std::string loads, body, stores;
  if (failed(printElement(sweep, loads, body, stores)))
    return failure();

  bool loops = shape.steps > 1;
  if (loops) {
    // The loop over a row is unrolled where it is kept in registers, which have no addresses.
    if (!schedule.kept.empty() || shape.steps <= 8)
      os << "#pragma unroll\n";
    else
      os << "#pragma unroll 4\n";
    os << "  for (int s = 0; s < Row::steps; ++s) {\n    const int c = Row::column(s);\n";
    if (shape.isRagged())
      os << "    if (c >= " << shape.columns << ")\n      break;\n";
  } else {
    os << "  "
       << (shape.isRagged() ? ("if (Row::column(0) < " + Twine(shape.columns) + ") ").str() : "")
       << "{\n    const int c = Row::column(0);\n";
  }
  os << loads;
  if (shape.vector > 1)
    os << "#pragma unroll\n    for (int j = 0; j < " << shape.vector << "; ++j) {\n"
       << body << "    }\n";
  else
    os << body;
  os << stores << "  }\n";
  for (Node *reduction : sweep.reductions) {
    const std::string &name = accumulators[reduction];
    os << "  " << name << " = Row::reduce<braid::" << combinerName(combinerOf(reduction->op))
       << ">(" << name << ");\n";
    scalars[{reduction, 0}] = {name};
  }
  return success();
}

LogicalResult RowPrinter::printElement(const Sweep &sweep, std::string &loads, std::string &body,
                                       std::string &stores) {
  values.clear();
  llvm::raw_string_ostream loadsOs(loads), bodyOs(body), storesOs(stores);
  std::string indent = shape.vector > 1 ? "      " : "    ",
              element = shape.vector > 1 ? "[j]" : "[0]";
  auto loadFrom = [&](NodeValue value, unsigned number, ArrayRef<Position> position) {
    std::string from = pointer(number, position);
    std::string load = ("braid::load<" + Twine(shape.vector) + ">(" + from + " + c)").str();
    std::string held = registers.lookup(key(value));
    if (held.empty()) {
      held = names.fresh(operandNames[number] + "_v");
      loadsOs << "    const auto " << held << " = " << load << ";\n";
    } else {
      loadsOs << "    " << held << " = " << load << ";\n";
    }
    values[key(value)] = {held + element};
  };
  for (const Sweep::Step &step : sweep.steps) {
    NodeValue value = step.value;
    Node *node = value.node;
    switch (step.action) {
    case Sweep::Action::Load:
      loadFrom(value, cast<BlockArgument>(node->value).getArgNumber(), node->position);
      break;
    case Sweep::Action::Reload: {
      if (std::string held = registers.lookup(key(value)); !held.empty()) {
        values[key(value)] = {held + element};
        break;
      }
      auto found =
          llvm::find_if(schedule.reread, [value](const auto &pair) { return pair.first == value; });
      loadFrom(value, kernel.getArgumentTypes().size() + found->second,
               schedule.results[found->second].position);
      break;
    }
    case Sweep::Action::Compute: {
      ScalarPrinter printer(bodyOs, names, indent);
      if (failed(printNode(*node, printer, values)))
        return failure();
      Operation *yield = node->op.getBody()->getTerminator();
      for (auto [number, yielded] : llvm::enumerate(yield->getOperands())) {
        NodeValue made{node, unsigned(number)};
        unsigned uses = countUses(sweep, made);
        if (uses == 0)
          continue;
        FailureOr<Expression> printed = printer.get(yielded);
        if (failed(printed))
          return failure();
        if (uses > 1 && !printed->isTrivial())
          printed =
              printer.declare(elementType(made), *printed, names.fresh(node->op.getLoc(), "y"));
        if (std::string held = registers.lookup(key(made)); !held.empty())
          bodyOs << indent << held << element << " = " << printed->text << ";\n";
        values[key(made)] = *printed;
      }
      break;
    }
    }
  }
  if (failed(printReductions(sweep, bodyOs)))
    return failure();
  // Stores come last: a result may alias an operand of the same elements.
  for (unsigned output : sweep.outputs) {
    const rows::RowSchedule::Result &result = schedule.results[output];
    unsigned number = kernel.getArgumentTypes().size() + output;
    std::string to = pointer(number, result.position),
                stored = names.fresh(operandNames[number] + "_v");
    loadsOs << "    " << vectorType(elementType(result.value)) << " " << stored << ";\n";
    bodyOs << indent << stored << element << " = " << values.lookup(key(result.value)).text
           << ";\n";
    storesOs << "    braid::store" << (codecs.count(number) ? "_shared" : "") << "(" << to
             << " + c, " << stored << ");\n";
  }
  return success();
}

LogicalResult RowPrinter::printReductions(const Sweep &sweep, llvm::raw_ostream &body) {
  std::string indent = shape.vector > 1 ? "      " : "    ";
  for (Node *reduction : sweep.reductions) {
    Operation *combiner = combinerOf(reduction->op);
    ScalarPrinter printer(body, names, indent);
    if (failed(printNode(*reduction, printer, values, combiner)))
      return failure();
    BlockArgument total = reduction->op.getRegionOutputArgs().front();
    Value added = combiner->getOperand(combiner->getOperand(0) == total ? 1 : 0);
    FailureOr<Expression> term = printer.get(added);
    if (failed(term))
      return failure();
    const std::string &name = accumulators[reduction];
    if (isa<arith::AddFOp>(combiner))
      body << indent << name << " += " << term->text << ";\n";
    else
      body << indent << name << " = braid::" << combinerName(combiner) << "::combine(" << name
           << ", " << term->text << ");\n";
  }
  return success();
}

LogicalResult RowPrinter::printScalarResults() {
  for (auto [output, result] : llvm::enumerate(schedule.results)) {
    if (result.value.node->varies)
      continue;
    FailureOr<Expression> value = scalar(result.value);
    if (failed(value))
      return failure();
    std::string to = pointer(kernel.getArgumentTypes().size() + output, result.position);
    os << "  if (Row::first())\n    *" << to << " = " << value->text << ";\n";
  }
  return success();
}
