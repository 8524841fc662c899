//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "InPlaceExchange.h"

#include "CollectiveExtents.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

namespace {

/// In a group of one rank, output and input may be the same memory.
void copyDisjoint(std::byte *out, const std::byte *in, int64_t bytes) {
  if (out != in)
    std::memcpy(out, in, static_cast<size_t>(bytes));
}

/// The count of a block; `counts` need not be aligned.
int64_t countAt(const std::byte *counts, DType dtype, int64_t block) {
  if (dtype == DType::i64) {
    int64_t wide;
    std::memcpy(&wide, counts + block * 8, 8);
    return wide;
  }
  int32_t narrow;
  std::memcpy(&narrow, counts + block * 4, 4);
  return narrow;
}

} // namespace

Status Exchange::checkCounts() const {
  if (c.kind != CollectiveKind::allToAllV)
    return {};
  const size_t last = c.values.size() - 1;
  const CollectiveValue &counts = c.values[last];
  const int64_t capacity = countCapacity(c);
  for (int64_t block = 0; block < ranks * counts.outer; ++block) {
    int64_t count = countAt(inputOf(c.position, last), counts.dtype, block);
    if (count < 0 || count > capacity)
      return countError(c, count, block);
  }
  return {};
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
    return reduceScatter(v);
  case CollectiveKind::allGather:
    return allGather(v);
  case CollectiveKind::allToAll:
    return allToAll(v);
  case CollectiveKind::allToAllV:
    return allToAllCounted(v);
  case CollectiveKind::reduce:
    if (c.position == c.root)
      return reduce(v, 0, output(v), c.values[v].numElements());
    [[fallthrough]];
  case CollectiveKind::broadcast:
  case CollectiveKind::permute:
    return take(v, sourceOf(c));
  case CollectiveKind::send:
  case CollectiveKind::recv:
    return; // without a barrier
  }
}

void Exchange::reduce(size_t v, int64_t inputByte, std::byte *out, int64_t count) const {
  const void **sources = group.slots[static_cast<size_t>(c.position)].sources;
  for (int64_t i = 0; i < ranks; ++i)
    sources[i] = inputOf(i, v) + inputByte;
  kernels.reduce(static_cast<int>(c.reduce), static_cast<int>(c.values[v].dtype), out, sources,
                 static_cast<int>(ranks), count);
}

void Exchange::reduceMine(size_t v) const {
  const CollectiveValue &value = c.values[v];
  auto [begin, end] = reducedRange(value.numElements(), c.position, ranks);
  if (begin == end)
    return;
  int64_t at = begin * byteSize(value.dtype);
  reduce(v, at, output(v) + at, end - begin);
}

void Exchange::copyOthers(size_t v) const {
  const CollectiveValue &value = c.values[v];
  for (int64_t i = 0; i < ranks; ++i) {
    if (i == c.position)
      continue;
    auto [begin, end] = reducedRange(value.numElements(), i, ranks);
    int64_t at = begin * byteSize(value.dtype);
    auto from = static_cast<size_t>(i);
    std::memcpy(output(v) + at,
                heap.peer(group.ranks[from], group.value(from, v).outputOffset) + at,
                static_cast<size_t>((end - begin) * byteSize(value.dtype)));
  }
}

void Exchange::reduceScatter(size_t v) const {
  const CollectiveValue &value = c.values[v];
  int64_t chunk = value.inner * byteSize(value.dtype);
  for (int64_t o = 0; o < value.outer; ++o)
    reduce(v, (o * ranks + c.position) * chunk, output(v) + o * chunk, value.inner);
}

void Exchange::allGather(size_t v) const {
  const CollectiveValue &value = c.values[v];
  int64_t chunk = value.inner * byteSize(value.dtype);
  for (int64_t i = 0; i < ranks; ++i)
    for (int64_t o = 0; o < value.outer; ++o)
      copyDisjoint(output(v) + (o * ranks + i) * chunk, inputOf(i, v) + o * chunk, chunk);
}

void Exchange::allToAll(size_t v) const {
  const CollectiveValue &value = c.values[v];
  const AllToAllStrides strides = allToAllStrides(c, value, ranks);
  for (int64_t i = 0; i < ranks; ++i)
    forEachRow(value, [&](int64_t o, int64_t f, int64_t b) {
      copyDisjoint(output(v) + strides.output.at(i, o, f, b),
                   inputOf(i, v) + strides.input.at(c.position, o, f, b), strides.rowBytes);
    });
}

void Exchange::allToAllCounted(size_t v) const {
  const CollectiveValue &value = c.values[v];
  const size_t last = c.values.size() - 1;
  const int64_t row = value.inner * byteSize(value.dtype), block = value.first * row;
  for (int64_t i = 0; i < ranks; ++i)
    for (int64_t b = 0; b < value.outer; ++b) {
      // The receiver's block from a sender is that sender's block for the receiver.
      const int64_t there = c.position * value.outer + b, here = i * value.outer + b;
      // The sender has checked its counts. A program that writes them concurrently gets wrong rows,
      // but only rows of the block.
      const int64_t rows =
          v == last ? 1
                    : std::clamp<int64_t>(countAt(inputOf(i, last), c.values[last].dtype, there), 0,
                                          value.first);
      copyDisjoint(output(v) + here * block, inputOf(i, v) + there * block, rows * row);
      std::memset(output(v) + here * block + rows * row, 0,
                  static_cast<size_t>(block - rows * row));
    }
}

void Exchange::take(size_t v, int64_t source) const {
  const int64_t bytes = c.values[v].bytes();
  if (source < 0)
    std::memset(output(v), 0, static_cast<size_t>(bytes));
  else
    copyDisjoint(output(v), inputOf(source, v), bytes);
}

} // namespace braid::runtime
