//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ScalarFunctions.h"

#include "braid/Base/StatusMacros.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace braid::interp {

namespace {
unsigned widthOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
}

/// The canonical form of an integer of a given width: sign-extended, but i1 is 0 or 1.
int64_t canonical(uint64_t value, unsigned width) {
  if (width == 1)
    return value & 1;
  if (width == 64)
    return static_cast<int64_t>(value);
  unsigned shift = 64 - width;
  return static_cast<int64_t>(value << shift) >> shift;
}
uint64_t zeroExtended(int64_t value, unsigned width) {
  return width == 64 ? static_cast<uint64_t>(value)
                     : static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
}

/// NaN when either is NaN, and -0 < +0, as IEEE 754-2019 maximum and minimum.
double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
double minimum(double a, double b) { return -maximum(-a, -b); }

/// Makes the function of an operation, which may depend on its attributes and types.
using MakeFn = std::function<ScalarFn(Operation *)>;

/// The functions of arith and math operations by name.
struct ScalarTable {
  llvm::StringMap<MakeFn> functions;

  template <typename Op, typename Make> void add(Make make) {
    functions[Op::getOperationName()] = [make](Operation *op) { return make(cast<Op>(op)); };
  }
  template <typename Op> void addUnary(double (*fn)(double)) {
    add<Op>([fn](Op) -> ScalarFn {
      return [fn](const Scalar *in, Scalar &out) { out.f = fn(in[0].f); };
    });
  }
  template <typename Op> void addBinary(double (*fn)(double, double)) {
    add<Op>([fn](Op) -> ScalarFn {
      return [fn](const Scalar *in, Scalar &out) { out.f = fn(in[0].f, in[1].f); };
    });
  }
  /// On the two's complement representation, truncated to the width of the result.
  template <typename Op> void addInteger(uint64_t (*fn)(uint64_t, uint64_t)) {
    add<Op>([fn](Op op) -> ScalarFn {
      return [fn, width = widthOf(op.getType())](const Scalar *in, Scalar &out) {
        out.i =
            canonical(fn(static_cast<uint64_t>(in[0].i), static_cast<uint64_t>(in[1].i)), width);
      };
    });
  }
  /// `fn` converts an operand, given the widths of the operand and of the result.
  template <typename... Ops>
  void addConversion(void (*fn)(const Scalar &in, Scalar &out, unsigned from, unsigned to)) {
    (add<Ops>([fn](Ops op) -> ScalarFn {
       return [fn, from = widthOf(op.getIn().getType()), to = widthOf(op.getType())](
                  const Scalar *in, Scalar &out) { fn(in[0], out, from, to); };
     }),
     ...);
  }
  ScalarTable();
};

/// A set i1 is -1 when read as signed.
int64_t asSigned(int64_t value, unsigned width) { return width == 1 ? -value : value; }

