//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Calls of library kernels: which operands they have, and whether these are what the kernel's
// descriptor expects.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/LibraryKernels.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cmath>

namespace braid::runtime {

size_t LibraryKernel::numOptional() const {
  return static_cast<size_t>(std::count_if(operands.begin(), operands.end(),
                                           [](const auto &operand) { return operand.optional; }));
}

size_t LibraryKernel::firstOutput() const {
  size_t i = 0;
  while (operands[i].access == Access::read)
    ++i;
  return i;
}

size_t LibraryKernel::numOutputs(uint32_t optional) const {
  const std::vector<size_t> operands = given(optional);
  return static_cast<size_t>(std::count_if(operands.begin(), operands.end(),
                                           [&](size_t operand) { return writes(operand); }));
}

bool LibraryKernel::reads(size_t operand, const std::vector<int64_t> &integers) const {
  const Access access = operands[operand].access;
  return access == Access::read ||
         (access == Access::inout && (!readsOutputs || integers[*readsOutputs] != 0));
}

std::vector<size_t> LibraryKernel::given(uint32_t optional) const {
  std::vector<size_t> result;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].optional || (optional & 1) != 0)
      result.push_back(i);
    if (operands[i].optional)
      optional >>= 1;
  }
  return result;
}

static Status checkElements(const LibraryCall &call, size_t i) {
  const LibraryOperand &operand = call.kernel->operands[i];
  auto typeOf = [&](size_t from) {
    while (!call.has(from))
      ++from;
    return call[from].dtype;
  };
  switch (operand.elements) {
  case Elements::any:
    return {};
  case Elements::floats:
  case Elements::encoded:
    return expectFloat(operand.name, call[i]);
  case Elements::floatsOrI8:
    return call[i].dtype == DType::i8
               ? Status()
               : expectFloat(operand.name, call[i], "a floating-point type or i8");
  case Elements::f32:
    return expectType(operand.name, call[i], DType::f32);
  case Elements::bytes:
    return expectType(operand.name, call[i], DType::i8);
  case Elements::ids:
    return expectIntegers(operand.name, call[i]);
  case Elements::asFirst:
    return expectType(operand.name, call[i], typeOf(0));
  case Elements::likeOutput:
    return expectType(operand.name, call[i], typeOf(call.kernel->firstOutput()));
  }
  return {};
}

Status LibraryCall::check() const {
  auto expectCount = [](const char *what, size_t count, const std::vector<const char *> &names,
                        bool list) {
    if (list ? count >= names.size() : count == names.size())
      return Status();
    std::string all;
    for (const char *name : names)
      all += (all.empty() ? " (" : ", ") + std::string(name);
    return Status::error("expects ", list ? "at least " : "", names.size(), " ", what,
                         all.empty() ? "" : all + ")", ", got ", count);
  };
  RETURN_IF_ERROR(
      firstOf({expectCount("integers", integers.size(), kernel->integers, false),
               expectCount("numbers", numbers.size(), kernel->numbers, kernel->listOfNumbers)}));
  RETURN_IF_ERROR(kernel->check(*this));
  for (size_t i = 0; i < operands.size(); ++i)
    if (has(i))
      RETURN_IF_ERROR(checkElements(*this, i));
  for (size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i]))
      return Status::error("expects finite ",
                           kernel->numbers[std::min(i, kernel->numbers.size() - 1)], ", got ",
                           numbers[i]);
  return {};
}

int64_t LibraryCall::rows() const {
  const std::vector<int64_t> &shape = operands[kernel->firstOutput()]->shape;
  int64_t rows = 1;
  for (size_t d = 0; d + kernel->rowRank < shape.size(); ++d)
    rows *= shape[d];
  return rows;
}

//===----------------------------------------------------------------------===//
// Single operands
//===----------------------------------------------------------------------===//

bool OperandType::isFloat() const {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f64;
}

bool OperandType::isFlattenable(size_t count) const {
  int64_t stride = 0; // of the dimension inside, times its size; 0: none yet
  for (size_t d = count; d-- > 0;) {
    if (shape[d] == 1)
      continue;
    if (stride != 0 && strides[d] != stride)
      return false;
    stride = strides[d] * shape[d];
  }
  return true;
}

bool OperandType::isContiguous() const {
  size_t last = rank();
  while (last > 0 && shape[last - 1] == 1)
    --last;
  return last == 0 || (strides[last - 1] == 1 && isFlattenable(last));
}

Status expectShape(const std::string &role, const OperandType &view,
                   const std::vector<int64_t> &shape) {
  if (view.shape == shape)
    return {};
  return Status::error(role, ": expects shape ", shapeString(shape), ", got ",
                       shapeString(view.shape));
}

Status expectRank(const std::string &role, const OperandType &view, size_t rank) {
  if (view.rank() == rank)
    return {};
  return Status::error(role, ": expects ", rank, " dimensions, got shape ",
                       shapeString(view.shape));
}

Status expectType(const std::string &role, const OperandType &view, DType type) {
  if (view.dtype == type)
    return {};
  return Status::error(role, ": expects ", name(type), ", got ", name(view.dtype));
}

Status expectFloat(const std::string &role, const OperandType &view, const char *what) {
  if (view.isFloat())
    return {};
  return Status::error(role, ": expects ", what, ", got ", name(view.dtype));
}

Status expectIntegers(const std::string &role, const OperandType &view) {
  if (view.dtype == DType::i32 || view.dtype == DType::i64)
    return {};
  return Status::error(role, ": expects i32 or i64, got ", name(view.dtype));
}

Status expectShardOf(const OperandType &full, const std::string &fullRole, const OperandType &shard,
                     const std::string &shardRole, int64_t dim, int64_t shards) {
  const auto d = static_cast<size_t>(dim);
  if (dim < 0 || d >= shard.rank())
    return Status::error("expects a dimension below ", shard.rank(), ", got ", dim);
  std::vector<int64_t> shape = shard.shape;
  std::optional<int64_t> joined = checkedMul(shape[d], shards);
  shape[d] = joined.value_or(0);
  if (!joined || full.shape != shape)
    return Status::error(fullRole, ": expects ", shards, " times ", shardRole, " of shape ",
                         shapeString(shard.shape), " along dimension ", dim, ", got ",
                         shapeString(full.shape));
  return {};
}

Status firstOf(std::initializer_list<Status> checks) {
  for (const Status &check : checks)
    RETURN_IF_ERROR(check);
  return {};
}

} // namespace braid::runtime
