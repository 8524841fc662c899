//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ScalarFunctions.h"

#include "braid/Base/StatusMacros.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

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

template <typename Fn> ScalarFn unaryFloat(Fn fn) {
  return [fn](const Scalar *in, Scalar &out) { out.f = fn(in[0].f); };
}
template <typename Fn> ScalarFn binaryFloat(Fn fn) {
  return [fn](const Scalar *in, Scalar &out) { out.f = fn(in[0].f, in[1].f); };
}
/// Computes on the two's complement representation, truncated to the width of the result.
template <typename Fn> ScalarFn binaryInt(Operation *op, Fn fn) {
  unsigned width = widthOf(op->getResult(0).getType());
  return [fn, width](const Scalar *in, Scalar &out) {
    out.i = canonical(fn(static_cast<uint64_t>(in[0].i), static_cast<uint64_t>(in[1].i)), width);
  };
}
template <typename Fn> ScalarFn binarySigned(Fn fn) {
  return [fn](const Scalar *in, Scalar &out) { out.i = fn(in[0].i, in[1].i); };
}

/// NaN when either is NaN, and -0 < +0, as IEEE 754-2019 maximum and minimum.
double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
double minimum(double a, double b) { return -maximum(-a, -b); }

bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::OEQ:
    return a == b;
  case arith::CmpFPredicate::OGT:
    return a > b;
  case arith::CmpFPredicate::OGE:
    return a >= b;
  case arith::CmpFPredicate::OLT:
    return a < b;
  case arith::CmpFPredicate::OLE:
    return a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::UEQ:
    return unordered || a == b;
  case arith::CmpFPredicate::UGT:
    return unordered || a > b;
  case arith::CmpFPredicate::UGE:
    return unordered || a >= b;
  case arith::CmpFPredicate::ULT:
    return unordered || a < b;
  case arith::CmpFPredicate::ULE:
    return unordered || a <= b;
  case arith::CmpFPredicate::UNE:
    return unordered || a != b;
  }
  return false;
}

bool compareInts(arith::CmpIPredicate predicate, int64_t a, int64_t b, unsigned width) {
  // An i1 that is set is -1 when read as signed.
  if (width == 1) {
    a = -a;
    b = -b;
  }
  uint64_t ua = zeroExtended(a, width), ub = zeroExtended(b, width);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  return false;
}

ScalarFn mathFunction(Operation *op) {
  return TypeSwitch<Operation *, ScalarFn>(op)
      .Case([](math::AbsFOp) { return unaryFloat([](double x) { return std::fabs(x); }); })
      .Case([](math::CeilOp) { return unaryFloat([](double x) { return std::ceil(x); }); })
      .Case([](math::CosOp) { return unaryFloat([](double x) { return std::cos(x); }); })
      .Case([](math::ErfOp) { return unaryFloat([](double x) { return std::erf(x); }); })
      .Case([](math::ExpOp) { return unaryFloat([](double x) { return std::exp(x); }); })
      .Case([](math::Exp2Op) { return unaryFloat([](double x) { return std::exp2(x); }); })
      .Case([](math::ExpM1Op) { return unaryFloat([](double x) { return std::expm1(x); }); })
      .Case([](math::FloorOp) { return unaryFloat([](double x) { return std::floor(x); }); })
      .Case([](math::LogOp) { return unaryFloat([](double x) { return std::log(x); }); })
      .Case([](math::Log2Op) { return unaryFloat([](double x) { return std::log2(x); }); })
      .Case(
          [](math::RoundEvenOp) { return unaryFloat([](double x) { return std::nearbyint(x); }); })
      .Case([](math::RsqrtOp) { return unaryFloat([](double x) { return 1 / std::sqrt(x); }); })
      .Case([](math::SinOp) { return unaryFloat([](double x) { return std::sin(x); }); })
      .Case([](math::SqrtOp) { return unaryFloat([](double x) { return std::sqrt(x); }); })
      .Case([](math::TanhOp) { return unaryFloat([](double x) { return std::tanh(x); }); })
      .Case([](math::CopySignOp) {
        return binaryFloat([](double a, double b) { return std::copysign(a, b); });
      })
      .Case([](math::PowFOp) {
        return binaryFloat([](double a, double b) { return std::pow(a, b); });
      })
      .Case([](math::FmaOp) -> ScalarFn {
        return [](const Scalar *in, Scalar &out) { out.f = std::fma(in[0].f, in[1].f, in[2].f); };
      })
      .Default([](Operation *) { return ScalarFn(); });
}

