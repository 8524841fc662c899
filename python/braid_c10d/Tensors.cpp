//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Tensors.h"

namespace braid::c10d_backend {

using runtime::DType;
using runtime::ReduceKind;
using Op = c10d::ReduceOp;

namespace {

/// The types that are reduced. A u8 is added as an i8, with the same bits; for maxima and minima
/// its top bit is turned, which keeps the order. A bool is 0 or 1.
struct Type {
  at::ScalarType type;
  DType dtype;
  const char *name;
};
constexpr Type kTypes[] = {
    {at::kFloat, DType::f32, "f32"},      {at::kHalf, DType::f16, "f16"},
    {at::kBFloat16, DType::bf16, "bf16"}, {at::kDouble, DType::f64, "f64"},
    {at::kInt, DType::i32, "i32"},        {at::kLong, DType::i64, "i64"},
    {at::kChar, DType::i8, "i8"},         {at::kByte, DType::i8, "u8"},
    {at::kBool, DType::i8, "bool"},
};

const Type *find(at::ScalarType type) {
  for (const Type &one : kTypes)
    if (one.type == type)
      return &one;
  return nullptr;
}

const char *nameOf(Op::RedOpType op) {
  switch (op) {
  case Op::SUM:
    return "sum";
  case Op::AVG:
    return "avg";
  case Op::PRODUCT:
    return "product";
  case Op::MIN:
    return "min";
  case Op::MAX:
    return "max";
  case Op::BAND:
    return "band";
  case Op::BOR:
    return "bor";
  case Op::BXOR:
    return "bxor";
  case Op::PREMUL_SUM:
    return "premul_sum";
  default:
    return "unknown reduction";
  }
}

} // namespace

std::string nameOf(at::ScalarType type) {
  const Type *known = find(type);
  return known ? known->name : c10::toString(type);
}

std::string describe(const std::vector<at::Tensor> &tensors) {
  constexpr size_t kNamed = 8;
  std::string text;
  for (size_t i = 0; i < tensors.size() && i < kNamed; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(tensors[i].numel()) + " " +
            nameOf(tensors[i].scalar_type());
  if (tensors.size() <= kNamed)
    return text;
  uint64_t hash = 14695981039346656037u;
  for (const at::Tensor &tensor : tensors)
    for (const int64_t part : {tensor.numel(), static_cast<int64_t>(tensor.scalar_type())})
      hash = (hash ^ static_cast<uint64_t>(part)) * 1099511628211u;
  return text + ", and " + std::to_string(tensors.size() - kNamed) + " more, hash " +
         std::to_string(hash);
}

void check(const char *operation, const at::Tensor &tensor) {
  TORCH_CHECK_VALUE(tensor.defined(), "braid: ", operation, " expects a tensor, got none");
  TORCH_CHECK_VALUE(tensor.device().is_cpu(), "braid: ", operation,
                    " expects tensors on the CPU, got one on ", tensor.device());
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided && !tensor.is_quantized(), "braid: ", operation,
                    " expects dense tensors, got one of layout ", tensor.layout(), " and type ",
                    tensor.scalar_type());
}

void check(const char *operation, const std::vector<at::Tensor> &tensors) {
  for (const at::Tensor &tensor : tensors)
    check(operation, tensor);
}

Reduction reductionOf(const char *operation, const c10d::ReduceOp &op, at::ScalarType type) {
  const Op::RedOpType kind = op;
  Reduction reduction;
  reduction.name = nameOf(kind);
  auto refuse = [&](bool isFine, const std::string &expected) {
    TORCH_CHECK_TYPE(isFine, "braid: ", operation, " (", reduction.name, ") of ", nameOf(type),
                     " is not supported; expects ", expected);
  };
  const std::string all = "f32, f16, bf16, f64, i32, i64, i8, u8";
  switch (kind) {
  case Op::SUM:
    refuse(find(type) && type != at::kBool, all);
    break;
  case Op::AVG:
    refuse(find(type) && at::isFloatingType(type), "f32, f16, bf16, f64");
    reduction.isAverage = true;
    break;
  case Op::MAX:
    refuse(find(type), all + ", bool");
    reduction.kind = ReduceKind::max;
    break;
  case Op::MIN:
    refuse(find(type), all + ", bool");
    reduction.kind = ReduceKind::min;
    break;
  case Op::PRODUCT:
    refuse(find(type) && type != at::kBool, all);
    reduction.gathered = kind;
    break;
  case Op::BAND:
  case Op::BOR:
  case Op::BXOR:
    refuse(find(type) && at::isIntegralType(type, true), "i32, i64, i8, u8, bool");
    reduction.gathered = kind;
    break;
  default:
    TORCH_CHECK_VALUE(false, "braid: ", operation, " has no reduction '", reduction.name,
                      "'; expects sum, avg, product, min, max, band, bor or bxor");
  }
  return reduction;
}

DType Operands::type(at::ScalarType type) const { return find(type)->dtype; }

bool Operands::isBiased(at::ScalarType type) const {
  return type == at::kByte && reduction.kind != ReduceKind::sum;
}

at::Tensor packed(const at::Tensor &tensor) { return tensor.detach().contiguous(); }

at::Tensor Operands::input(const at::Tensor &tensor) {
  at::Tensor memory = packed(tensor);
  return isBiased(tensor.scalar_type()) ? memory.bitwise_xor(0x80) : memory;
}

at::Tensor Operands::output(const at::Tensor &tensor) {
  Output output{tensor.detach(), {}, false};
  output.isOwn = tensor.is_contiguous() && !isBiased(tensor.scalar_type());
  output.memory = output.isOwn ? output.tensor
                               : at::empty(tensor.sizes(), tensor.options().requires_grad(false));
  outputs.push_back(output);
  return output.memory;
}

template <typename T, typename Wide> static void divide(const at::Tensor &tensor, int64_t by) {
  T *values = tensor.data_ptr<T>();
  const auto divisor = static_cast<Wide>(by);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    values[i] = static_cast<T>(static_cast<Wide>(values[i]) / divisor);
}

void Operands::finish() const {
  for (const Output &output : outputs) {
    const at::ScalarType type = output.tensor.scalar_type();
    if (reduction.isAverage) {
      if (type == at::kFloat)
        divide<float, float>(output.memory, ranks);
      else if (type == at::kDouble)
        divide<double, double>(output.memory, ranks);
      else if (type == at::kHalf)
        divide<at::Half, float>(output.memory, ranks);
      else
        divide<at::BFloat16, float>(output.memory, ranks);
    }
    if (isBiased(type))
      output.memory.bitwise_xor_(0x80);
    if (!output.isOwn)
      output.tensor.copy_(output.memory);
  }
}

void combine(const at::Tensor &values, c10d::ReduceOp::RedOpType op, const at::Tensor &result) {
  at::Tensor combined = values[0].clone();
  for (int64_t rank = 1; rank < values.size(0); ++rank) {
    if (op == Op::PRODUCT)
      combined.mul_(values[rank]);
    else if (op == Op::BAND)
      combined.bitwise_and_(values[rank]);
    else if (op == Op::BOR)
      combined.bitwise_or_(values[rank]);
    else
      combined.bitwise_xor_(values[rank]);
  }
  result.detach().copy_(combined.view(result.sizes()));
}

at::Tensor Targets::add(const at::Tensor &tensor) {
  if (tensor.is_contiguous())
    return tensor.detach();
  at::Tensor memory = at::empty(tensor.sizes(), tensor.options().requires_grad(false));
  copies.emplace_back(tensor.detach(), memory);
  return memory;
}

void Targets::finish() const {
  for (const auto &[tensor, memory] : copies)
    tensor.copy_(memory);
}

} // namespace braid::c10d_backend
