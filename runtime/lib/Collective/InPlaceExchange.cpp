//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "InPlaceExchange.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

Status Exchange::checkCounts() const {
  if (c.kind != CollectiveKind::allToAllV)
    return {};
  return checkOwnCounts(c, inputOf(c.position, c.values.size() - 1));
}

void Exchange::run() const {
  for (size_t v = 0; v < c.values.size(); ++v)
    run(v);
}

void Exchange::copyOthers() const {
  for (size_t v = 0; v < c.values.size(); ++v)
    copyOthers(v);
}

void Exchange::run(size_t v) const {
  switch (c.kind) {
  case CollectiveKind::allReduce:
    return reduceMine(v);
  case CollectiveKind::reduceScatter:
    return reduce(v, c.position * c.values[v].sourceStep, {0, c.values[v].bytes()});
  case CollectiveKind::allGather:
  case CollectiveKind::allToAll:
    return takeAll(v);
  case CollectiveKind::allToAllV:
    return takeCounted(v);
  case CollectiveKind::reduce:
    if (c.position == c.root)
      return reduce(v, 0, {0, c.values[v].bytes()});
    [[fallthrough]];
  case CollectiveKind::broadcast:
  case CollectiveKind::permute:
    return take(v, sourceOf(c));
  case CollectiveKind::send:
  case CollectiveKind::recv:
    return; // without a barrier
  }
}

void Exchange::reduce(size_t v, int64_t inputByte, ByteRange range) const {
  const CollectiveValue &value = c.values[v];
  const void **sources = group.slots[static_cast<size_t>(c.position)].sources;
  forEachRun(value.part, range.begin, range.end, [&](int64_t from, int64_t to, int64_t bytes) {
    for (int64_t i = 0; i < ranks; ++i)
      sources[i] = inputOf(i, v) + inputByte + from;
    kernels.reduce(static_cast<int>(c.reduce), static_cast<int>(value.dtype), output(v) + to,
                   sources, static_cast<int>(ranks), bytes / byteSize(value.dtype));
  });
}

void Exchange::reduceMine(size_t v) const {
  reduce(v, 0, reducedRange(c.values[v], c.position, ranks));
}

void Exchange::copyOthers(size_t v) const {
  for (int64_t i = 0; i < ranks; ++i) {
    if (i == c.position)
      continue;
    const ByteRange range = reducedRange(c.values[v], i, ranks);
    forEachRun(c.values[v].part, range.begin, range.end, [&](int64_t, int64_t at, int64_t bytes) {
      std::memcpy(output(v) + at, outputOf(i, v) + at, static_cast<size_t>(bytes));
    });
  }
}

void Exchange::takeAll(size_t v) const {
  const CollectiveValue &value = c.values[v];
  for (int64_t i = 0; i < ranks; ++i)
    copyRuns(value.part, inputOf(i, v) + c.position * value.sourceStep,
             output(v) + i * value.destStep);
}

void Exchange::takeCounted(size_t v) const {
  const CollectiveValue &value = c.values[v];
  const size_t last = c.values.size() - 1;
  if (v == last)
    return takeAll(v);
  const CountedBlocks part = blocksOf(value, ranks);
  const int64_t blockBytes = part.rows * part.rowBytes;
  for (int64_t i = 0; i < ranks; ++i) {
    // The receiver's blocks from a sender are that sender's blocks for the receiver.
    const std::byte *from = inputOf(i, v) + c.position * value.sourceStep;
    std::byte *to = output(v) + i * value.destStep;
    for (int64_t b = 0; b < part.blocks; ++b) {
      // The sender has checked its counts. A program that writes them concurrently gets wrong rows,
      // but only rows of the block.
      const int64_t rows = std::clamp<int64_t>(countOfBlock(inputOf(i, last), c.values[last].dtype,
                                                            c.values[last].input.strides[0],
                                                            c.position * part.blocks + b),
                                               0, part.rows);
      const int64_t begin = b * blockBytes, middle = begin + rows * part.rowBytes;
      copyRuns(value.part, from, to, begin, middle);
      clearRuns(value.part, to, middle, begin + blockBytes);
    }
  }
}

void Exchange::take(size_t v, int64_t source) const {
  const CollectiveValue &value = c.values[v];
  if (source < 0)
    clearRuns(value.part, output(v), 0, value.bytes());
  else
    copyRuns(value.part, inputOf(source, v), output(v));
}

} // namespace braid::runtime