ScalarFn conversion(Operation *op) {
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return {};
  unsigned from = 0, to = 0;
  if (getElementTypeOrSelf(op->getOperand(0).getType()).isIntOrIndexOrFloat() &&
      getElementTypeOrSelf(op->getResult(0).getType()).isIntOrIndexOrFloat()) {
    from = widthOf(op->getOperand(0).getType());
    to = widthOf(op->getResult(0).getType());
  }
  auto keepFloat = [](const Scalar *in, Scalar &out) { out.f = in[0].f; };
  auto signedInt = [from, to](const Scalar *in, Scalar &out) {
    out.i = canonical(static_cast<uint64_t>(from == 1 ? -in[0].i : in[0].i), to);
  };
  auto unsignedInt = [from, to](const Scalar *in, Scalar &out) {
    out.i = canonical(zeroExtended(in[0].i, from), to);
  };
  return TypeSwitch<Operation *, ScalarFn>(op)
      // Values stay in f64 through a change of precision; rounding to storage is an option of the
      // interpreter.
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return keepFloat; })
      .Case<arith::ExtSIOp, arith::IndexCastOp, arith::TruncIOp>([&](auto) { return signedInt; })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([&](auto) { return unsignedInt; })
      .Case([&](arith::SIToFPOp) -> ScalarFn {
        return [from](const Scalar *in, Scalar &out) {
          out.f = static_cast<double>(from == 1 ? -in[0].i : in[0].i);
        };
      })
      .Case([&](arith::UIToFPOp) -> ScalarFn {
        return [from](const Scalar *in, Scalar &out) {
          out.f = static_cast<double>(zeroExtended(in[0].i, from));
        };
      })
      .Case([&](arith::FPToSIOp) -> ScalarFn {
        return [to](const Scalar *in, Scalar &out) {
          // Out of range is poison in MLIR; zero keeps it from being undefined here.
          bool fits = std::fabs(in[0].f) < 9.2e18;
          out.i = canonical(fits ? static_cast<uint64_t>(static_cast<int64_t>(in[0].f)) : 0, to);
        };
      })
      .Default([](Operation *) { return ScalarFn(); });
}

