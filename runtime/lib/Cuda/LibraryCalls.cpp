//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Commands that run kernels of library.cuh, and plain copies and fills.
//
//===----------------------------------------------------------------------===//
#include "StreamCommand.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime::cuda {

namespace {

/// The largest power of two up to 16 that divides all of them.
int unitOf(std::initializer_list<uint64_t> bytes, const std::vector<int64_t> &strides = {},
           const std::vector<int64_t> &moreStrides = {}) {
  uint64_t bits = 16;
  for (uint64_t b : bytes)
    bits |= b;
  for (const auto *list : {&strides, &moreStrides})
    for (int64_t stride : *list)
      bits |= static_cast<uint64_t>(stride);
  return static_cast<int>(bits & (~bits + 1));
}

/// The name of a kernel for elements of this type.
std::string ofType(const char *kernel, DType dtype) {
  return std::string(kernel) + "_" + name(dtype);
}

library::Integers integers(const Integers &values) {
  return {values.data, values.stride, static_cast<int>(values.wide)};
}

} // namespace

namespace {

/// Describes the bytes [range.begin, range.end) of the logical order; units also divide
/// `unitBytes`.
Result<library::Copy> copyOf(const StridedRuns &runs, const std::byte *source, std::byte *dest,
                             ByteRange range, int64_t unitBytes) {
  if (runs.counts.size() > library::kMaxDims)
    return Status::error("expects at most " + std::to_string(library::kMaxDims) +
                         " dimensions, got " + std::to_string(runs.counts.size()));
  library::Copy copy{};
  copy.source = source;
  copy.dest = dest;
  copy.unit =
      unitOf({address(source), address(dest), static_cast<uint64_t>(runs.runBytes),
              static_cast<uint64_t>(range.begin), static_cast<uint64_t>(range.end - range.begin),
              static_cast<uint64_t>(unitBytes)},
             runs.sourceStrides, runs.destStrides);
  copy.first = range.begin / copy.unit;
  copy.units = (range.end - range.begin) / copy.unit;
  copy.runUnits = runs.runBytes / copy.unit;
  copy.rank = static_cast<int>(runs.counts.size());
  std::copy(runs.counts.begin(), runs.counts.end(), copy.counts);
  std::copy(runs.sourceStrides.begin(), runs.sourceStrides.end(), copy.sourceStrides);
  std::copy(runs.destStrides.begin(), runs.destStrides.end(), copy.destStrides);
  return copy;
}

} // namespace

Result<StreamCommand> makeCopy(const StridedRuns &runs, const std::byte *source, std::byte *dest,
                               ByteRange range, RankDevice &rank) {
  // In a group of one rank both may be the same memory.
  if (range.begin == range.end || source == dest)
    return StreamCommand();
  if (runs.counts.empty())
    return StreamCommand([&api = rank.device->api(), to = address(dest + range.begin),
                          from = address(source + range.begin),
                          bytes = static_cast<size_t>(range.end - range.begin)](CUstream stream) {
      return api.check(api.cuMemcpyAsync(to, from, bytes, stream), "cuMemcpyAsync");
    });
  ASSIGN_OR_RETURN(library::Copy arguments, copyOf(runs, source, dest, range, 0));
  return libraryStreamCommand(rank, "braid_copy", arguments.units, arguments);
}

Result<StreamCommand> makeCopy(const CopyCommand &c, RankDevice &rank) {
  return makeCopy(c.runs, c.source, c.dest, {0, c.runs.bytes()}, rank);
}

Result<StreamCommand> makeCopyCounted(const StridedRuns &runs, const CountedBlocks &part,
                                      const std::byte *source, std::byte *dest,
                                      const library::Integers &counts, RankDevice &rank) {
  ASSIGN_OR_RETURN(library::Copy copy,
                   copyOf(runs, source, dest, {0, runs.bytes()}, part.rowBytes));
  library::CopyCounted arguments{};
  arguments.copy = copy;
  arguments.counts = counts;
  arguments.rows = part.rows;
  arguments.rowUnits = part.rowBytes / copy.unit;
  return libraryStreamCommand(rank, "braid_copy_counted", copy.units, arguments);
}

library::Integers countsFrom(const StridedView &view, DType dtype, const std::byte *data,
                             int64_t block) {
  return {data + block * view.strides[0] * byteSize(dtype), view.strides[0],
          static_cast<int>(dtype == DType::i64)};
}

