//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ScalarPrinter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace mlir;
using namespace braid::cuda;

/// Longer expressions are given a name, so that lines stay readable.
static constexpr size_t kLongExpression = 72;

std::string Expression::in(Binding outer) const {
  return binding <= outer ? text : "(" + text + ")";
}
std::string Expression::inTighterThan(Binding outer) const {
  return binding >= outer ? "(" + text + ")" : text;
}

bool Expression::isTrivial() const {
  return binding == Binding::Primary && StringRef(text).find('(') == StringRef::npos;
}

StringRef braid::cuda::typeName(Type type) {
  if (type.isF32())
    return "float";
  if (type.isBF16())
    return "braid::bf16";
  if (type.isF16())
    return "braid::f16";
  if (type.isInteger(1))
    return "bool";
  if (type.isInteger(8))
    return "signed char";
  if (type.isInteger(32))
    return "int";
  if (type.isInteger(64) || type.isIndex())
    return "long long";
  return "";
}

static bool isNarrowFloat(Type type) { return type.isBF16() || type.isF16(); }

/// The shortest decimal that is read back as the same float.
static Expression floatLiteral(float value) {
  if (std::isnan(value))
    return {"braid::nan()"};
  if (std::isinf(value))
    return value > 0 ? Expression{"braid::infinity()"}
                     : Expression{"-braid::infinity()", Binding::Unary};
  char text[32];
  for (int digits = 1; digits <= 9; ++digits) {
    (void)std::snprintf(text, sizeof(text), "%.*g", digits, static_cast<double>(value));
    if (std::strtof(text, nullptr) == value)
      break;
  }
  std::string literal = text;
  if (literal.find_first_of(".e") == std::string::npos)
    literal += ".0";
  return {literal + "f", std::signbit(value) ? Binding::Unary : Binding::Primary};
}

FailureOr<Expression> braid::cuda::printConstant(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value)) {
    Type type = number.getType();
    if (!type.isF32() && !isNarrowFloat(type))
      return failure();
    APFloat wide = number.getValue();
    bool inexact = false;
    (void)wide.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &inexact);
    Expression literal = floatLiteral(wide.convertToFloat());
    if (isNarrowFloat(type))
      return Expression{("braid::narrow<" + typeName(type) + ">(" + literal.text + ")").str()};
    return literal;
  }
  if (auto number = dyn_cast<IntegerAttr>(value)) {
    Type type = number.getType();
    if (type.isInteger(1))
      return Expression{number.getValue().isZero() ? "false" : "true"};
    if (typeName(type).empty())
      return failure();
    int64_t integer = number.getValue().getSExtValue();
    bool wide = type.isIndex() || type.isInteger(64);
    // The least integers have no literal: the positive value would be too large.
    if (integer == (wide ? INT64_MIN : INT32_MIN))
      return Expression{"(-" + std::to_string(-(integer + 1)) + (wide ? "ll" : "") + " - 1)"};
    return Expression{std::to_string(integer) + (wide ? "ll" : ""),
                      integer < 0 ? Binding::Unary : Binding::Primary};
  }
  return failure();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

