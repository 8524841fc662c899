//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Evaluates a structured operation point by point over its iteration domain. Its body is first
// compiled to a list of steps over numbered slots, so that a point costs one call per operation of
// the body.
//
//===----------------------------------------------------------------------===//
#include "ScalarFunctions.h"

#include "braid/Base/StatusMacros.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/Support/MathExtras.h"

#include <optional>

using namespace mlir;

namespace braid::interp {

namespace {
/// The value of an index expression at a point. Maps of linalg have no symbols.
int64_t evaluateIndex(AffineExpr expr, ArrayRef<int64_t> point) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return point[dim.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluateIndex(binary.getLHS(), point), rhs = evaluateIndex(binary.getRHS(), point);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::Mod:
    return llvm::mod(lhs, rhs);
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(lhs, rhs);
  default:
    return llvm::divideCeilSigned(lhs, rhs);
  }
}

/// The indexing of one operand.
struct Access {
  AffineMap map;
  Shape shape;

  /// -1 when the index is outside of the operand.
  int64_t offset(ArrayRef<int64_t> point) const {
    int64_t offset = 0;
    for (auto [expr, extent] : llvm::zip_equal(map.getResults(), shape)) {
      int64_t index = evaluateIndex(expr, point);
      if (index < 0 || index >= extent)
        return -1;
      offset = offset * extent + index;
    }
    return offset;
  }
};

class StructuredOp {
public:
  explicit StructuredOp(OpContext &context)
      : context(context), op(cast<linalg::LinalgOp>(context.op)) {}

  Status run() {
    if (!op.hasPureTensorSemantics())
      return Status::error("expects tensors, got memory references");
    for (Status (StructuredOp::*step)() : {&StructuredOp::readMaps, &StructuredOp::findDomain,
                                           &StructuredOp::compileBody, &StructuredOp::iterate})
      RETURN_IF_ERROR((this->*step)());
    for (auto [i, writer] : llvm::enumerate(outputs)) {
      OpOperand *init = op.getDpsInitOperand(i);
      context.set(op->getResult(i),
                  RuntimeValue(std::move(writer).finish(context.tensor(init->get()).shape())));
    }
    return {};
  }

private:
  Status readMaps() {
    for (OpOperand &operand : op->getOpOperands()) {
      const Tensor &tensor = context.tensor(operand.get());
      accesses.push_back({op.getMatchingIndexingMap(&operand), tensor.shape()});
      if (accesses.back().map.getNumResults() != tensor.rank())
        return Status::error("expects an index for every dimension of " + tensor.typeString());
    }
    for (OpOperand &init : op.getDpsInitsMutable())
      outputs.emplace_back(context.tensor(init.get()));
    return {};
  }

  Status findDomain() {
    domain.assign(op.getNumLoops(), -1);
    for (OpOperand &operand : op->getOpOperands()) {
      const Access &access = accesses[operand.getOperandNumber()];
      for (auto [expr, extent] : llvm::zip_equal(access.map.getResults(), access.shape))
        if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
          int64_t &known = domain[dim.getPosition()];
          if (known >= 0 && known != extent)
            return Status::error("expects loop " + std::to_string(dim.getPosition()) +
                                 " to have one extent, got " + std::to_string(known) + " and " +
                                 std::to_string(extent));
          known = extent;
        }
    }
    for (auto [d, extent] : llvm::enumerate(domain))
      if (extent < 0)
        return Status::error("expects an operand that gives the extent of loop " +
                             std::to_string(d));
    return {};
  }

  /// The slot of a value that the body reads.
  Result<unsigned> slotOf(mlir::Value v) {
    if (auto found = slots.find(v); found != slots.end())
      return found->second;
    // A value from outside of the body is the same at every point.
    auto outer = context.frame.find(v);
    const Tensor *tensor =
        outer == context.frame.end() ? nullptr : std::get_if<Tensor>(&outer->second);
    if (!tensor || tensor->rank() != 0)
      return Status::error("reads a value in its body that is no scalar");
    unsigned slot = newSlot(v);
    values[slot] = elementAt(*tensor, 0);
    return slot;
  }

  unsigned newSlot(mlir::Value v) {
    unsigned slot = slots.try_emplace(v, slots.size()).first->second;
    values.resize(slots.size());
    return slot;
  }

