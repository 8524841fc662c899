//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Cost/OperationTime.h"

#include "CodecRates.h"
#include "Interpolation.h"
#include "braid/Base/MatmulForm.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace braid::cost {

using runtime::inQuotes;
using runtime::LibraryCall;
using runtime::MatmulForm;

namespace {

double bytesOf(const runtime::OperandType &operand) {
  double bytes = static_cast<double>(runtime::byteSize(operand.dtype));
  for (int64_t size : operand.shape)
    bytes *= static_cast<double>(size);
  return bytes;
}

double elementsOf(const runtime::OperandType &operand) {
  return bytesOf(operand) / static_cast<double>(runtime::byteSize(operand.dtype));
}

/// The largest of `threads` parts.
double share(double total, int64_t threads) {
  return std::ceil(total / static_cast<double>(threads));
}

/// Places in the descriptor of attention.
enum AttentionOperand : size_t { positionOffset = 5 };

bool is(const LibraryCall &call, const char *name) {
  return std::strcmp(call.kernel->name, name) == 0;
}

} // namespace

bool usesRows(const LibraryCall &call) {
  for (const char *name : {"embedding", "last_token", "part", "append"})
    if (is(call, name))
      return true;
  return false;
}

double bytesOf(const LibraryCall &call) {
  // These read as much as they write.
  if (usesRows(call))
    return 2 * bytesOf(call[is(call, "append") ? 0 : call.kernel->firstOutput()]);
  if (is(call, "encode"))
    return runtime::encodedShare(call) * bytesOf(call[runtime::codecRows(call)]) +
           bytesOf(call[runtime::codecPayload(call)]);
  double bytes = 0;
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (call.has(i)) {
      const bool reads = call.kernel->reads(i, call.integers), writes = call.kernel->writes(i);
      bytes += (int(reads) + int(writes)) * bytesOf(call[i]);
    }
  return bytes;
}

double causalPart(int64_t positions, int64_t keys, bool hasOffset) {
  const auto p = static_cast<double>(positions), k = static_cast<double>(keys);
  if (hasOffset && positions <= keys)
    return (k - (p - 1) / 2) / k;
  // The first k positions see (k + 1) / 2 on average, those behind them all.
  const double first = std::min(p, k);
  return (first * (first + 1) / 2 + (p - first) * k) / (p * k);
}

namespace {

/// What each core computes of a product, as the kernel shares it out (MatmulCommand.cpp).
struct ProductShare {
  double matrices, m, n, k;
  double rhsBytes; ///< that it reads of right sides
  bool isInt8;

  double flops() const { return matrices * 2 * m * n * k; }

  static Result<ProductShare> of(const LibraryCall &call, int64_t threads) {
    ASSIGN_OR_RETURN(const MatmulForm form, MatmulForm::of(call));
    ProductShare s{static_cast<double>(form.batch),
                   static_cast<double>(form.m),
                   static_cast<double>(form.n),
                   static_cast<double>(form.k),
                   0,
                   call[0].dtype == runtime::DType::i8};
    int64_t shares = threads;
    if (form.batch > 1) {
      s.matrices = share(s.matrices, threads);
      shares = (threads + form.batch - 1) / form.batch;
    }
    if (shares > 1) {
      double &shared = form.m >= shares * 16 ? s.m : s.n;
      shared = share(shared, shares);
    }
    s.rhsBytes = (form.rhs.batch == 0 ? 1 : s.matrices) * s.n * s.k *
                 static_cast<double>(runtime::byteSize(call[MatmulForm::rhsOperand].dtype));
    return s;
  }
};

} // namespace

/// The rates of one number of busy cores, ready for interpolation.
struct OperationTimes::Rates {
  explicit Rates(const ComputeRates &rates)
      : matmul(pointsOf(rates.matmul)), int8Matmul(pointsOf(rates.int8Matmul)),
        attention{attentionOf(rates, false), attentionOf(rates, true)}, memory(memoryOf(rates)),
        rowOverlap(rates.rowOverlapEfficiency.value_or(1)), codecs(rates.codecs),
        weightReads(weightReadsOf(rates)) {
    for (const WeightReadPoint &point : rates.weightReads)
      mostWeightBytes = std::max(mostWeightBytes, static_cast<double>(point.bytes));
    for (const OperationRate &rate : rates.rowOperations)
      rowOperations[rate.operation] = rate.elementsPerSecond;
  }

  static std::vector<std::pair<std::array<int64_t, 3>, double>>
  pointsOf(const std::vector<MatmulPoint> &points) {
    std::vector<std::pair<std::array<int64_t, 3>, double>> result;
    for (const MatmulPoint &p : points)
      result.push_back({{p.m, p.n, p.k}, p.flopsPerSecond});
    return result;
  }
  static RateGrid<3> attentionOf(const ComputeRates &rates, bool causal) {
    std::vector<std::pair<std::array<int64_t, 3>, double>> result;
    for (const AttentionPoint &p : rates.attention)
      if (p.causal == causal)
        result.push_back({{p.rows, p.keys, p.headDim}, p.flopsPerSecond});
    return RateGrid<3>(result);
  }
  static RateGrid<1> memoryOf(const ComputeRates &rates) {
    std::vector<std::pair<std::array<int64_t, 1>, double>> result;
    for (const MemoryPoint &p : rates.memory)
      result.push_back({{p.bytes}, p.copyBytesPerSecond});
    return RateGrid<1>(result);
  }

