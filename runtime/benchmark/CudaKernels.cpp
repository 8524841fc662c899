//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures the generated kernels of a bundle on the first GPU against a copy within its memory,
// which is as fast as what only moves bytes can be. Each kernel gets as many rows as make it move
// as many bytes as the copy: every input read once and every output written once, whatever the
// kernel does beyond that. Kernels that decode or encode are listed, but not measured. Prints JSON.
//
//   BraidCudaBenchmark BUNDLE [--bytes N] [--repeat K] [--cuda-library FILE]
//
//===----------------------------------------------------------------------===//
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Cuda/Kernels.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>

using namespace braid::runtime;
using namespace braid::runtime::cuda;

namespace {

constexpr int64_t kMaxItems = int64_t(1) << 31;
constexpr int64_t kLimitNs = int64_t(60) * 1000000000; ///< of what is waited for

struct Options {
  std::string bundle, cudaLibrary;
  int64_t bytes = int64_t(512) << 20; ///< that a kernel moves, several times what caches hold
  int64_t repeat = 20;
};

/// Bytes of an operand that each row has, or that there are whatever the rows.
int64_t operandBytes(const CudaOperand &operand) {
  int64_t bytes = byteSize(operand.dtype);
  for (size_t d = operand.isRow() ? 1 : 0; d < operand.shape.size(); ++d)
    bytes *= operand.shape[d];
  return bytes;
}

class Benchmark {
public:
  static Result<nlohmann::ordered_json> run(const Options &options) {
    Benchmark benchmark(options);
    nlohmann::ordered_json report;
    Status status = benchmark.open();
    if (status.ok())
      status = benchmark.measureAll(report);
    RETURN_IF_ERROR(status);
    return report;
  }

private:
  explicit Benchmark(const Options &options) : options(options) {}

  Status open() {
    ASSIGN_OR_RETURN(bundle, Bundle::read(options.bundle));
    ASSIGN_OR_RETURN(std::shared_ptr<const Driver> driver, Driver::load(options.cudaLibrary));
    ASSIGN_OR_RETURN(device, Device::open(driver, 0, kLimitNs));
    ASSIGN_OR_RETURN(const KernelLibrary *library, chooseLibrary(*bundle, *device));
    const Bytes *launches = bundle->find(library->launchesMember);
    if (!launches)
      return Status::error("the bundle lacks its member '", library->launchesMember, "'");
    ASSIGN_OR_RETURN(table,
                     CudaLaunchTable::fromJson(std::string(
                         reinterpret_cast<const char *>(launches->data()), launches->size())));
    ASSIGN_OR_RETURN(kernels, Kernels::load(*bundle, *library, table, device));
    ASSIGN_OR_RETURN(stream, createStream(device));
    for (Event *event : {&begin, &end}) {
      ASSIGN_OR_RETURN(*event, createEvent(device, /*timed=*/true));
    }
    return {};
  }

  Status measureAll(nlohmann::ordered_json &report) {
    const Driver &api = device->api();
    const auto half = static_cast<size_t>(std::max<int64_t>(options.bytes / 2, 1));
    double copySeconds = 0;
    {
      Memory from, to;
      for (Memory *memory : {&from, &to})
        RETURN_IF_ERROR(get(*memory, half, "what is copied"));
      RETURN_IF_ERROR(time(copySeconds, [&] {
        return api.check(api.cuMemcpyAsync(to.get(), from.get(), half, stream.get()),
                         "cuMemcpyAsync");
      }));
    }
    const double copyRate = 2.0 * static_cast<double>(half) / copySeconds;
    report["device"] = device->name;
    report["compute_capability"] =
        std::to_string(device->major) + "." + std::to_string(device->minor);
    report["architecture"] = table.architecture;
    report["copy"] = {{"bytes", 2 * half}, {"seconds", copySeconds}, {"bytes_per_s", copyRate}};
    report["kernels"] = nlohmann::ordered_json::array();
    for (const CudaKernel &kernel : table.kernels) {
      // What they decode must have been encoded before.
      if (std::any_of(kernel.operands.begin(), kernel.operands.end(),
                      [](const CudaOperand &operand) { return !operand.codec.empty(); })) {
        report["not_measured"].push_back(kernel.symbol);
        continue;
      }
      nlohmann::ordered_json entry;
      if (Status status = measure(kernel, copyRate, entry); !status.ok())
        return Status::error("kernel '", kernel.symbol, "': ", status.message(), status.code());
      report["kernels"].push_back(std::move(entry));
    }
    return {};
  }