Names::Names() {
  // Names reserved by C++, CUDA, the skeletons and the functions that kernels call.
  for (const char *taken :
       {"alignas",   "alignof",  "and",      "asm",       "auto",     "bool",      "break",
        "case",      "catch",    "char",     "class",     "const",    "constexpr", "continue",
        "decltype",  "default",  "delete",   "do",        "double",   "else",      "enum",
        "explicit",  "export",   "extern",   "false",     "float",    "for",       "friend",
        "goto",      "if",       "inline",   "int",       "long",     "mutable",   "namespace",
        "new",       "noexcept", "not",      "nullptr",   "operator", "or",        "private",
        "protected", "public",   "register", "return",    "short",    "signed",    "sizeof",
        "static",    "struct",   "switch",   "template",  "this",     "throw",     "true",
        "try",       "typedef",  "typename", "union",     "unsigned", "using",     "virtual",
        "void",      "volatile", "while",    "xor",       "braid",    "main",      "threadIdx",
        "blockIdx",  "blockDim", "gridDim",  "warpSize",  "std",      "Row",       "row",
        "rows",      "c",        "s",        "j",         "abs",      "acosf",     "asinf",
        "atan2f",    "atanf",    "ceilf",    "copysignf", "cosf",     "coshf",     "erff",
        "exp2f",     "expf",     "expm1f",   "fabsf",     "floorf",   "fmaf",      "fmaxf",
        "fminf",     "fmodf",    "log10f",   "log1pf",    "log2f",    "logf",      "powf",
        "rintf",     "roundf",   "rsqrtf",   "sinf",      "sinhf",    "sqrtf",     "tanf",
        "tanhf",     "truncf",   "acos",     "asin",      "atan",     "atan2",     "ceil",
        "copysign",  "cos",      "cosh",     "erf",       "exp",      "exp2",      "expm1",
        "fabs",      "floor",    "fma",      "fmax",      "fmin",     "fmod",      "log",
        "log10",     "log1p",    "log2",     "pow",       "rint",     "round",     "rsqrt",
        "sin",       "sinh",     "sqrt",     "tan",       "tanh",     "trunc",     "cbrt",
        "hypot",     "isnan",    "isinf"})
    used.insert(taken);
}

std::string Names::fresh(StringRef base) {
  base = base.substr(base.rfind('.') + 1);
  std::string name;
  for (char letter : base)
    name += llvm::isAlnum(letter) ? letter : '_';
  // Names that begin with braid_ are the library's.
  if (name.empty() || !llvm::isAlpha(name.front()) || StringRef(name).starts_with("braid_"))
    name = "v" + name;
  // Names with two underscores are reserved.
  for (size_t at; (at = name.find("__")) != std::string::npos;)
    name.erase(at, 1);
  std::string unique = name;
  for (int number = 1; !used.insert(unique).second; ++number)
    unique = name + std::to_string(number);
  return unique;
}