ScalarTable::ScalarTable() {
  addUnary<math::AbsFOp>(std::fabs);
  addUnary<math::CeilOp>(std::ceil);
  addUnary<math::CosOp>(std::cos);
  addUnary<math::ErfOp>(std::erf);
  addUnary<math::ExpOp>(std::exp);
  addUnary<math::Exp2Op>(std::exp2);
  addUnary<math::ExpM1Op>(std::expm1);
  addUnary<math::FloorOp>(std::floor);
  addUnary<math::LogOp>(std::log);
  addUnary<math::Log2Op>(std::log2);
  addUnary<math::RoundEvenOp>(std::nearbyint);
  addUnary<math::RsqrtOp>([](double x) { return 1 / std::sqrt(x); });
  addUnary<math::SinOp>(std::sin);
  addUnary<math::SqrtOp>(std::sqrt);
  addUnary<math::TanhOp>(std::tanh);
  addBinary<math::CopySignOp>(std::copysign);
  addBinary<math::PowFOp>(std::pow);
  add<math::FmaOp>([](math::FmaOp) -> ScalarFn {
    return [](const Scalar *in, Scalar &out) { out.f = std::fma(in[0].f, in[1].f, in[2].f); };
  });

  addBinary<arith::AddFOp>([](double a, double b) { return a + b; });
  addBinary<arith::SubFOp>([](double a, double b) { return a - b; });
  addBinary<arith::MulFOp>([](double a, double b) { return a * b; });
  addBinary<arith::DivFOp>([](double a, double b) { return a / b; });
  addUnary<arith::NegFOp>([](double x) { return -x; });
  addBinary<arith::MaximumFOp>(maximum);
  addBinary<arith::MinimumFOp>(minimum);
  addBinary<arith::MaxNumFOp>(std::fmax);
  addBinary<arith::MinNumFOp>(std::fmin);
  addInteger<arith::AddIOp>([](uint64_t a, uint64_t b) { return a + b; });
  addInteger<arith::SubIOp>([](uint64_t a, uint64_t b) { return a - b; });
  addInteger<arith::MulIOp>([](uint64_t a, uint64_t b) { return a * b; });
  addInteger<arith::AndIOp>([](uint64_t a, uint64_t b) { return a & b; });
  addInteger<arith::OrIOp>([](uint64_t a, uint64_t b) { return a | b; });
  addInteger<arith::XOrIOp>([](uint64_t a, uint64_t b) { return a ^ b; });
  add<arith::MaxSIOp>([](arith::MaxSIOp) -> ScalarFn {
    return [](const Scalar *in, Scalar &out) { out.i = std::max(in[0].i, in[1].i); };
  });
  add<arith::MinSIOp>([](arith::MinSIOp) -> ScalarFn {
    return [](const Scalar *in, Scalar &out) { out.i = std::min(in[0].i, in[1].i); };
  });
  add<arith::CmpFOp>([](arith::CmpFOp cmp) -> ScalarFn {
    return [predicate = cmp.getPredicate()](const Scalar *in, Scalar &out) {
      out.i = arith::applyCmpPredicate(predicate, APFloat(in[0].f), APFloat(in[1].f));
    };
  });
  add<arith::CmpIOp>([](arith::CmpIOp cmp) -> ScalarFn {
    return [predicate = cmp.getPredicate(),
            width = widthOf(cmp.getLhs().getType())](const Scalar *in, Scalar &out) {
      auto bits = [&](const Scalar &value) {
        return APInt(width, static_cast<uint64_t>(value.i), /*isSigned=*/true,
                     /*implicitTrunc=*/true);
      };
      out.i = arith::applyCmpPredicate(predicate, bits(in[0]), bits(in[1]));
    };
  });
  add<arith::SelectOp>([](arith::SelectOp) -> ScalarFn {
    return [](const Scalar *in, Scalar &out) { out = in[0].i ? in[1] : in[2]; };
  });

  // Values stay in f64 through a change of precision; rounding to storage is an option of the
  // interpreter.
  addConversion<arith::ExtFOp, arith::TruncFOp>(
      [](const Scalar &in, Scalar &out, unsigned, unsigned) { out.f = in.f; });
  addConversion<arith::ExtSIOp, arith::IndexCastOp, arith::TruncIOp>(
      [](const Scalar &in, Scalar &out, unsigned from, unsigned to) {
        out.i = canonical(static_cast<uint64_t>(asSigned(in.i, from)), to);
      });
  addConversion<arith::ExtUIOp, arith::IndexCastUIOp>(
      [](const Scalar &in, Scalar &out, unsigned from, unsigned to) {
        out.i = canonical(zeroExtended(in.i, from), to);
      });
  addConversion<arith::SIToFPOp>([](const Scalar &in, Scalar &out, unsigned from, unsigned) {
    out.f = static_cast<double>(asSigned(in.i, from));
  });
  addConversion<arith::UIToFPOp>([](const Scalar &in, Scalar &out, unsigned from, unsigned) {
    out.f = static_cast<double>(zeroExtended(in.i, from));
  });
  addConversion<arith::FPToSIOp>([](const Scalar &in, Scalar &out, unsigned, unsigned to) {
    // Out of range is poison in MLIR; zero keeps it from being undefined here.
    bool fits = std::fabs(in.f) < 9.2e18;
    out.i = canonical(fits ? static_cast<uint64_t>(static_cast<int64_t>(in.f)) : 0, to);
  });
}

