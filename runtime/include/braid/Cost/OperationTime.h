//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The time of an operation on a machine: a roofline whose rates were measured, or published.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_OPERATIONTIME_H
#define BRAID_COST_OPERATIONTIME_H

#include "braid/Base/LibraryKernels.h"
#include "braid/Cost/Machine.h"

#include <memory>
#include <utility>

namespace braid::cost {

/// The arithmetic of one row of a kernel, by class of operation (program.fbs, RowWork).
using RowWork = std::vector<std::pair<std::string, double>>;

/// How many cores compute at the same time, and how many of them share one operation.
struct ComputeUse {
  int64_t busyCores = 1, threads = 1;
};

/// Times on one core, or GPU, with a machine's rates. Errors name the figure that the machine file
/// lacks.
class OperationTimes {
public:
  /// Between two numbers of busy cores, times are linear in their number.
  OperationTimes(const Machine &machine, ComputeUse use);
  ~OperationTimes();
  OperationTimes(OperationTimes &&) noexcept;

  /// A kernel of the library. On a processor: a matmul by its size (one of a batch after the
  /// other); attention by query rows, keys and head size; encode, decode and decode_sum by their
  /// encoding and elements; the others as rows, with the kernel's name as the operation if the file
  /// has its rate, or else by their traffic alone.
  Result<double> ofLibrary(const runtime::LibraryCall &call) const;
  /// How many seconds less a product takes than by `ofLibrary`, which takes its right side from
  /// memory, where a core has used so many bytes of memory since it last used that: what it reads
  /// of the right side is no longer than from there. 0 for all others, on a GPU, and where the file
  /// has no `weight_reads`.
  double savedByCaches(const runtime::LibraryCall &call, double usedBytes) const;
  /// A call of encode, decode or decode_sum on some or all of a tensor of `elements`, for which
  /// calls read and write `bytes` in all: if these are more elements than the file has, no less
  /// than the call's traffic at the rate of so many bytes, as caches have no part of them.
  Result<double> ofCodec(const runtime::LibraryCall &call, double elements, double bytes) const;
  /// A kernel on rows: the longer of its arithmetic, whose operations add up, and its traffic.
  /// `codecs` are the calls of encode, decode and decode_sum that it does on its rows instead of
  /// reading or writing them, which are arithmetic.
  Result<double> ofRows(const RowWork &workOfRow, double rows, double bytesRead,
                        double bytesWritten,
                        const std::vector<runtime::LibraryCall> &codecs = {}) const;
  Result<double> ofCopy(double bytes) const;

private:
  struct Rates;
  std::vector<Rates> rates; ///< by ascending busy cores, at most two
  std::vector<double> weights;
  const std::optional<Gpu> gpu;
  double commandSeconds = 0;
  int64_t threads = 1;

  template <typename Time> Result<double> weighted(const Time &time) const;
};

/// Whether the call uses only some rows of its table, its cache or a source that is longer.
bool usesRows(const runtime::LibraryCall &call);

/// The bytes that a call of a library kernel reads and writes: those of its operands, except that
/// of a table, a cache or a source that is longer only the rows are read that the result has.
double bytesOf(const runtime::LibraryCall &call);

/// The part of `keys` that `positions` see on average under a causal mask: position s sees s + 1,
/// or, with an offset, those of a cache that is full with the last position.
double causalPart(int64_t positions, int64_t keys, bool hasOffset);

} // namespace braid::cost
#endif // BRAID_COST_OPERATIONTIME_H
