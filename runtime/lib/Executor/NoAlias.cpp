//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "NoAlias.h"
#include "braid/Program/Program.h"

#include <algorithm>

namespace braid::runtime {

namespace {

namespace fb = braid::program;

/// One dimension, in bytes.
struct Extent {
  int64_t stride, size;
};

std::vector<Extent> extentsOf(const Tensor &tensor) {
  std::vector<Extent> extents;
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.shape[d] > 1)
      extents.push_back({tensor.strides[d] * byteSize(tensor.dtype), tensor.shape[d]});
  return extents;
}

/// Bytes from the first to the last one, over the dimensions whose stride is no multiple of
/// `period`.
int64_t spanWithin(const std::vector<Extent> &extents, DType dtype, int64_t period) {
  int64_t span = byteSize(dtype);
  for (const Extent &extent : extents)
    if (period == 0 || extent.stride % period != 0)
      span += extent.stride * (extent.size - 1);
  return span;
}

/// An operand, with its name in messages.
struct Operand {
  std::string role;
  Tensor tensor;
};

/// `inPlace` holds the pairs of a read and a written operand that may be the same memory.
Status verifyOutputs(const std::vector<Operand> &operands, size_t numInputs,
                     const std::vector<uint32_t> &inPlace) {
  auto mayBeSame = [&](size_t input, size_t output) {
    for (size_t p = 0; p + 1 < inPlace.size(); p += 2)
      if (inPlace[p] == input && inPlace[p + 1] == output)
        return isSameMemory(operands[input].tensor, operands[output].tensor);
    return false;
  };
  for (size_t output = numInputs; output < operands.size(); ++output)
    for (size_t other = 0; other < output; ++other)
      if (!mayBeSame(other, output) && mayOverlap(operands[output].tensor, operands[other].tensor))
        return Status::error("expects ", operands[output].role, " not to overlap ",
                             operands[other].role);
  return {};
}

} // namespace

bool isSameMemory(const Tensor &a, const Tensor &b) {
  return a.data == b.data && a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
}

bool mayOverlap(const Tensor &a, const Tensor &b) {
  std::vector<Extent> ofA = extentsOf(a), ofB = extentsOf(b);
  const auto beginA = reinterpret_cast<intptr_t>(a.data);
  const auto beginB = reinterpret_cast<intptr_t>(b.data);
  if (beginA + spanWithin(ofA, a.dtype, 0) <= beginB ||
      beginB + spanWithin(ofB, b.dtype, 0) <= beginA)
    return false;
  for (const std::vector<Extent> *extents : {&ofA, &ofB})
    for (const Extent &extent : *extents) {
      const int64_t period = extent.stride;
      if (period == 0)
        continue;
      // Modulo `period`, each tensor is one window; they are disjoint if the windows are.
      const int64_t from = ((beginB - beginA) % period + period) % period;
      if (from >= spanWithin(ofA, a.dtype, period) &&
          from + spanWithin(ofB, b.dtype, period) <= period)
        return false;
    }
  return true;
}

Status verifyNoAlias(const fb::OperationUnion &op, const fb::ProgramT &program,
                     const std::function<Tensor(const fb::ViewT &)> &tensor) {
  if (const fb::CopyT *copy = op.AsCopy())
    return verifyOutputs({{"source", tensor(*copy->source)}, {"dest", tensor(*copy->dest)}}, 1, {});
  const fb::LaunchT *launch = op.AsLaunch();
  if (!launch)
    return {};
  const fb::KernelT &kernel = *program.kernels[launch->kernel];
  const std::vector<std::string> names = operandNames(kernel);
  std::vector<Operand> operands;
  for (size_t i = 0; i < launch->operands.size(); ++i)
    operands.push_back({names[i], tensor(*launch->operands[i])});
  return verifyOutputs(operands, operands.size() - kernel.num_outputs, kernel.in_place);
}

} // namespace braid::runtime
