//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Launches of library kernels with operands by name, for programs written by hand.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_LIBRARYLAUNCHES_H
#define BRAID_TEST_UNIT_RUNTIME_LIBRARYLAUNCHES_H

#include "braid/Base/LibraryKernels.h"
#include "braid/Program/program_generated.h"

#include <memory>
#include <type_traits>

namespace braid::runtime::testing {

using ViewPtr = std::unique_ptr<program::ViewT>;
using AxisRefs = std::vector<std::unique_ptr<program::AxisRefT>>;

struct LibraryLaunch {
  std::string kernel;
  std::vector<ViewPtr> operands; ///< in the descriptor's order; null: absent
  std::vector<int64_t> integers = {};
  std::vector<double> numbers = {};
  AxisRefs axes = {};
};

/// Adds the kernel to the program; returns its launch.
inline program::LaunchT launchIn(program::ProgramT &program, LibraryLaunch call) {
  const LibraryKernel &library = *findLibraryKernel(call.kernel);
  auto kernel = std::make_unique<program::KernelT>();
  kernel->symbol = call.kernel + "." + std::to_string(program.kernels.size());
  kernel->library = std::make_unique<program::LibraryCallT>();
  kernel->library->name = call.kernel;
  kernel->library->integers = std::move(call.integers);
  kernel->library->numbers = std::move(call.numbers);
  kernel->library->axes = std::move(call.axes);
  program::LaunchT launch;
  launch.kernel = static_cast<uint32_t>(program.kernels.size());
  LibraryCall types;
  types.kernel = &library;
  uint32_t bit = 1;
  for (size_t i = 0; i < library.operands.size(); ++i) {
    ViewPtr &view = call.operands[i];
    types.operands.emplace_back();
    if (view)
      types.operands[i] = {static_cast<DType>(view->dtype), view->shape, view->strides};
    if (library.operands[i].optional) {
      kernel->library->optional |= view ? bit : 0;
      bit *= 2;
    }
    if (view)
      launch.operands.push_back(std::move(view));
  }
  kernel->num_outputs = static_cast<uint32_t>(library.numOutputs(kernel->library->optional));
  launch.rows = types.rows();
  kernel->num_operands = static_cast<uint32_t>(launch.operands.size());
  program.kernels.push_back(std::move(kernel));
  return launch;
}

template <typename... Views> std::vector<ViewPtr> viewsOf(Views &...views) {
  std::vector<ViewPtr> result;
  (result.push_back(std::move(views)), ...);
  return result;
}

/// lhs . rhs^T, unless the flags say otherwise.
struct MatmulLaunch {
  ViewPtr lhs, rhs, bias, counts, lhs_scale, rhs_scale, out;
  bool transpose_lhs = false, transpose_rhs = true, accumulate = false;
  LibraryLaunch launch() {
    return {"matmul",
            viewsOf(lhs, rhs, bias, counts, lhs_scale, rhs_scale, out),
            {transpose_lhs, transpose_rhs, accumulate}};
  }
};
struct AttentionLaunch {
  ViewPtr query, key, value, mask, valid_length, position_offset, out, log_sum;
  double scale = 0;
  bool causal = false;
  LibraryLaunch launch() {
    return {"attention",
            viewsOf(query, key, value, mask, valid_length, position_offset, out, log_sum),
            {causal},
            {scale}};
  }
};
struct RotaryTableLaunch {
  std::vector<double> frequencies;
  double scale = 1;
  ViewPtr position_offset, cos, sin;
  LibraryLaunch launch() {
    std::vector<double> numbers{scale};
    numbers.insert(numbers.end(), frequencies.begin(), frequencies.end());
    return {"rotary_table", viewsOf(position_offset, cos, sin), {}, numbers};
  }
};
struct RotaryLaunch {
  ViewPtr input, cos, sin, out;
  LibraryLaunch launch() { return {"rotary", viewsOf(input, cos, sin, out)}; }
};
struct EmbeddingLaunch {
  ViewPtr table, ids, out;
  AxisRefs axes;
  int64_t rows = 0;
  LibraryLaunch launch() {
    return {"embedding", viewsOf(table, ids, out), {rows}, {}, std::move(axes)};
  }
};
struct PositionIdsLaunch {
  ViewPtr ids, out;
  int64_t padding = 0;
  LibraryLaunch launch() { return {"position_ids", viewsOf(ids, out), {padding}}; }
};
/// `code` is Encoding::code, `type` the DType of the tensor that was encoded.
struct EncodeLaunch {
  ViewPtr input, payload;
  int64_t code = 0, first = 0;
  AxisRefs axes;
  LibraryLaunch launch() {
    return {"encode", viewsOf(input, payload), {code, first}, {}, std::move(axes)};
  }
};
struct DecodeLaunch {
  ViewPtr payload, out;
  int64_t code = 0, type = 0;
  bool absent = false;
  LibraryLaunch launch() { return {"decode", viewsOf(payload, out), {code, type, absent}}; }
};
struct DecodeSumLaunch {
  ViewPtr payload, own, out;
  int64_t code = 0, type = 0, senders = 1;
  AxisRefs axes;
  LibraryLaunch launch() {
    return {"decode_sum", viewsOf(payload, own, out), {code, type, senders}, {}, std::move(axes)};
  }
};
struct QuantizeRowsLaunch {
  ViewPtr input, values, scales;
  LibraryLaunch launch() { return {"quantize_rows", viewsOf(input, values, scales)}; }
};
struct PartLaunch {
  ViewPtr source, dest;
  int64_t dim = 0, shift = 0;
  AxisRefs axes;
  LibraryLaunch launch() {
    return {"part", viewsOf(source, dest), {dim, shift}, {}, std::move(axes)};
  }
};

template <typename Op, typename = void> struct IsLibraryLaunch : std::false_type {};
template <typename Op>
struct IsLibraryLaunch<Op, std::void_t<decltype(std::declval<Op &>().launch())>> : std::true_type {
};

/// The operation of a command; for a call of a library kernel, its launch.
template <typename Op> auto operationIn(program::ProgramT &program, Op op) {
  if constexpr (IsLibraryLaunch<Op>::value)
    return launchIn(program, op.launch());
  else
    return op;
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_LIBRARYLAUNCHES_H