std::string Names::fresh(Location loc, StringRef otherwise) {
  auto named = loc->findInstanceOf<NameLoc>();
  return fresh(named ? named.getName().getValue() : otherwise);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {
struct Call {
  const char *name;
  /// Less accurate, where the operation allows approximate functions.
  const char *fast = nullptr;
};

const llvm::StringMap<Call> &calls() {
  static const llvm::StringMap<Call> table{{"arith.maximumf", {"braid::maximum"}},
                                           {"arith.minimumf", {"braid::minimum"}},
                                           {"arith.maxnumf", {"fmaxf"}},
                                           {"arith.minnumf", {"fminf"}},
                                           {"arith.maxsi", {"braid::most"}},
                                           {"arith.minsi", {"braid::least"}},
                                           {"math.absf", {"fabsf"}},
                                           {"math.ceil", {"ceilf"}},
                                           {"math.copysign", {"copysignf"}},
                                           {"math.cos", {"cosf", "__cosf"}},
                                           {"math.erf", {"erff"}},
                                           {"math.exp", {"expf", "__expf"}},
                                           {"math.exp2", {"exp2f"}},
                                           {"math.expm1", {"expm1f"}},
                                           {"math.floor", {"floorf"}},
                                           {"math.fma", {"fmaf"}},
                                           {"math.log", {"logf", "__logf"}},
                                           {"math.log2", {"log2f"}},
                                           {"math.roundeven", {"rintf"}},
                                           {"math.rsqrt", {"rsqrtf"}},
                                           {"math.sin", {"sinf", "__sinf"}},
                                           {"math.sqrt", {"sqrtf"}},
                                           {"math.tanh", {"tanhf"}},
                                           {"math.trunc", {"truncf"}}};
  return table;
}

bool allows(Operation &op, arith::FastMathFlags flag) {
  auto fast = dyn_cast<arith::ArithFastMathInterface>(&op);
  return fast && bitEnumContainsAll(fast.getFastMathFlagsAttr().getValue(), flag);
}

StringRef unsignedName(Type type) {
  return type.isInteger(64) || type.isIndex() ? "unsigned long long"
         : type.isInteger(8)                  ? "unsigned char"
                                              : "unsigned";
}

/// A constant divisor for braid::divide. The compiler multiplies by powers of two itself.
bool isPlainDivisor(Value divisor) {
  FloatAttr value;
  if (!divisor.getType().isF32() || !matchPattern(divisor, m_Constant(&value)))
    return false;
  APFloat number = value.getValue();
  int exponent = ilogb(number);
  return number.isFiniteNonZero() && exponent > -60 && exponent < 60 &&
         !abs(number).bitwiseIsEqual(
             scalbn(APFloat(APFloat::IEEEsingle(), 1), exponent, APFloat::rmNearestTiesToEven));
}

Expression infix(ArrayRef<Expression> operands, StringRef sign, Binding binding) {
  // The right operand of an operator that groups to the left must bind tighter.
  return {operands[0].in(binding) + " " + sign.str() + " " + operands[1].inTighterThan(binding),
          binding};
}

Expression cast(StringRef type, const Expression &operand) {
  // A type of several words needs the other notation.
  if (type.contains(' '))
    return {"(" + type.str() + ")" + operand.in(Binding::Unary), Binding::Unary};
  return {type.str() + "(" + operand.text + ")"};
}

/// Integers wrap around in MLIR, where the overflow of a signed one has no meaning in C++.
Expression wrapping(Type type, ArrayRef<Expression> operands, StringRef sign, Binding binding) {
  StringRef bits = unsignedName(type);
  return cast(typeName(type),
              infix({cast(bits, operands[0]), cast(bits, operands[1])}, sign, binding));
}
} // namespace

LogicalResult ScalarPrinter::printRegion(linalg::GenericOp generic, ArrayRef<Expression> arguments,
                                         function_ref<Expression(int64_t)> index,
                                         Operation *skipped) {
  values.clear();
  for (auto [argument, expression] : llvm::zip_equal(generic.getBody()->getArguments(), arguments))
    values[argument] = expression;
  for (Operation &op : generic.getBody()->without_terminator()) {
    if (&op == skipped || op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (auto at = dyn_cast<linalg::IndexOp>(op)) {
      values[at.getResult()] = index(static_cast<int64_t>(at.getDim()));
      continue;
    }
    if (op.getNumResults() != 1 || typeName(op.getResult(0).getType()).empty())
      return op.emitOpError("of type ")
             << (op.getNumResults() ? op.getResult(0).getType() : NoneType::get(op.getContext()))
             << " has no form in CUDA";
    FailureOr<Expression> printed = print(op);
    if (failed(printed))
      return failure();
    Value result = op.getResult(0);
    bool again = !result.hasOneUse() && !printed->isTrivial();
    if (again || printed->text.size() > kLongExpression)
      printed = declare(result.getType(), *printed, names.fresh(op.getLoc(), "t"));
    values[result] = *printed;
  }
  return success();
}

FailureOr<Expression> ScalarPrinter::get(Value value) {
  auto known = values.find(value);
  if (known != values.end())
    return known->second;
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return emitError(value.getLoc(), "expects a value of the region or a constant");
  FailureOr<Expression> printed = printConstant(constant);
  if (failed(printed))
    return emitError(value.getLoc(), "constant of type ")
           << value.getType() << " has no form in CUDA";
  return printed;
}

Expression ScalarPrinter::declare(Type type, const Expression &expression,
                                  const std::string &name) {
  os << indent << "const " << typeName(type) << " " << name << " = " << expression.text << ";\n";
  return {name};
}

FailureOr<Expression> ScalarPrinter::print(Operation &op) {
  SmallVector<Expression> operands;
  for (Value operand : op.getOperands()) {
    FailureOr<Expression> expression = get(operand);
    if (failed(expression))
      return failure();
    operands.push_back(std::move(*expression));
  }
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return Expression{operands[0].in(Binding::Or) + " ? " + operands[1].in(Binding::Or) + " : " +
                          operands[2].in(Binding::Or),
                      Binding::Conditional};
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp,
          arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::IndexCastOp,
          arith::IndexCastUIOp>(op))
    return printCast(op, operands.front());

  // Arithmetic on a storage type is done in float and rounded.
  for (auto [value, operand] : llvm::zip_equal(op.getOperands(), operands))
    if (isNarrowFloat(value.getType()))
      operand = {"braid::widen(" + operand.text + ")"};
  if (isa<arith::CmpFOp, arith::CmpIOp>(op))
    return printCompare(op, operands);
  FailureOr<Expression> printed = printArithmetic(op, operands);
  Type type = op.getResult(0).getType();
  if (succeeded(printed) && isNarrowFloat(type))
    return cast(("braid::narrow<" + typeName(type) + ">").str(), *printed);
  return printed;
}

FailureOr<Expression> ScalarPrinter::printArithmetic(Operation &op, ArrayRef<Expression> operands) {
  Type type = op.getResult(0).getType();
  // The compiler contracts a * b + c, unless both are calls.
  bool contract = allows(op, arith::FastMathFlags::contract);
  auto exactly = [&](const char *intrinsic) {
    return Expression{std::string(intrinsic) + "(" + operands[0].text + ", " + operands[1].text +
                      ")"};
  };
  if (isa<arith::AddFOp>(op))
    return contract ? infix(operands, "+", Binding::Sum) : exactly("__fadd_rn");
  if (isa<arith::SubFOp>(op))
    return contract ? infix(operands, "-", Binding::Sum) : exactly("__fsub_rn");
  if (isa<arith::MulFOp>(op))
    return contract ? infix(operands, "*", Binding::Product) : exactly("__fmul_rn");
  if (auto division = dyn_cast<arith::DivFOp>(op))
    return allows(op, arith::FastMathFlags::arcp) ? exactly("__fdividef")
           : isPlainDivisor(division.getRhs())    ? exactly("braid::divide")
                                                  : infix(operands, "/", Binding::Product);
  if (isa<arith::NegFOp>(op))
    return Expression{"-" + operands[0].in(Binding::Primary), Binding::Unary};

  if (type.isInteger(1) && isa<arith::AndIOp>(op))
    return infix(operands, "&&", Binding::LogicalAnd);
  if (type.isInteger(1) && isa<arith::OrIOp>(op))
    return infix(operands, "||", Binding::LogicalOr);
  if (type.isInteger(1) && isa<arith::XOrIOp>(op))
    return infix(operands, "!=", Binding::Equality);
  if (isa<arith::AndIOp>(op))
    return infix(operands, "&", Binding::And);
  if (isa<arith::OrIOp>(op))
    return infix(operands, "|", Binding::Or);
  if (isa<arith::XOrIOp>(op))
    return infix(operands, "^", Binding::Xor);
  if (!type.isInteger(1)) {
    if (isa<arith::AddIOp>(op))
      return wrapping(type, operands, "+", Binding::Sum);
    if (isa<arith::SubIOp>(op))
      return wrapping(type, operands, "-", Binding::Sum);
    if (isa<arith::MulIOp>(op))
      return wrapping(type, operands, "*", Binding::Product);
  }
  return printCall(op, operands);
}

FailureOr<Expression> ScalarPrinter::printCast(Operation &op, const Expression &operand) {
  Type from = op.getOperand(0).getType(), to = op.getResult(0).getType();
  if (typeName(from).empty())
    return op.emitOpError("from ") << from << " has no form in CUDA";
  auto rounded = [&](const Expression &wide) {
    return isNarrowFloat(to) ? cast(("braid::narrow<" + typeName(to) + ">").str(), wide) : wide;
  };
  Expression wide = isNarrowFloat(from) ? cast("braid::widen", operand) : operand;
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return rounded(wide);
  if (isa<arith::SIToFPOp>(op))
    // An i1 that is set is -1.
    return rounded(from.isInteger(1) ? Expression{"-" + cast("float", operand).text, Binding::Unary}
                                     : cast("float", operand));
  if (isa<arith::UIToFPOp>(op))
    return rounded(cast("float", cast(unsignedName(from), operand)));
  if (isa<arith::FPToSIOp>(op)) {
    if (to.isInteger(1))
      return op.emitOpError("to i1 has no form in CUDA");
    return cast(typeName(to), wide);
  }
  if (to.isInteger(1))
    return Expression{"(" + operand.in(Binding::And) + " & 1) != 0", Binding::Equality};
  if (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op) && !from.isInteger(1))
    return cast(typeName(to), cast(unsignedName(from), operand));
  Expression signedValue =
      from.isInteger(1) && !isa<arith::ExtUIOp, arith::IndexCastUIOp>(op)
          ? Expression{"-" + cast(typeName(to), operand).in(Binding::Primary), Binding::Unary}
          : cast(typeName(to), operand);
  return signedValue;
}

