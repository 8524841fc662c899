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

/// From the first byte to the last one, of the dimensions whose stride is no multiple of `period`.
int64_t spanWithin(const std::vector<Extent> &extents, DType dtype, int64_t period) {
  int64_t span = byteSize(dtype);
  for (const Extent &extent : extents)
    if (period == 0 || extent.stride % period != 0)
      span += extent.stride * (extent.size - 1);
  return span;
}

/// An operand with the name that messages have for it.
struct Used {
  std::string role;
  Tensor tensor;
  std::vector<size_t> inPlaceOf = {}; ///< of a write: the reads that it may be
};

class Uses {
public:
  explicit Uses(const std::function<Tensor(const fb::ViewT &)> &tensor) : tensor(tensor) {}

  void read(const char *role, const fb::ViewT &view) { reads.push_back({role, tensor(view)}); }
  void write(const char *role, const fb::ViewT &view) { writes.push_back({role, tensor(view)}); }

  void launch(const fb::LaunchT &op, const fb::KernelT &kernel) {
    const size_t inputs = op.operands.size() - kernel.num_outputs;
    const std::vector<std::string> names = operandNames(kernel);
    for (size_t i = 0; i < op.operands.size(); ++i) {
      Used used{names[i], tensor(*op.operands[i])};
      for (size_t p = 0; p + 1 < kernel.in_place.size(); p += 2)
        if (kernel.in_place[p + 1] == i)
          used.inPlaceOf.push_back(kernel.in_place[p]);
      (i < inputs ? reads : writes).push_back(std::move(used));
    }
  }

  Status verify() const {
    for (size_t w = 0; w < writes.size(); ++w) {
      for (size_t r = 0; r < reads.size(); ++r)
        if (!isInPlace(writes[w], r) && mayOverlap(writes[w].tensor, reads[r].tensor))
          return overlapError(writes[w], reads[r]);
      for (size_t other = 0; other < w; ++other)
        if (mayOverlap(writes[w].tensor, writes[other].tensor))
          return overlapError(writes[w], writes[other]);
    }
    return {};
  }

private:
  bool isInPlace(const Used &write, size_t read) const {
    const Tensor &a = write.tensor, &b = reads[read].tensor;
    return std::count(write.inPlaceOf.begin(), write.inPlaceOf.end(), read) > 0 &&
           a.data == b.data && a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides;
  }
  static Status overlapError(const Used &a, const Used &b) {
    return Status::error("expects ", a.role, " apart from ", b.role);
  }

  const std::function<Tensor(const fb::ViewT &)> &tensor;
  std::vector<Used> reads, writes;
};

} // namespace

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
      // Both lie in windows of a circle of this length.
      const int64_t from = ((beginB - beginA) % period + period) % period;
      if (from >= spanWithin(ofA, a.dtype, period) &&
          from + spanWithin(ofB, b.dtype, period) <= period)
        return false;
    }
  return true;
}

Status verifyNoAlias(const fb::OperationUnion &op, const fb::ProgramT &program,
                     const std::function<Tensor(const fb::ViewT &)> &tensor) {
  Uses uses(tensor);
  if (const fb::LaunchT *launch = op.AsLaunch()) {
    uses.launch(*launch, *program.kernels[launch->kernel]);
  } else if (const fb::CopyT *copy = op.AsCopy()) {
    uses.read("source", *copy->source);
    uses.write("dest", *copy->dest);
  }
  return uses.verify();
}

} // namespace braid::runtime
