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

/// Elements [begin, end) of an all_reduce that the rank at `position` reduces; whole cache lines
/// each.
std::pair<int64_t, int64_t> share(int64_t elements, int64_t position, int64_t ranks) {
  constexpr int64_t kLine = 64;
  int64_t lines = (elements + kLine - 1) / kLine;
  return {std::min(elements, lines * position / ranks * kLine),
          std::min(elements, lines * (position + 1) / ranks * kLine)};
}

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
  const int64_t capacity = countedRows(c);
  for (int64_t block = 0; block < ranks * counts.outer; ++block) {
    int64_t count = countAt(inputOf(c.position, last), counts.dtype, block);
    if (count < 0 || count > capacity)
      return noRoom(c, count, block);
  }
  return {};
}

void Exchange::run() const {
  for (size_t v = 0; v < c.values.size(); ++v)
    one(v);
}

void Exchange::copyOthers() const {
  for (size_t v = 0; v < c.values.size(); ++v)
    copyOthers(v);
}

void Exchange::one(size_t v) const {
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
    return take(v, -1);
  case CollectiveKind::broadcast:
    return take(v, c.root);
  case CollectiveKind::permute: {
    int64_t source = -1;
    for (auto [from, to] : c.pairs)
      if (to == c.position)
        source = from;
    return take(v, source);
  }
  case CollectiveKind::send:
  case CollectiveKind::recv:
    return; // do not meet
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
  auto [begin, end] = share(value.numElements(), c.position, ranks);
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
    auto [begin, end] = share(value.numElements(), i, ranks);
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
  const int64_t size = byteSize(value.dtype);
  // Both dimensions in one: chunks lie side by side as in all_gather and reduce_scatter.
  const bool same = c.dim == c.concatDim;
  /// Where row (o, f, b) of the chunk `index` begins when the chunks are side by side along the
  /// first or the second dimension.
  auto row = [&](bool alongFirst, int64_t index, int64_t o, int64_t f, int64_t b) {
    int64_t firsts = alongFirst ? ranks * value.first : value.first;
    int64_t seconds = alongFirst ? value.second : ranks * value.second;
    int64_t atFirst = alongFirst ? index * value.first + f : f;
    int64_t atSecond = alongFirst ? 0 : index * value.second;
    return (((o * firsts + atFirst) * value.between + b) * seconds + atSecond) * value.inner * size;
  };
  const bool cutFirst = same || c.dim < c.concatDim, joinFirst = same || !cutFirst;
  const int64_t bytes = value.second * value.inner * size;
  for (int64_t i = 0; i < ranks; ++i)
    for (int64_t o = 0; o < value.outer; ++o)
      for (int64_t f = 0; f < value.first; ++f)
        for (int64_t b = 0; b < value.between; ++b)
          copyDisjoint(output(v) + row(joinFirst, i, o, f, b),
                       inputOf(i, v) + row(cutFirst, c.position, o, f, b), bytes);
}

void Exchange::allToAllCounted(size_t v) const {
  const CollectiveValue &value = c.values[v];
  const size_t last = c.values.size() - 1;
  const int64_t row = value.inner * byteSize(value.dtype), block = value.first * row;
  for (int64_t i = 0; i < ranks; ++i)
    for (int64_t b = 0; b < value.outer; ++b) {
      // The sender's block for this rank becomes this rank's block from the sender.
      const int64_t there = c.position * value.outer + b, here = i * value.outer + b;
      // The sender has checked its counts. A program that writes them concurrently gets wrong rows,
      // but none from outside of the block.
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
  int64_t bytes = c.values[v].numElements() * byteSize(c.values[v].dtype);
  if (source < 0)
    std::memset(output(v), 0, static_cast<size_t>(bytes));
  else
    copyDisjoint(output(v), inputOf(source, v), bytes);
}

} // namespace braid::runtime
