//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The kernels of library.cuh as plain loops, and their memory accesses.
//
//===----------------------------------------------------------------------===//
#include "LibraryKernels.h"
#include "braid/Base/Float16.h"
#include "braid/Base/StridedRuns.h"
#include "braid/Program/Manifest.h"
#include "braid/library_arguments.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace braid::null {

namespace {

using runtime::DType;
using Accesses = std::vector<Access>;
using Index = std::vector<int64_t>;

int64_t idAt(const void *ids, bool wide, int64_t i) {
  return wide ? static_cast<const int64_t *>(ids)[i] : static_cast<const int32_t *>(ids)[i];
}

int64_t at(const library::Integers &values, int64_t i) {
  return idAt(values.data, values.wide != 0, i * values.stride);
}

/// Adds the accesses to integers, if there are any. Strides are in elements.
void addIntegers(Accesses &accesses, const library::Integers &values, Index shape, Index strides) {
  const int64_t size = values.wide ? 8 : 4;
  for (int64_t &stride : strides)
    stride *= size;
  if (values.data)
    addRows(accesses, false, values.data, shape, strides, size);
}

/// The runs of a loop nest whose runs and strides are in units of `size` bytes.
runtime::StridedRuns runsOf(int64_t run, int rank, const long long *counts, const long long *from,
                            const long long *to, int64_t size) {
  runtime::StridedRuns runs{run * size, {}, {}, {}};
  for (int d = 0; d < rank; ++d) {
    runs.counts.push_back(counts[d]);
    runs.sourceStrides.push_back(from[d] * size);
    runs.destStrides.push_back(to[d] * size);
  }
  return runs;
}
runtime::StridedRuns runsOf(const library::Copy &a) {
  return runsOf(a.runUnits * a.unit, a.rank, a.counts, a.sourceStrides, a.destStrides, 1);
}
/// Adds the accesses of the bytes [begin, end) of the logical order.
void addRuns(Accesses &accesses, const runtime::StridedRuns &runs, int64_t begin, int64_t end,
             const std::vector<const void *> &sources, void *dest) {
  runtime::forEachRun(runs, begin, end, [&](int64_t from, int64_t to, int64_t bytes) {
    auto add = [&](bool writes, const void *data, int64_t offset) {
      accesses.push_back({reinterpret_cast<uint64_t>(data) + static_cast<uint64_t>(offset),
                          static_cast<uint64_t>(bytes), writes});
    };
    for (const void *source : sources)
      add(false, source, from);
    add(true, dest, to);
  });
}

std::string copyAccesses(const library::Copy &a, Accesses &accesses) {
  const runtime::StridedRuns runs = runsOf(a);
  uint64_t bits = reinterpret_cast<uint64_t>(a.source) | reinterpret_cast<uint64_t>(a.dest);
  for (size_t d = 0; d < runs.counts.size(); ++d)
    bits |= static_cast<uint64_t>(runs.sourceStrides[d] | runs.destStrides[d]);
  if (a.first < 0 || (a.first + a.units) * a.unit > runs.bytes() ||
      bits % static_cast<uint64_t>(a.unit) != 0)
    return "'braid_copy' of units of " + std::to_string(a.unit) + " bytes does not fit its sizes";
  addRuns(accesses, runs, a.first * a.unit, (a.first + a.units) * a.unit, {a.source}, a.dest);
  return {};
}
void runCopy(const library::Copy &a) {
  runtime::forEachRun(runsOf(a), a.first * a.unit, (a.first + a.units) * a.unit,
                      [&](int64_t from, int64_t to, int64_t bytes) {
                        std::memcpy(static_cast<char *>(a.dest) + to,
                                    static_cast<const char *>(a.source) + from,
                                    static_cast<size_t>(bytes));
                      });
}

std::string gatherAccesses(const library::Gather &a, Accesses &accesses) {
  const int64_t idBytes = a.wideIds ? 8 : 4;
  addRows(accesses, false, a.ids, {a.count}, {idBytes}, idBytes);
  addRows(accesses, false, a.source, {a.rows, a.rowBytes}, {a.sourceStrideBytes, 1}, 1);
  addRows(accesses, true, a.out, {a.count, a.rowBytes}, {a.outStrideBytes, 1}, 1);
  addRows(accesses, true, a.fault, {1}, {sizeof(library::Fault)}, sizeof(library::Fault));
  return {};
}
void runGather(const library::Gather &a) {
  for (int64_t i = 0; i < a.count; ++i) {
    const int64_t id = idAt(a.ids, a.wideIds != 0, i);
    const bool inside = id >= 0 && id < a.limit;
    const int64_t row = inside ? id - a.firstRow : -1;
    char *out = static_cast<char *>(a.out) + i * a.outStrideBytes;
    if (!inside && a.fault->command == 0)
      *a.fault = {a.command, id, i};
    if (row >= 0 && row < a.rows)
      std::memcpy(out, static_cast<const char *>(a.source) + row * a.sourceStrideBytes,
                  static_cast<size_t>(a.rowBytes));
    else
      std::memset(out, 0, static_cast<size_t>(a.rowBytes));
  }
}

/// Which elements are written depends on the positions, so all that may be written are counted.
std::string appendAccesses(const library::Append &a, Accesses &accesses) {
  const int64_t rows = a.rowUnits == 0 ? 0 : a.copy.units / a.rowUnits;
  if (a.copy.first != 0 || a.copy.units * a.copy.unit != runsOf(a.copy).bytes() ||
      rows * a.rowUnits != a.copy.units || a.stepBytes % a.copy.unit != 0)
    return "'braid_append' of units of " + std::to_string(a.copy.unit) +
           " bytes does not fit its places";
  addIntegers(accesses, a.positions, {rows}, {a.positions.stride});
  for (int64_t position = 0; position <= a.last; ++position)
    addRuns(accesses, runsOf(a.copy), 0, a.copy.units * a.copy.unit, {a.copy.source},
            static_cast<std::byte *>(a.copy.dest) + position * a.stepBytes);
  addRows(accesses, true, a.fault, {1}, {sizeof(library::Fault)}, sizeof(library::Fault));
  return {};
}
void runAppend(const library::Append &a) {
  const runtime::StridedRuns runs = runsOf(a.copy);
  const int64_t rowBytes = a.rowUnits * a.copy.unit;
  for (int64_t row = 0; row * rowBytes < runs.bytes(); ++row) {
    const int64_t position = at(a.positions, row);
    if (position >= 0 && position <= a.last)
      runtime::copyRuns(runs, static_cast<const std::byte *>(a.copy.source),
                        static_cast<std::byte *>(a.copy.dest) + position * a.stepBytes,
                        row * rowBytes, (row + 1) * rowBytes);
    else if (a.fault->command == 0)
      *a.fault = {a.command, position, row};
  }
}

std::string countedAccesses(const library::CopyCounted &a, Accesses &accesses) {
  const int64_t blockUnits = a.rows * a.rowUnits;
  const uint64_t places =
      reinterpret_cast<uint64_t>(a.copy.source) | reinterpret_cast<uint64_t>(a.copy.dest);
  if (places % static_cast<uint64_t>(a.copy.unit) != 0 || a.copy.first != 0 ||
      a.copy.units * a.copy.unit != runsOf(a.copy).bytes() || a.copy.units % blockUnits != 0)
    return "'braid_copy_counted' of units of " + std::to_string(a.copy.unit) +
           " bytes does not fit its places";
  addIntegers(accesses, a.counts, {a.copy.units / blockUnits}, {a.counts.stride});
  addRuns(accesses, runsOf(a.copy), 0, a.copy.units * a.copy.unit, {a.copy.source}, a.copy.dest);
  return {};
}
void runCounted(const library::CopyCounted &a) {
  const runtime::StridedRuns runs = runsOf(a.copy);
  const int64_t row = a.rowUnits * a.copy.unit, block = a.rows * row;
  for (int64_t b = 0; b * block < runs.bytes(); ++b) {
    const int64_t middle = b * block + std::clamp<int64_t>(at(a.counts, b), 0, a.rows) * row;
    auto *to = static_cast<std::byte *>(a.copy.dest);
    runtime::copyRuns(runs, static_cast<const std::byte *>(a.copy.source), to, b * block, middle);
    runtime::clearRuns(runs, to, middle, (b + 1) * block);
  }
}

std::string checkAccesses(const library::CheckCounts &a, Accesses &accesses) {
  addIntegers(accesses, a.counts, {a.count}, {a.counts.stride});
  addRows(accesses, true, a.fault, {1}, {sizeof(library::Fault)}, sizeof(library::Fault));
  return {};
}
void runCheck(const library::CheckCounts &a) {
  for (int64_t i = 0; i < a.count; ++i)
    if (const int64_t count = at(a.counts, i);
        (count < 0 || count > a.most) && a.fault->command == 0)
      *a.fault = {a.command, count, i};
}

template <DType type> float load(const void *from, int64_t i) {
  if constexpr (type == DType::f32)
    return static_cast<const float *>(from)[i];
  const uint16_t bits = static_cast<const uint16_t *>(from)[i];
  return type == DType::f16 ? runtime::f16ToFloat(bits) : runtime::bf16ToFloat(bits);
}
template <DType type> void store(void *to, int64_t i, float value) {
  if constexpr (type == DType::f32)
    static_cast<float *>(to)[i] = value;
  else
    static_cast<uint16_t *>(to)[i] =
        type == DType::f16 ? runtime::floatToF16(value) : runtime::floatToBf16(value);
}
/// Adjacent rows of elements of this type. Strides are in elements.
template <DType type>
void addElements(Accesses &accesses, bool writes, const void *data, const Index &shape,
                 Index strides) {
  const int64_t size = runtime::byteSize(type);
  strides.push_back(1);
  for (int64_t &stride : strides)
    stride *= size;
  addRows(accesses, writes, data, shape, strides, size);
}

template <DType type> std::string tableAccesses(const library::RotaryTable &a, Accesses &accesses) {
  addRows(accesses, false, a.frequencies, {a.pairs}, {8}, 8);
  addIntegers(accesses, a.positionOffset, {a.batch}, {a.positionOffset.stride});
  addElements<type>(accesses, true, a.cos, {a.batch, a.seq, a.pairs}, {a.cosBatch, a.cosRow});
  addElements<type>(accesses, true, a.sin, {a.batch, a.seq, a.pairs}, {a.sinBatch, a.sinRow});
  return {};
}
template <DType type> void runTable(const library::RotaryTable &a) {
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t s = 0; s < a.seq; ++s)
      for (int64_t i = 0; i < a.pairs; ++i) {
        const int64_t offset = a.positionOffset.data ? at(a.positionOffset, b) : 0;
        const double position = static_cast<double>(s) + static_cast<double>(offset);
        const double angle = position * a.frequencies[i];
        store<type>(a.cos, b * a.cosBatch + s * a.cosRow + i,
                    static_cast<float>(a.scale * std::cos(angle)));
        store<type>(a.sin, b * a.sinBatch + s * a.sinRow + i,
                    static_cast<float>(a.scale * std::sin(angle)));
      }
}