  Status compileBody() {
    Block &body = op->getRegion(0).front();
    for (BlockArgument argument : body.getArguments())
      newSlot(argument);
    for (Operation &inner : body.without_terminator())
      RETURN_IF_ERROR(compile(inner));
    for (mlir::Value v : body.getTerminator()->getOperands()) {
      ASSIGN_OR_RETURN(unsigned slot, slotOf(v));
      yielded.push_back(slot);
    }
    return {};
  }

  Status compile(Operation &inner) {
    if (auto constant = dyn_cast<arith::ConstantOp>(inner)) {
      std::optional<Scalar> value = constantScalar(constant.getValue());
      if (!value)
        return errorAt(&inner, Status::error("expects a number"));
      values[newSlot(constant.getResult())] = *value;
      return {};
    }
    Step step;
    step.op = &inner;
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      step.loop = static_cast<int64_t>(index.getDim());
    } else {
      OperandRange read = inner.getOperands();
      if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
        auto source = context.frame.find(extract.getTensor());
        if (source == context.frame.end())
          return errorAt(&inner, Status::error("expects a tensor from outside of the body"));
        step.extracted = std::get<Tensor>(source->second);
        read = extract.getIndices();
      } else {
        step.fn = scalarFunction(&inner);
        if (!step.fn)
          return errorAt(&inner,
                         Status::error("is an operation that the interpreter does not know"));
      }
      for (mlir::Value v : read) {
        ASSIGN_OR_RETURN(unsigned slot, slotOf(v));
        step.operands.push_back(slot);
      }
    }
    step.result = newSlot(inner.getResult(0));
    steps.push_back(std::move(step));
    return {};
  }

  struct Step {
    Operation *op = nullptr;
    ScalarFn fn;
    std::optional<int64_t> loop;     ///< linalg.index
    std::optional<Tensor> extracted; ///< tensor.extract
    SmallVector<unsigned, 4> operands;
    unsigned result = 0;
  };

  Status execute(const Step &step, ArrayRef<int64_t> point) {
    Scalar result;
    if (step.loop) {
      result.i = point[static_cast<size_t>(*step.loop)];
    } else if (step.extracted) {
      int64_t from = 0;
      for (auto [d, slot] : llvm::enumerate(step.operands)) {
        int64_t index = values[slot].i, extent = step.extracted->dim(d);
        if (index < 0 || index >= extent)
          return errorAt(step.op,
                         Status::error("expects an index from 0 to " + std::to_string(extent - 1) +
                                       " in dimension " + std::to_string(d) + ", got " +
                                       std::to_string(index)));
        from = from * extent + index;
      }
      result = elementAt(*step.extracted, from);
    } else {
      SmallVector<Scalar, 4> in;
      for (unsigned slot : step.operands)
        in.push_back(values[slot]);
      step.fn(in.data(), result);
    }
    values[step.result] = result;
    return {};
  }

  Status iterate() {
    int64_t points = numElements(domain);
    auto numInputs = static_cast<size_t>(op.getNumDpsInputs());
    SmallVector<const Tensor *> inputs;
    for (size_t i = 0; i < numInputs; ++i)
      inputs.push_back(&context.tensor(op->getOperand(i)));
    SmallVector<int64_t> outputOffsets(outputs.size());
    for (int64_t p = 0; p < points; ++p) {
      Shape point = unflatten(p, domain);
      for (size_t i = 0; i < accesses.size(); ++i) {
        int64_t offset = accesses[i].offset(point);
        if (offset < 0)
          return Status::error("indexes operand " + std::to_string(i) + " outside of its extents");
        if (i < numInputs) {
          values[i] = elementAt(*inputs[i], offset);
        } else {
          outputOffsets[i - numInputs] = offset;
          values[i] = outputs[i - numInputs].get(offset);
        }
      }
      for (const Step &step : steps)
        RETURN_IF_ERROR(execute(step, point));
      for (size_t o = 0; o < outputs.size(); ++o)
        outputs[o].set(outputOffsets[o], values[yielded[o]]);
    }
    return {};
  }

  OpContext &context;
  linalg::LinalgOp op;
  std::vector<Access> accesses; ///< per operand
  std::vector<ElementWriter> outputs;
  Shape domain;
  llvm::DenseMap<mlir::Value, unsigned> slots;
  std::vector<Scalar> values; ///< per slot; block arguments come first
  std::vector<Step> steps;
  SmallVector<unsigned> yielded;
};
} // namespace

void populateLinalgEvaluators(EvaluatorTable &table) {
  table.add<linalg::GenericOp>([](OpContext &context) { return StructuredOp(context).run(); });
}

} // namespace braid::interp
