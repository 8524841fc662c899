//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The generated kernels of a bundle. Those that decode or encode are listed, but not measured.
//
//===----------------------------------------------------------------------===//
#include "CudaBenchmark.h"

#include <algorithm>

namespace braid::runtime::cuda {

namespace {

constexpr int64_t kMaxItems = int64_t(1) << 31;

/// Bytes of an operand that each row has, or that there are whatever the rows.
int64_t operandBytes(const CudaOperand &operand) {
  int64_t bytes = byteSize(operand.dtype);
  for (size_t d = operand.isRow() ? 1 : 0; d < operand.shape.size(); ++d)
    bytes *= operand.shape[d];
  return bytes;
}

Status measure(CudaBenchmark &benchmark, const CudaKernel &kernel, double copyRate,
               nlohmann::ordered_json &entry) {
  int64_t perRow = 0, fixed = 0;
  for (const CudaOperand &operand : kernel.operands)
    (operand.isRow() ? perRow : fixed) += operandBytes(operand);
  int64_t rows = 1;
  if (perRow > 0)
    rows = std::clamp<int64_t>((benchmark.options.bytes - fixed) / perRow, 1,
                               std::max<int64_t>(kMaxItems / kernel.itemsPerRow, 1));
  std::vector<Memory> operands;
  std::vector<uint64_t> words;
  for (const CudaOperand &operand : kernel.operands) {
    const int64_t bytes = operandBytes(operand) * (operand.isRow() ? rows : 1);
    ASSIGN_OR_RETURN(operands.emplace_back(),
                     benchmark.get(static_cast<size_t>(bytes), "operand '" + operand.name + "'"));
    words.push_back(operands.back().get());
    const size_t first = words.size();
    words.resize(first + operand.numStrides());
    int64_t stride = 1;
    for (size_t d = operand.numStrides(); d-- > 0;) {
      stride *= operand.shape[d + 1];
      words[first + d] = static_cast<uint64_t>(stride);
    }
  }
  auto launchRows = static_cast<unsigned>(rows);
  std::vector<void *> parameters;
  for (uint64_t &word : words)
    parameters.push_back(&word);
  parameters.push_back(&launchRows);
  ASSIGN_OR_RETURN(CUfunction function, benchmark.kernels->generated(kernel));
  const Driver &api = benchmark.device->api();
  ASSIGN_OR_RETURN(const double seconds, benchmark.time([&] {
    return api.check(api.cuLaunchKernel(function, static_cast<unsigned>(kernel.blocks(rows)), 1, 1,
                                        static_cast<unsigned>(kernel.threads), 1, 1,
                                        static_cast<unsigned>(kernel.sharedBytes),
                                        benchmark.stream.get(), parameters.data(), nullptr),
                     "cuLaunchKernel");
  }));
  const int64_t bytes = perRow * rows + fixed;
  const double rate = static_cast<double>(bytes) / seconds;
  entry = {{"kernel", kernel.symbol}, {"rows", rows},        {"bytes", bytes},
           {"seconds", seconds},      {"bytes_per_s", rate}, {"of_copy", rate / copyRate}};
  return {};
}

} // namespace

Status measureKernels(CudaBenchmark &benchmark, double copyRate, nlohmann::ordered_json &report) {
  report["kernels"] = nlohmann::ordered_json::array();
  for (const CudaKernel &kernel : benchmark.table.kernels) {
    // What they decode must have been encoded before.
    if (std::any_of(kernel.operands.begin(), kernel.operands.end(),
                    [](const CudaOperand &operand) { return !operand.codec.empty(); })) {
      report["not_measured"].push_back(kernel.symbol);
      continue;
    }
    nlohmann::ordered_json entry;
    if (Status status = measure(benchmark, kernel, copyRate, entry); !status.ok())
      return Status::error("kernel '", kernel.symbol, "': ", status.message(), status.code());
    report["kernels"].push_back(std::move(entry));
  }
  return {};
}

} // namespace braid::runtime::cuda
