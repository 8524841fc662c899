//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "PadParameter.h"

using namespace mlir;

namespace braid {

/// The slices of a parameter whose elements along `dim` move as `padding` says.
static ArrayAttr padSlices(ArrayAttr slices, int64_t dim, const DimPadding &padding) {
  SmallVector<Attribute> padded;
  for (auto slice : slices.getAsRange<nn::SliceAttr>()) {
    int64_t begin = slice.getDestOffsets()[dim], end = begin + slice.getSizes()[dim];
    for (const Segment &segment : padding.segments) {
      int64_t from = std::max(begin, segment.source),
              to = std::min(end, segment.source + segment.size);
      if (from >= to)
        continue;
      SmallVector<int64_t> source(slice.getSourceOffsets()), dest(slice.getDestOffsets()),
          sizes(slice.getSizes());
      source[dim] += from - begin;
      dest[dim] = segment.dest + (from - segment.source);
      sizes[dim] = to - from;
      padded.push_back(nn::SliceAttr::get(slices.getContext(), slice.getTensor(),
                                          slice.getTensorShape(), slice.getPermutation(), source,
                                          dest, sizes));
    }
  }
  return ArrayAttr::get(slices.getContext(), padded);
}

nn::ParameterOp padParameter(nn::ParameterOp parameter, int64_t dim, const DimPadding &padding) {
  OpBuilder builder(parameter);
  return nn::ParameterOp::create(
      builder, parameter.getLoc(), withDim(parameter.getType(), dim, padding.size),
      parameter.getNameAttr(), padSlices(parameter.getSlices(), dim, padding),
      parameter.getInitAttr(), TypeAttr(), comm::ShardingAttr(), parameter.getStoredAttr(),
      parameter.getPlaceAttr(), parameter.getQuantizedAttr());
}

} // namespace braid