template <DType type> std::string rotaryAccesses(const library::Rotary &a, Accesses &accesses) {
  const Index shape{a.batch, a.seq, a.heads, 2 * a.pairs}, table{a.batch, a.seq, a.pairs};
  addElements<type>(accesses, false, a.in, shape, {a.inBatch, a.inRow, a.inHead});
  addElements<type>(accesses, false, a.cos, table, {a.cosBatch, a.cosRow});
  addElements<type>(accesses, false, a.sin, table, {a.sinBatch, a.sinRow});
  addElements<type>(accesses, true, a.out, shape, {a.outBatch, a.outRow, a.outHead});
  return {};
}
template <DType type> void runRotary(const library::Rotary &a) {
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t s = 0; s < a.seq; ++s)
      for (int64_t h = 0; h < a.heads; ++h)
        for (int64_t i = 0; i < a.pairs; ++i) {
          const int64_t in = b * a.inBatch + s * a.inRow + h * a.inHead + i;
          const int64_t out = b * a.outBatch + s * a.outRow + h * a.outHead + i;
          const float x = load<type>(a.in, in), y = load<type>(a.in, in + a.pairs);
          const float cos = load<type>(a.cos, b * a.cosBatch + s * a.cosRow + i);
          const float sin = load<type>(a.sin, b * a.sinBatch + s * a.sinRow + i);
          store<type>(a.out, out, x * cos - y * sin);
          store<type>(a.out, out + a.pairs, y * cos + x * sin);
        }
}