  static RateGrid<2> weightReadsOf(const ComputeRates &rates) {
    std::vector<std::pair<std::array<int64_t, 2>, double>> result;
    for (const WeightReadPoint &p : rates.weightReads)
      result.push_back({{p.rows, p.bytes}, p.bytesPerSecond});
    return RateGrid<2>(result);
  }

  Result<double> secondsOfTraffic(double bytes, double wholeBytes) const {
    if (bytes == 0)
      return 0.0;
    if (memory.empty())
      return Status::error("the machine file has no rates of memory");
    return bytes / memory.rate({wholeBytes});
  }

  Result<double> secondsOf(const ProductShare &share) const {
    const RateGrid<3> &grid = share.isInt8 ? int8Matmul : matmul;
    if (grid.empty())
      return Status::error("the machine file has no rates of ",
                           share.isInt8 ? "int8_matmul" : "matmul");
    return share.flops() / grid.rate({share.m, share.n, share.k});
  }

  /// Of a product that takes so many seconds where its right side comes from memory.
  double savedByCaches(const ProductShare &share, double seconds, double usedBytes) const {
    if (weightReads.empty())
      return 0;
    const double read = share.rhsBytes / weightReads.rate({share.m, usedBytes}),
                 fromMemory = share.rhsBytes / weightReads.rate({share.m, mostWeightBytes});
    return std::max(0.0, std::min(fromMemory, seconds) - read);
  }

  RateGrid<3> matmul, int8Matmul;
  RateGrid<3> attention[2]; ///< without and with a causal mask
  std::map<std::string, double> rowOperations;
  RateGrid<1> memory; ///< read and written bytes
  double rowOverlap;
  CodecRates codecs;
  RateGrid<2> weightReads; ///< by rows and bytes
  double mostWeightBytes = 0;
};

OperationTimes::OperationTimes(const Machine &machine, ComputeUse use)
    : gpu(machine.gpu), threads(use.threads) {
  if (machine.overheads)
    commandSeconds = machine.overheads->commandSeconds;
  const std::vector<ComputeRates> &all = machine.compute;
  if (all.empty())
    return;
  size_t upper = 0;
  while (upper + 1 < all.size() && all[upper].busyCores < use.busyCores)
    ++upper;
  const auto busy = static_cast<double>(use.busyCores);
  if (upper == 0 || busy >= static_cast<double>(all[upper].busyCores)) {
    rates.emplace_back(all[upper]);
    weights = {1};
    return;
  }
  const auto from = static_cast<double>(all[upper - 1].busyCores),
             to = static_cast<double>(all[upper].busyCores);
  rates.emplace_back(all[upper - 1]);
  rates.emplace_back(all[upper]);
  weights = {(to - busy) / (to - from), (busy - from) / (to - from)};
}

OperationTimes::~OperationTimes() = default;
OperationTimes::OperationTimes(OperationTimes &&) noexcept = default;

template <typename Time> Result<double> OperationTimes::weighted(const Time &time) const {
  if (rates.empty())
    return Status::error("the machine file has no rates of a processor");
  double seconds = commandSeconds;
  for (size_t i = 0; i < rates.size(); ++i) {
    ASSIGN_OR_RETURN(const double of, time(rates[i]));
    seconds += weights[i] * of;
  }
  return seconds;
}

/// On a GPU: the longer of arithmetic and traffic, behind a launch.
static Result<double> onGpu(const Gpu &gpu, const char *unit, const std::string &dtype,
                            double flops, double bytes) {
  const double traffic = bytes / gpu.memoryBytesPerSecond;
  if (flops == 0)
    return gpu.launchSeconds + traffic;
  for (const PeakRate &peak : gpu.peaks)
    if (peak.unit == unit && peak.dtype == dtype) {
      const double efficiency = std::strcmp(unit, "matrix") == 0 ? gpu.matmulEfficiency : 1;
      return gpu.launchSeconds + std::max(flops / (efficiency * peak.flopsPerSecond), traffic);
    }
  return Status::error("the machine file has no peak rate of ", unit, " operations on ", dtype);
}