ScalarFn arithFunction(Operation *op) {
  return TypeSwitch<Operation *, ScalarFn>(op)
      .Case([](arith::AddFOp) { return binaryFloat([](double a, double b) { return a + b; }); })
      .Case([](arith::SubFOp) { return binaryFloat([](double a, double b) { return a - b; }); })
      .Case([](arith::MulFOp) { return binaryFloat([](double a, double b) { return a * b; }); })
      .Case([](arith::DivFOp) { return binaryFloat([](double a, double b) { return a / b; }); })
      .Case([](arith::NegFOp) { return unaryFloat([](double x) { return -x; }); })
      .Case([](arith::MaximumFOp) { return binaryFloat(maximum); })
      .Case([](arith::MinimumFOp) { return binaryFloat(minimum); })
      .Case([](arith::MaxNumFOp) {
        return binaryFloat([](double a, double b) { return std::fmax(a, b); });
      })
      .Case([](arith::MinNumFOp) {
        return binaryFloat([](double a, double b) { return std::fmin(a, b); });
      })
      .Case([&](arith::AddIOp) {
        return binaryInt(op, [](uint64_t a, uint64_t b) { return a + b; });
      })
      .Case([&](arith::SubIOp) {
        return binaryInt(op, [](uint64_t a, uint64_t b) { return a - b; });
      })
      .Case([&](arith::MulIOp) {
        return binaryInt(op, [](uint64_t a, uint64_t b) { return a * b; });
      })
      .Case([&](arith::AndIOp) {
        return binaryInt(op, [](uint64_t a, uint64_t b) { return a & b; });
      })
      .Case(
          [&](arith::OrIOp) { return binaryInt(op, [](uint64_t a, uint64_t b) { return a | b; }); })
      .Case([&](arith::XOrIOp) {
        return binaryInt(op, [](uint64_t a, uint64_t b) { return a ^ b; });
      })
      .Case([](arith::MaxSIOp) {
        return binarySigned([](int64_t a, int64_t b) { return std::max(a, b); });
      })
      .Case([](arith::MinSIOp) {
        return binarySigned([](int64_t a, int64_t b) { return std::min(a, b); });
      })
      .Case([](arith::CmpFOp cmp) -> ScalarFn {
        return [predicate = cmp.getPredicate()](const Scalar *in, Scalar &out) {
          out.i = compareFloats(predicate, in[0].f, in[1].f);
        };
      })
      .Case([](arith::CmpIOp cmp) -> ScalarFn {
        return [predicate = cmp.getPredicate(),
                width = widthOf(cmp.getLhs().getType())](const Scalar *in, Scalar &out) {
          out.i = compareInts(predicate, in[0].i, in[1].i, width);
        };
      })
      .Case([](arith::SelectOp) -> ScalarFn {
        return [](const Scalar *in, Scalar &out) { out = in[0].i ? in[1] : in[2]; };
      })
      .Default([](Operation *) { return ScalarFn(); });
}
} // namespace

ScalarFn scalarFunction(Operation *op) {
  if (ScalarFn fn = arithFunction(op))
    return fn;
  if (ScalarFn fn = conversion(op))
    return fn;
  return mathFunction(op);
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

Status evaluateConstant(OpContext &context) {
  auto op = cast<arith::ConstantOp>(context.op);
  if (auto elements = dyn_cast<ElementsAttr>(op.getValue()))
    return context.set(op.getResult(), fromAttribute(elements));
  ASSIGN_OR_RETURN(DType dtype, dtypeOf(op.getType()));
  if (auto real = dyn_cast<FloatAttr>(op.getValue()))
    context.set(op.getResult(), Tensor::ofFloats(dtype, {}, {real.getValueAsDouble()}));
  else if (auto integer = dyn_cast<IntegerAttr>(op.getValue())) {
    APInt value = integer.getValue();
    context.set(op.getResult(),
                Tensor::ofInts(dtype, {},
                               {value.getBitWidth() == 1 ? int64_t(value.getZExtValue())
                                                         : value.getSExtValue()}));
  } else {
    return Status::error("expects a number or dense elements");
  }
  return {};
}

template <typename... Ops> void addElementwise(EvaluatorTable &table) {
  (table.add<Ops>(evaluateElementwise), ...);
}
} // namespace

void populateScalarEvaluators(EvaluatorTable &table) {
  table.add<arith::ConstantOp>(evaluateConstant);
  addElementwise<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp,
                 arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
                 arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::AndIOp, arith::OrIOp,
                 arith::XOrIOp, arith::MaxSIOp, arith::MinSIOp, arith::CmpFOp, arith::CmpIOp,
                 arith::SelectOp, arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp,
                 arith::TruncIOp, arith::IndexCastOp, arith::IndexCastUIOp, arith::SIToFPOp,
                 arith::UIToFPOp, arith::FPToSIOp>(table);
  addElementwise<math::AbsFOp, math::CeilOp, math::CosOp, math::ErfOp, math::ExpOp, math::Exp2Op,
                 math::ExpM1Op, math::FloorOp, math::LogOp, math::Log2Op, math::RoundEvenOp,
                 math::RsqrtOp, math::SinOp, math::SqrtOp, math::TanhOp, math::CopySignOp,
                 math::PowFOp, math::FmaOp>(table);
}

} // namespace braid::interp