Result<StreamCommand> makeCheckCounts(const Collective &c, const std::byte *counts, uint64_t number,
                                      RankDevice &rank) {
  const CollectiveValue &value = c.values.back();
  library::CheckCounts arguments{};
  arguments.counts = countsFrom(value.input, value.dtype, counts, 0);
  arguments.count = value.input.shape[0];
  arguments.most = countCapacity(c);
  arguments.fault = rank.faults + c.queue;
  arguments.command = number;
  return libraryStreamCommand(rank, "braid_check_counts", arguments.count, arguments);
}

StreamCommand makeFill(const CollectiveValue &value, std::byte *output, RankDevice &rank) {
  if (value.bytes() == 0)
    return {};
  return [&api = rank.device->api(), output, runs = value.part](CUstream stream) {
    Status status;
    forEachRun(runs, [&](int64_t, int64_t to, int64_t bytes) {
      if (status.ok())
        status = api.check(
            api.cuMemsetD8Async(address(output + to), 0, static_cast<size_t>(bytes), stream),
            "cuMemsetD8Async");
    });
    return status;
  };
}

Result<StreamCommand> makeReduce(const CollectiveValue &value,
                                 const std::vector<const std::byte *> &sources, std::byte *output,
                                 ByteRange range, ReduceKind kind, RankDevice &rank) {
  if (sources.size() > library::kMaxSources)
    return Status::error("expects groups of at most " + std::to_string(library::kMaxSources) +
                         " ranks, got " + std::to_string(sources.size()));
  const int64_t size = byteSize(value.dtype);
  ASSIGN_OR_RETURN(library::Copy copy, copyOf(value.part, sources.front(), output, range, size));
  library::Reduce arguments{};
  std::copy(sources.begin(), sources.end(), arguments.sources);
  arguments.out = output;
  arguments.first = range.begin / size;
  arguments.count = (range.end - range.begin) / size;
  arguments.run = value.part.runBytes / size;
  arguments.rank = copy.rank;
  for (int d = 0; d < copy.rank; ++d) {
    arguments.counts[d] = copy.counts[d];
    arguments.sourceStrides[d] = copy.sourceStrides[d] / size;
    arguments.outStrides[d] = copy.destStrides[d] / size;
  }
  arguments.numSources = static_cast<int>(sources.size());
  arguments.kind = static_cast<int>(kind);
  arguments.dtype = static_cast<int>(value.dtype);
  return libraryStreamCommand(rank, "braid_reduce", arguments.count, arguments);
}