void storeId(void *ids, bool wide, int64_t i, int64_t id) {
  if (wide)
    static_cast<int64_t *>(ids)[i] = id;
  else
    static_cast<int32_t *>(ids)[i] = static_cast<int32_t>(id);
}

void runPosition(const library::Call &a) {
  const library::Operand &ids = a.operands[0], &out = a.operands[1];
  const bool wide = static_cast<DType>(ids.dtype) == DType::i64;
  const int64_t padding = a.integers[0];
  for (int64_t b = 0; b < ids.sizes[0]; ++b)
    for (int64_t s = 0, tokens = 0; s < ids.sizes[1]; ++s) {
      const bool token = idAt(ids.data, wide, b * ids.strides[0] + s * ids.strides[1]) != padding;
      tokens += token;
      storeId(out.data, wide, b * out.strides[0] + s * out.strides[1],
              padding + (token ? tokens : 0));
    }
}

template <DType type> void runTopKOf(const library::Call &a) {
  const library::Operand &input = a.operands[0], &values = a.operands[1], &indices = a.operands[2];
  const int last = input.rank - 1;
  auto offset = [&](const library::Operand &operand, int64_t row) {
    int64_t elements = 0;
    for (int d = last - 1; d >= 0; row /= operand.sizes[d--])
      elements += row % operand.sizes[d] * operand.strides[d];
    return elements;
  };
  for (int64_t row = 0; row < a.rows; ++row) {
    std::vector<std::pair<float, int64_t>> order; // ascending
    for (int64_t i = 0; i < input.sizes[last]; ++i) {
      const float x = load<type>(input.data, offset(input, row) + i * input.strides[last]);
      order.emplace_back(std::isnan(x) ? -INFINITY : -x, i);
    }
    std::sort(order.begin(), order.end());
    for (int64_t k = 0; k < values.sizes[last]; ++k) {
      const int64_t index = order[static_cast<size_t>(k)].second;
      const float x = load<type>(input.data, offset(input, row) + index * input.strides[last]);
      store<type>(values.data, offset(values, row) + k * values.strides[last], x);
      storeId(indices.data, static_cast<DType>(indices.dtype) == DType::i64,
              offset(indices, row) + k * indices.strides[last], index);
    }
  }
}
void runTopK(const library::Call &a) {
  if (static_cast<DType>(a.operands[0].dtype) == DType::f32)
    return runTopKOf<DType::f32>(a);
  if (static_cast<DType>(a.operands[0].dtype) == DType::f16)
    return runTopKOf<DType::f16>(a);
  runTopKOf<DType::bf16>(a);
}