Result<double> OperationTimes::ofLibrary(const LibraryCall &call) const {
  const double bytes = cost::bytesOf(call);
  const double flops = call.kernel->flops(call);
  const bool matmul = is(call, "matmul"), attention = is(call, "attention");
  const runtime::OperandType &out = call[call.kernel->firstOutput()];
  if (CodecRates::isCodec(call))
    return ofCodec(call, CodecRates::elementsOf(call), bytes);
  if (gpu) {
    // Products of f32 are computed as such: on vector units.
    const runtime::DType type = matmul || attention ? call[0].dtype : out.dtype;
    const bool matrix = (matmul || attention) && type != runtime::DType::f32;
    return onGpu(*gpu, matrix ? "matrix" : "vector", runtime::name(type), flops, bytes);
  }
  if (matmul) {
    ASSIGN_OR_RETURN(const ProductShare share, ProductShare::of(call, threads));
    return weighted([&](const Rates &r) { return r.secondsOf(share); });
  }
  if (attention) {
    const auto &query = call[0].shape, &key = call[1].shape;
    const auto groups = static_cast<double>(query[0] * key[2]);
    const double rows =
        static_cast<double>(query[1]) * static_cast<double>(query[2]) / static_cast<double>(key[2]);
    const bool causal = call.integers[0] != 0;
    const double seen =
        causal ? flops * causalPart(query[1], key[1],
                                    call.operands[AttentionOperand::positionOffset].has_value())
               : flops;
    return weighted([&](const Rates &r) -> Result<double> {
      const RateGrid<3> &grid = r.attention[causal ? 1 : 0];
      if (grid.empty())
        return Status::error("the machine file has no rates of attention");
      const double shared = groups >= static_cast<double>(threads)
                                ? share(groups, threads) / groups
                                : 1 / static_cast<double>(threads);
      return shared * seen /
             grid.rate({rows, static_cast<double>(key[1]), static_cast<double>(query[3])});
    });
  }
  return weighted([&](const Rates &r) -> Result<double> {
    ASSIGN_OR_RETURN(double seconds, r.secondsOfTraffic(bytes, bytes));
    if (auto rate = r.rowOperations.find(call.kernel->name); rate != r.rowOperations.end())
      seconds = std::max(seconds, elementsOf(out) / rate->second);
    return seconds / static_cast<double>(threads);
  });
}

double OperationTimes::savedByCaches(const LibraryCall &call, double usedBytes) const {
  if (gpu || !is(call, "matmul"))
    return 0;
  const Result<ProductShare> share = ProductShare::of(call, threads);
  if (!share.ok())
    return 0;
  const Result<double> saved = weighted([&](const Rates &r) -> Result<double> {
    ASSIGN_OR_RETURN(const double seconds, r.secondsOf(*share));
    return r.savedByCaches(*share, seconds, usedBytes / static_cast<double>(threads));
  });
  return saved.ok() ? *saved - commandSeconds : 0;
}

Result<double> OperationTimes::ofCodec(const LibraryCall &call, double elements,
                                       double bytes) const {
  const double ofCall = cost::bytesOf(call);
  if (gpu)
    return onGpu(*gpu, "vector", "f32", call.kernel->flops(call), ofCall);
  return weighted([&](const Rates &r) -> Result<double> {
    ASSIGN_OR_RETURN(double seconds, r.codecs.seconds(call));
    // What was measured were tensors that the largest cache has, or some of them.
    if (r.codecs.isBeyond(elements) && !r.memory.empty()) {
      ASSIGN_OR_RETURN(const double traffic, r.secondsOfTraffic(ofCall, bytes));
      seconds = std::max(seconds, traffic);
    }
    return seconds / static_cast<double>(threads);
  });
}

Result<double> OperationTimes::ofRows(const RowWork &workOfRow, double rows, double bytesRead,
                                      double bytesWritten,
                                      const std::vector<LibraryCall> &codecs) const {
  const double bytes = bytesRead + bytesWritten;
  if (gpu) {
    double flops = 0;
    for (const auto &[operation, count] : workOfRow)
      flops += count * rows;
    for (const LibraryCall &call : codecs)
      flops += call.kernel->flops(call);
    return onGpu(*gpu, "vector", "f32", flops, bytes);
  }
  return weighted([&](const Rates &r) -> Result<double> {
    double arithmetic = 0;
    for (const auto &[operation, count] : workOfRow) {
      auto rate = r.rowOperations.find(operation);
      if (rate == r.rowOperations.end())
        return Status::error("the machine file has no rate of the row operation ",
                             inQuotes(operation));
      arithmetic += count * rows / rate->second;
    }
    for (const LibraryCall &call : codecs) {
      ASSIGN_OR_RETURN(const double seconds, r.codecs.secondsInCache(call));
      arithmetic += seconds;
    }
    ASSIGN_OR_RETURN(const double traffic, r.secondsOfTraffic(bytes, bytes));
    const double longer = std::max(arithmetic, traffic), shorter = std::min(arithmetic, traffic);
    return (longer + (1 - r.rowOverlap) * shorter) / static_cast<double>(threads);
  });
}

Result<double> OperationTimes::ofCopy(double bytes) const {
  if (gpu)
    return onGpu(*gpu, "vector", "f32", 0, 2 * bytes);
  return weighted([&](const Rates &r) { return r.secondsOfTraffic(2 * bytes, 2 * bytes); });
}

} // namespace braid::cost