namespace {

Result<StreamCommand> makeGather(const LibraryArguments &a, const LaunchPlace &place,
                                 RankDevice &rank) {
  ASSIGN_OR_RETURN(const GatherCommand c, resolveGather(a, 1));
  rank.hasFaults[place.queue] = true;
  library::Gather arguments{};
  arguments.source = c.source;
  arguments.ids = c.ids;
  arguments.out = c.out;
  arguments.count = c.count;
  arguments.rows = c.tableRows;
  arguments.firstRow = c.part * c.tableRows;
  arguments.limit = c.limit;
  arguments.rowBytes = c.rowBytes;
  arguments.sourceStrideBytes = c.sourceStrideBytes;
  arguments.outStrideBytes = c.outStrideBytes;
  arguments.wideIds = static_cast<int>(c.wideIds);
  arguments.unit =
      unitOf({address(c.source), address(c.out), static_cast<uint64_t>(c.rowBytes),
              static_cast<uint64_t>(c.sourceStrideBytes), static_cast<uint64_t>(c.outStrideBytes)});
  arguments.fault = rank.faults + place.queue;
  arguments.command = place.number;
  return libraryStreamCommand(rank, "braid_gather", c.rowBytes ? c.count * library::kThreads : 0,
                              arguments);
}

Result<StreamCommand> makeRotaryTable(const LibraryArguments &a, const LaunchPlace &place,
                                      RankDevice &rank) {
  ASSIGN_OR_RETURN(const RotaryTableCommand c, resolveRotaryTable(a, 1, Storage::halves));
  const size_t bytes = c.frequencies.size() * sizeof(double);
  ASSIGN_OR_RETURN(Memory frequencies,
                   allocate(rank.device, bytes, place.stream, "the frequencies of a table"));
  RETURN_IF_ERROR(
      copyNow(*rank.device, frequencies.get(), address(c.frequencies.data()), bytes, place.stream));
  library::RotaryTable arguments{};
  arguments.frequencies = reinterpret_cast<const double *>(pointer(frequencies.get()));
  rank.constants.push_back(std::move(frequencies));
  arguments.scale = c.scale;
  arguments.positionOffset = integers(c.positionOffset);
  arguments.cos = c.cos;
  arguments.sin = c.sin;
  arguments.batch = c.batch;
  arguments.seq = c.seq;
  arguments.pairs = static_cast<long long>(c.frequencies.size());
  arguments.cosBatch = c.cosBatch;
  arguments.sinBatch = c.sinBatch;
  arguments.cosRow = c.cosRow;
  arguments.sinRow = c.sinRow;
  return libraryStreamCommand(rank, ofType("braid_rotary_table", c.dtype),
                              c.batch * c.seq * arguments.pairs, arguments);
}

Result<StreamCommand> makeRotary(const LibraryArguments &a, const LaunchPlace &, RankDevice &rank) {
  ASSIGN_OR_RETURN(const RotaryCommand c, resolveRotary(a, 1, Storage::halves));
  library::Rotary arguments{};
  arguments.in = c.row.in;
  arguments.cos = c.row.cos;
  arguments.sin = c.row.sin;
  arguments.out = c.row.out;
  arguments.batch = c.batch;
  arguments.seq = c.seq;
  arguments.heads = c.row.heads;
  arguments.pairs = c.row.pairs;
  arguments.inBatch = c.inBatch;
  arguments.inRow = c.inRow;
  arguments.inHead = c.row.inHead;
  arguments.outBatch = c.outBatch;
  arguments.outRow = c.outRow;
  arguments.outHead = c.row.outHead;
  arguments.cosBatch = c.cosBatch;
  arguments.cosRow = c.cosRow;
  arguments.sinBatch = c.sinBatch;
  arguments.sinRow = c.sinRow;
  return libraryStreamCommand(rank, ofType("braid_rotary", c.dtype),
                              c.batch * c.seq * c.row.heads * c.row.pairs, arguments);
}

/// A call of a kernel whose arguments follow its descriptor.
Result<StreamCommand> makeCall(const LibraryArguments &a, RankDevice &rank) {
  if (a.operands.size() > library::kMaxOperands || a.integers.size() > library::kMaxScalars ||
      a.numbers.size() > library::kMaxScalars)
    return Status::error("expects at most " + std::to_string(library::kMaxOperands) +
                         " operands and " + std::to_string(library::kMaxScalars) + " scalars");
  library::Call call{};
  for (size_t i = 0; i < a.operands.size(); ++i) {
    if (!a.LibraryCall::has(i))
      continue;
    library::Operand &operand = call.operands[i];
    operand.data = a.data[i];
    operand.dtype = static_cast<int>(a[i].dtype);
    operand.rank = static_cast<int>(a[i].rank());
    std::copy(a[i].shape.begin(), a[i].shape.end(), operand.sizes);
    std::copy(a[i].strides.begin(), a[i].strides.end(), operand.strides);
  }
  std::copy(a.integers.begin(), a.integers.end(), call.integers);
  std::copy(a.numbers.begin(), a.numbers.end(), call.numbers);
  call.rows = a.rows();
  call.part = a.part;
  call.parts = a.parts;
  return libraryStreamCommand(rank, std::string("braid_") + a.kernel->name, call.rows * 32, call);
}

Result<StreamCommand> refuse(const LibraryArguments &a, const LaunchPlace &, RankDevice &) {
  return Status::error(a.kernel->name, " is not implemented on target 'cuda'");
}

Result<StreamCommand> makeReduceDims(const LibraryArguments &a, const LaunchPlace &,
                                     RankDevice &rank) {
  if (const DType type = a[0].dtype; type == DType::f64)
    return Status::error(std::string("reduce_dims of ") + name(type) +
                         " is not implemented on target 'cuda'");
  return makeCall(a, rank);
}

Result<StreamCommand> makeQuantizeRows(const LibraryArguments &a, const LaunchPlace &,
                                       RankDevice &rank) {
  if (const DType type = a[0].dtype; type != DType::f32)
    return Status::error("quantize_rows of ", name(type), " is not implemented on target 'cuda'");
  return makeCall(a, rank);
}

Result<StreamCommand> makeAppend(const LibraryArguments &a, const LaunchPlace &place,
                                 RankDevice &rank) {
  const AppendCommand c = resolveAppend(a);
  const Tensor source = a.tensor("source"), cache = a.tensor("cache");
  const StridedRuns all =
      runsOf(source.shape, byteSize(source.dtype), source.strides, cache.strides);
  rank.hasFaults[place.queue] = true;
  library::Append arguments{};
  // Units also divide what positions and rows move them by.
  ASSIGN_OR_RETURN(arguments.copy,
                   copyOf(all, c.source, c.cache, {0, all.bytes()}, c.stepBytes | c.runs.bytes()));
  arguments.positions = integers(c.positions);
  arguments.rowUnits = c.runs.bytes() / arguments.copy.unit;
  arguments.stepBytes = c.stepBytes;
  arguments.last = c.last;
  arguments.fault = rank.faults + place.queue;
  arguments.command = place.number;
  return libraryStreamCommand(rank, "braid_append", arguments.copy.units, arguments);
}

Result<StreamCommand> makePart(const LibraryArguments &a, const LaunchPlace &, RankDevice &rank) {
  ASSIGN_OR_RETURN(CopyCommand copy, resolvePart(a));
  return makeCopy(copy, rank);
}

Result<StreamCommand> makeAttention(const LibraryArguments &a, const LaunchPlace &,
                                    RankDevice &rank) {
  ASSIGN_OR_RETURN(const AttentionCommand c, resolveAttention(a, 1, 1, Storage::halves));
  const AttentionBlock &b = c.block;
  if (std::max(b.headDim, b.valueDim) > 32 * library::kMaxHeadPerLane)
    return Status::error(
        "expects heads of at most " + std::to_string(32 * library::kMaxHeadPerLane) +
        " elements on target 'cuda', got " + std::to_string(std::max(b.headDim, b.valueDim)));
  library::Attention arguments{};
  arguments.query = b.query;
  arguments.key = b.key;
  arguments.value = b.value;
  arguments.out = b.out;
  arguments.batch = c.batch;
  arguments.queries = c.rowsPerHead / b.group;
  arguments.heads = c.kvHeads * b.group;
  arguments.keys = b.keys;
  arguments.headDim = b.headDim;
  arguments.valueDim = b.valueDim;
  arguments.group = b.group;
  arguments.queryBatch = c.queryBatch;
  arguments.queryRow = b.queryStride;
  arguments.queryHead = b.queryHeadStride;
  arguments.outBatch = c.outBatch;
  arguments.outRow = b.outStride;
  arguments.outHead = b.outHeadStride;
  arguments.keyBatch = c.keyBatch;
  arguments.keyRow = b.keyStride;
  arguments.keyHead = c.keyHead;
  arguments.valueBatch = c.valueBatch;
  arguments.valueRow = b.valueStride;
  arguments.valueHead = c.valueHead;
  arguments.mask = {b.mask, b.maskStride, static_cast<int>(b.wideMask)};
  arguments.maskBatch = c.maskBatchBytes / byteSize(b.wideMask ? DType::i64 : DType::i32);
  arguments.validLength = integers(c.validLength);
  arguments.positionOffset = integers(c.positionOffset);
  arguments.scale = b.scale;
  arguments.causal = static_cast<int>(b.causal);
  arguments.logSum = b.logSum;
  arguments.logSumBatch = c.logSumBatch;
  arguments.logSumRow = b.logSumStride;
  arguments.logSumHead = b.logSumHeadStride;
  const int64_t warps = arguments.batch * arguments.queries * arguments.heads;
  return libraryStreamCommand(rank, ofType("braid_attention", c.dtype), warps * 32, arguments);
}

struct DeviceKernel {
  const char *name;
  Result<StreamCommand> (*make)(const LibraryArguments &a, const LaunchPlace &place,
                                RankDevice &rank);
};
constexpr DeviceKernel kDeviceKernels[] = {
    {"matmul", makeMatmul},
    {"attention", makeAttention},
    {"rotary_table", makeRotaryTable},
    {"rotary", makeRotary},
    {"embedding", makeGather},
    {"reduce_dims", makeReduceDims},
    {"part", makePart},
    {"append", makeAppend},
    {"encode", makeCodec},
    {"decode", makeCodec},
    {"decode_sum", makeCodec},
    {"fake_quantize", refuse},
    {"quantize_rows", makeQuantizeRows},
};

} // namespace

Result<StreamCommand> makeLibrary(const LibraryArguments &arguments, const LaunchPlace &place,
                                  RankDevice &rank) {
  for (const DeviceKernel &kernel : kDeviceKernels)
    if (std::strcmp(kernel.name, arguments.kernel->name) == 0)
      return kernel.make(arguments, place, rank);
  return makeCall(arguments, rank);
}

} // namespace braid::runtime::cuda