void runLastToken(const library::Call &a) {
  const library::Operand &input = a.operands[0], &mask = a.operands[1], &out = a.operands[2];
  const auto size = static_cast<size_t>(runtime::byteSize(static_cast<DType>(input.dtype)));
  for (int64_t b = 0; b < input.sizes[0]; ++b) {
    int64_t last = -1;
    for (int64_t s = 0; s < mask.sizes[1]; ++s)
      if (idAt(mask.data, static_cast<DType>(mask.dtype) == DType::i64,
               b * mask.strides[0] + s * mask.strides[1]) != 0)
        last = s;
    for (int64_t h = 0; h < input.sizes[2]; ++h) {
      char *to = static_cast<char *>(out.data) +
                 static_cast<size_t>(b * out.strides[0] + h * out.strides[2]) * size;
      const int64_t from = b * input.strides[0] + last * input.strides[1] + h * input.strides[2];
      if (last >= 0)
        std::memcpy(to, static_cast<const char *>(input.data) + static_cast<size_t>(from) * size,
                    size);
      else
        std::memset(to, 0, size);
    }
  }
}

template <DType type>
std::string attentionAccesses(const library::Attention &a, Accesses &accesses) {
  const Index queries{a.batch, a.queries, a.heads, a.headDim},
      keys{a.batch, a.keys, a.heads / a.group, a.headDim},
      values{a.batch, a.keys, a.heads / a.group, a.valueDim},
      out{a.batch, a.queries, a.heads, a.valueDim};
  addElements<type>(accesses, false, a.query, queries, {a.queryBatch, a.queryRow, a.queryHead});
  addElements<type>(accesses, false, a.key, keys, {a.keyBatch, a.keyRow, a.keyHead});
  addElements<type>(accesses, false, a.value, values, {a.valueBatch, a.valueRow, a.valueHead});
  addIntegers(accesses, a.mask, {a.batch, a.keys}, {a.maskBatch, a.mask.stride});
  addIntegers(accesses, a.validLength, {a.batch}, {a.validLength.stride});
  addIntegers(accesses, a.positionOffset, {a.batch}, {a.positionOffset.stride});
  addElements<type>(accesses, true, a.out, out, {a.outBatch, a.outRow, a.outHead});
  if (a.logSum)
    addRows(accesses, true, a.logSum, {a.batch, a.queries, a.heads},
            {a.logSumBatch * 4, a.logSumRow * 4, a.logSumHead * 4}, 4);
  return {};
}
template <DType type> void runAttention(const library::Attention &a) {
  std::vector<double> weights(static_cast<size_t>(a.keys));
  for (int64_t row = 0; row < a.batch * a.heads * a.queries; ++row) {
    const int64_t s = row % a.queries, h = row / a.queries % a.heads, b = row / a.queries / a.heads;
    const int64_t query = b * a.queryBatch + s * a.queryRow + h * a.queryHead;
    const int64_t key = b * a.keyBatch + h / a.group * a.keyHead;
    const int64_t value = b * a.valueBatch + h / a.group * a.valueHead;
    const int64_t out = b * a.outBatch + s * a.outRow + h * a.outHead;
    const int64_t given = a.positionOffset.data ? at(a.positionOffset, b) : 0;
    const int64_t offset = std::clamp<int64_t>(given, -a.queries, a.keys);
    const int64_t valid = a.validLength.data ? at(a.validLength, b) : a.keys;
    double most = -INFINITY, sum = 0;
    for (int64_t t = 0; t < a.keys; ++t) {
      double dot = 0;
      for (int64_t d = 0; d < a.headDim; ++d)
        dot += double(load<type>(a.query, query + d)) *
               double(load<type>(a.key, key + t * a.keyRow + d));
      const bool seen = t < valid && (!a.causal || t <= s + offset) &&
                        (!a.mask.data || idAt(a.mask.data, a.mask.wide != 0,
                                              b * a.maskBatch + t * a.mask.stride) != 0);
      weights[static_cast<size_t>(t)] = seen ? dot * double(a.scale) : -INFINITY;
      most = std::max(most, weights[static_cast<size_t>(t)]);
    }
    for (double &weight : weights)
      sum += weight = std::isinf(most) ? 0 : std::exp(weight - most);
    if (a.logSum)
      a.logSum[b * a.logSumBatch + s * a.logSumRow + h * a.logSumHead] =
          static_cast<float>(sum > 0 ? most + std::log(sum) : -INFINITY);
    for (int64_t d = 0; d < a.valueDim; ++d) {
      double total = 0;
      for (int64_t t = 0; t < a.keys; ++t)
        total += weights[static_cast<size_t>(t)] *
                 double(load<type>(a.value, value + t * a.valueRow + d));
      store<type>(a.out, out + d, static_cast<float>(sum > 0 ? total / sum : 0));
    }
  }
}