const ScalarTable &scalarTable() {
  static const ScalarTable table;
  return table;
}
} // namespace

ScalarFn scalarFunction(Operation *op) {
  auto found = scalarTable().functions.find(op->getName().getStringRef());
  return found == scalarTable().functions.end() ? ScalarFn() : found->second(op);
}

std::optional<Scalar> constantScalar(Attribute value) {
  if (auto real = dyn_cast<FloatAttr>(value))
    return Scalar{real.getValueAsDouble(), 0};
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return Scalar{0, integer.getType().isInteger(1) ? int64_t(integer.getValue().getZExtValue())
                                                    : integer.getValue().getSExtValue()};
  return std::nullopt;
}

Scalar elementAt(const Tensor &tensor, int64_t index) {
  return tensor.isFloat() ? Scalar{tensor.floats()[index], 0} : Scalar{0, tensor.ints()[index]};
}

ElementWriter::ElementWriter(DType type, int64_t count) : type(type), floating(isFloat(type)) {
  if (floating)
    floats.resize(static_cast<size_t>(count));
  else
    ints.resize(static_cast<size_t>(count));
}

ElementWriter::ElementWriter(const Tensor &init) : type(init.dtype()), floating(init.isFloat()) {
  if (floating)
    floats.assign(init.floats(), init.floats() + init.numElements());
  else
    ints.assign(init.ints(), init.ints() + init.numElements());
}

Tensor ElementWriter::finish(Shape shape) && {
  return floating ? Tensor::ofFloats(type, std::move(shape), std::move(floats))
                  : Tensor::ofInts(type, std::move(shape), std::move(ints));
}

namespace {
/// An arith or math operation on scalars or, element by element, on tensors of equal shape.
Status evaluateElementwise(OpContext &context) {
  Operation *op = context.op;
  ScalarFn fn = scalarFunction(op);
  ASSIGN_OR_RETURN(DType dtype, dtypeOf(op->getResult(0).getType()));
  SmallVector<const Tensor *> operands;
  const Tensor *widest = nullptr;
  for (mlir::Value operand : op->getOperands()) {
    operands.push_back(&context.tensor(operand));
    // The condition of arith.select may be one scalar for a whole tensor.
    if (!widest || operands.back()->rank() > widest->rank())
      widest = operands.back();
  }
  ElementWriter writer(dtype, widest->numElements());
  SmallVector<Scalar> in(operands.size());
  for (int64_t i = 0, count = widest->numElements(); i < count; ++i) {
    for (auto [scalar, tensor] : llvm::zip_equal(in, operands))
      scalar = elementAt(*tensor, tensor->rank() == 0 ? 0 : i);
    Scalar out;
    fn(in.data(), out);
    writer.set(i, out);
  }
  context.set(op->getResult(0), RuntimeValue(std::move(writer).finish(widest->shape())));
  return {};
}

Status evaluateConstant(OpContext &context, arith::ConstantOp op) {
  if (auto elements = dyn_cast<ElementsAttr>(op.getValue()))
    return context.set(op.getResult(), fromAttribute(elements));
  ASSIGN_OR_RETURN(DType dtype, dtypeOf(op.getType()));
  std::optional<Scalar> value = constantScalar(op.getValue());
  if (!value)
    return Status::error("expects a number or dense elements");
  ElementWriter writer(dtype, 1);
  writer.set(0, *value);
  context.set(op.getResult(), RuntimeValue(std::move(writer).finish({})));
  return {};
}
} // namespace

void populateScalarEvaluators(EvaluatorTable &table) {
  table.add<arith::ConstantOp>(evaluateConstant);
  for (StringRef name : scalarTable().functions.keys())
    table.add(name, evaluateElementwise);
}

} // namespace braid::interp