FailureOr<Expression> ScalarPrinter::printCompare(Operation &op, ArrayRef<Expression> operands) {
  auto relation = [&](StringRef sign) {
    return infix(operands, sign,
                 sign == "==" || sign == "!=" ? Binding::Equality : Binding::Relation);
  };
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    // In the order of arith::CmpFPredicate.
    struct Form {
      const char *text; ///< a sign, a function of two operands or a constant
      bool negated = false;
    };
    constexpr const char *kOrdered = "braid::ordered", *kUnequal = "braid::less_or_greater";
    static const Form kForms[] = {
        {"false"},   {"=="},       {">"},       {">="},           {"<"},
        {"<="},      {kUnequal},   {kOrdered},  {kUnequal, true}, {"<=", true},
        {"<", true}, {">=", true}, {">", true}, {"!="},           {kOrdered, true},
        {"true"}};
    const Form &form = kForms[static_cast<size_t>(compare.getPredicate())];
    const StringRef text = form.text;
    if (text == "false" || text == "true")
      return Expression{text.str()};
    if (!text.starts_with("braid::"))
      return form.negated ? Expression{"!(" + relation(text).text + ")", Binding::Unary}
                          : relation(text);
    std::string call = (text + "(" + operands[0].text + ", " + operands[1].text + ")").str();
    return form.negated ? Expression{"!" + call, Binding::Unary} : Expression{call};
  }

  auto compare = cast<arith::CmpIOp>(op);
  Type type = compare.getLhs().getType();
  static const char *const kSigns[] = {"==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">="};
  auto predicate = static_cast<unsigned>(compare.getPredicate());
  bool isUnsigned = predicate > static_cast<unsigned>(arith::CmpIPredicate::sge);
  if (type.isInteger(1) && predicate > static_cast<unsigned>(arith::CmpIPredicate::ne))
    return op.emitOpError("of i1 but for equality has no form in CUDA");
  if (!isUnsigned)
    return relation(kSigns[predicate]);
  StringRef bits = unsignedName(type);
  return infix({cast(bits, operands[0]), cast(bits, operands[1])}, kSigns[predicate],
               Binding::Relation);
}

FailureOr<Expression> ScalarPrinter::printCall(Operation &op, ArrayRef<Expression> operands) {
  auto found = calls().find(op.getName().getStringRef());
  Type type = op.getResult(0).getType();
  if (found == calls().end() || type.isInteger(1))
    return op.emitOpError("on ") << type << " has no form in CUDA";
  const Call &call = found->second;
  Expression printed{call.fast && allows(op, arith::FastMathFlags::afn) ? call.fast : call.name};
  printed.text += "(";
  for (auto [i, operand] : llvm::enumerate(operands))
    printed.text += (i ? ", " : "") + operand.text;
  printed.text += ")";
  return printed;
}