runtime::StridedRuns runsOf(const library::Reduce &a) {
  return runsOf(a.run, a.rank, a.counts, a.sourceStrides, a.outStrides,
                runtime::byteSize(static_cast<DType>(a.dtype)));
}
std::string reduceAccesses(const library::Reduce &a, Accesses &accesses) {
  const int64_t size = runtime::byteSize(static_cast<DType>(a.dtype));
  const runtime::StridedRuns runs = runsOf(a);
  if (a.first < 0 || (a.first + a.count) * size > runs.bytes())
    return "'braid_reduce' of " + std::to_string(a.count) + " elements does not fit its sizes";
  addRuns(accesses, runs, a.first * size, (a.first + a.count) * size,
          std::vector<const void *>(a.sources, a.sources + a.numSources), a.out);
  return {};
}
template <typename T> T combine(int kind, T a, T b) {
  if constexpr (std::is_integral_v<T>) { // sums wrap around
    if (kind == 0)
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  if (kind == 0)
    return a + b;
  if (a != a || b != b)
    return a != a ? a : b;
  return kind == 1 ? std::max(a, b) : std::min(a, b);
}
template <typename T, typename Load, typename Store>
void reduceAs(const library::Reduce &a, Load load, Store store) {
  const int64_t size = runtime::byteSize(static_cast<DType>(a.dtype));
  runtime::forEachRun(runsOf(a), a.first * size, (a.first + a.count) * size,
                      [&](int64_t from, int64_t to, int64_t bytes) {
                        for (int64_t i = 0; i < bytes / size; ++i) {
                          T sum = load(a.sources[0], from / size + i);
                          for (int s = 1; s < a.numSources; ++s)
                            sum = combine<T>(a.kind, sum, load(a.sources[s], from / size + i));
                          store(a.out, to / size + i, sum);
                        }
                      });
}
template <typename T> void reducePlain(const library::Reduce &a) {
  reduceAs<T>(
      a, [](const void *from, int64_t i) { return static_cast<const T *>(from)[i]; },
      [](void *to, int64_t i, T value) { static_cast<T *>(to)[i] = value; });
}
template <float (*Widen)(uint16_t), uint16_t (*Narrow)(float)>
void reduceHalf(const library::Reduce &a) {
  reduceAs<float>(
      a, [](const void *from, int64_t i) { return Widen(static_cast<const uint16_t *>(from)[i]); },
      [](void *to, int64_t i, float value) { static_cast<uint16_t *>(to)[i] = Narrow(value); });
}
void runReduce(const library::Reduce &a) {
  switch (static_cast<DType>(a.dtype)) {
  case DType::f32:
    return reducePlain<float>(a);
  case DType::f16:
    return reduceHalf<runtime::f16ToFloat, runtime::floatToF16>(a);
  case DType::bf16:
    return reduceHalf<runtime::bf16ToFloat, runtime::floatToBf16>(a);
  case DType::f64:
    return reducePlain<double>(a);
  case DType::i32:
    return reducePlain<int32_t>(a);
  case DType::i64:
    return reducePlain<int64_t>(a);
  case DType::i8:
    return reducePlain<int8_t>(a);
  }
}

template <DType type> void runReduceDimsOf(const library::Call &a) {
  const library::Operand &input = a.operands[0], &out = a.operands[1], &expSum = a.operands[2];
  for (int64_t element = 0; element < a.rows; ++element) {
    int64_t rest = element, begin = 0, to = 0, sumTo = 0, count = 1;
    for (int d = input.rank - 1, kept = out.rank - 1; d >= 0; --d) {
      const int64_t size = input.sizes[d];
      if ((a.integers[1] >> d & 1) != 0) {
        count *= size;
        continue;
      }
      begin += rest % size * input.strides[d];
      to += rest % size * out.strides[kept];
      sumTo += expSum.data ? rest % size * expSum.strides[kept] : 0;
      --kept;
      rest /= size;
    }
    auto elementOf = [&](int64_t n) {
      int64_t at = begin;
      for (int d = input.rank - 1; d >= 0; --d)
        if ((a.integers[1] >> d & 1) != 0) {
          at += n % input.sizes[d] * input.strides[d];
          n /= input.sizes[d];
        }
      return at;
    };
    double value = 0;
    for (int64_t n = 0; n < count; ++n) {
      const double x = load<type>(input.data, elementOf(n));
      value = n == 0 ? x : combine<double>(static_cast<int>(a.integers[0]), value, x);
    }
    store<type>(out.data, to, static_cast<float>(value));
    if (!expSum.data)
      continue;
    double sum = 0;
    for (int64_t n = 0; n < count && value != -INFINITY; ++n) {
      const double x = load<type>(input.data, elementOf(n));
      sum += x == value ? 1 : std::exp(x - value);
    }
    store<DType::f32>(expSum.data, sumTo, static_cast<float>(sum));
  }
}
void runReduceDims(const library::Call &a) {
  if (static_cast<DType>(a.operands[0].dtype) == DType::f32)
    return runReduceDimsOf<DType::f32>(a);
  if (static_cast<DType>(a.operands[0].dtype) == DType::f16)
    return runReduceDimsOf<DType::f16>(a);
  runReduceDimsOf<DType::bf16>(a);
}

/// Adds the kernels for each storage type.
template <DType type> void addOfType(std::map<std::string, LibraryKernel> &kernels) {
  auto add = [&](std::string kernel, auto accesses, auto run, auto threads) {
    kernel += std::string("_") + runtime::name(type);
    kernels.emplace(kernel, make(kernel, accesses, run, threads));
  };
  add(
      "braid_rotary_table", tableAccesses<type>, runTable<type>,
      +[](const library::RotaryTable &a) -> int64_t { return a.batch * a.seq * a.pairs; });
  add(
      "braid_rotary", rotaryAccesses<type>, runRotary<type>,
      +[](const library::Rotary &a) -> int64_t { return a.batch * a.seq * a.heads * a.pairs; });
  add(
      "braid_attention", attentionAccesses<type>, runAttention<type>,
      +[](const library::Attention &a) -> int64_t { return a.batch * a.queries * a.heads * 32; });
}

std::map<std::string, LibraryKernel> makeLibraryKernels() {
  std::map<std::string, LibraryKernel> kernels = {
      {"braid_copy", make(
                         "braid_copy", copyAccesses, runCopy,
                         +[](const library::Copy &a) -> int64_t { return a.units; })},
      {"braid_gather",
       make(
           "braid_gather", gatherAccesses, runGather,
           +[](const library::Gather &a) -> int64_t { return a.count * library::kThreads; })},
      {"braid_append", make(
                           "braid_append", appendAccesses, runAppend,
                           +[](const library::Append &a) -> int64_t { return a.copy.units; })},
      {"braid_copy_counted",
       make(
           "braid_copy_counted", countedAccesses, runCounted,
           +[](const library::CopyCounted &a) -> int64_t { return a.copy.units; })},
      {"braid_check_counts",
       make(
           "braid_check_counts", checkAccesses, runCheck,
           +[](const library::CheckCounts &a) -> int64_t { return a.count; })},
      {"braid_position_ids",
       make("braid_position_ids", callAccesses<2, 1>, runPosition, callThreads)},
      {"braid_last_token", make("braid_last_token", callAccesses<3, 1>, runLastToken, callThreads)},
      {"braid_reduce_dims",
       make("braid_reduce_dims", callAccesses<3, 2>, runReduceDims, callThreads)},
      {"braid_top_k", make("braid_top_k", callAccesses<3, 2>, runTopK, callThreads)},
      {"braid_reduce", make(
                           "braid_reduce", reduceAccesses, runReduce,
                           +[](const library::Reduce &a) -> int64_t { return a.count; })},
  };
  addOfType<DType::f32>(kernels);
  addOfType<DType::f16>(kernels);
  addOfType<DType::bf16>(kernels);
  return kernels;
}

} // namespace

const LibraryKernel *findLibraryKernel(const std::string &name) {
  static const std::map<std::string, LibraryKernel> kernels = makeLibraryKernels();
  auto found = kernels.find(name);
  if (found != kernels.end())
    return &found->second;
  const LibraryKernel *other = findInt8Kernel(name);
  return other ? other : findCodecKernel(name);
}

} // namespace braid::null