  Status measure(const CudaKernel &kernel, double copyRate, nlohmann::ordered_json &entry) {
    int64_t perRow = 0, fixed = 0;
    for (const CudaOperand &operand : kernel.operands)
      (operand.isRow() ? perRow : fixed) += operandBytes(operand);
    int64_t rows = 1;
    if (perRow > 0)
      rows = std::clamp<int64_t>((options.bytes - fixed) / perRow, 1,
                                 std::max<int64_t>(kMaxItems / kernel.itemsPerRow, 1));
    std::vector<Memory> operands;
    std::vector<uint64_t> words;
    for (const CudaOperand &operand : kernel.operands) {
      const int64_t bytes = operandBytes(operand) * (operand.isRow() ? rows : 1);
      RETURN_IF_ERROR(get(operands.emplace_back(), static_cast<size_t>(bytes),
                          "operand '" + operand.name + "'"));
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
    ASSIGN_OR_RETURN(CUfunction function, kernels->generated(kernel));
    const Driver &api = device->api();
    double seconds = 0;
    RETURN_IF_ERROR(time(seconds, [&] {
      return api.check(api.cuLaunchKernel(function, static_cast<unsigned>(kernel.blocks(rows)), 1,
                                          1, static_cast<unsigned>(kernel.threads), 1, 1,
                                          static_cast<unsigned>(kernel.sharedBytes), stream.get(),
                                          parameters.data(), nullptr),
                       "cuLaunchKernel");
    }));
    const int64_t bytes = perRow * rows + fixed;
    const double rate = static_cast<double>(bytes) / seconds;
    entry = {{"kernel", kernel.symbol}, {"rows", rows},        {"bytes", bytes},
             {"seconds", seconds},      {"bytes_per_s", rate}, {"of_copy", rate / copyRate}};
    return {};
  }

  Status get(Memory &memory, size_t bytes, const std::string &what) {
    ASSIGN_OR_RETURN(memory, allocate(device, bytes, stream.get(), what));
    return {};
  }

  /// Seconds of one of several enqueued together, the least of five times.
  Status time(double &seconds, const std::function<Status()> &enqueue) {
    const Driver &api = device->api();
    auto several = [&]() -> Status {
      BRAID_CUDA_TRY(api, cuEventRecordWithFlags, begin.get(), stream.get(), kEventRecordDefault);
      for (int64_t i = 0; i < options.repeat; ++i)
        RETURN_IF_ERROR(enqueue());
      BRAID_CUDA_TRY(api, cuEventRecordWithFlags, end.get(), stream.get(), kEventRecordDefault);
      return device->finish(stream.get());
    };
    seconds = 0;
    for (int round = 0; round < 6; ++round) { // the first one warms up
      RETURN_IF_ERROR(several());
      float ms = 0;
      BRAID_CUDA_TRY(api, cuEventElapsedTime, &ms, begin.get(), end.get());
      const double now = static_cast<double>(ms) * 1e-3 / static_cast<double>(options.repeat);
      if (now <= 0)
        return Status::error("took no time at all by the device's clock");
      if (round > 0)
        seconds = round == 1 ? now : std::min(seconds, now);
    }
    return {};
  }

  const Options &options;
  std::optional<Bundle> bundle;
  CudaLaunchTable table;
  DevicePtr device;
  std::unique_ptr<Kernels> kernels;
  Stream stream;
  Event begin, end;
};

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Measures a bundle's kernels on a GPU against a copy within its memory.",
               "BraidCudaBenchmark");
  app.add_option("BUNDLE", options.bundle, "a bundle with kernels for GPUs")->required();
  app.add_option("--bytes", options.bytes, "that the copy and each kernel move")
      ->check(CLI::Range(int64_t(1024), int64_t(1) << 36))
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "launches that are timed together")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--cuda-library", options.cudaLibrary, "stands in for the CUDA driver, for tests");
  CLI11_PARSE(app, argc, argv);
  Result<nlohmann::ordered_json> report = Benchmark::run(options);
  if (!report.ok()) {
    std::cerr << "BraidCudaBenchmark: error: " << report.status().message() << "\n";
    return 1;
  }
  std::cout << report->dump(2) << "\n";
  return 0;
}
