//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures the generated kernels of a bundle on the first GPU, or kernels of its code that encode
// and decode, against a copy within the GPU's memory, which is as fast as what only moves bytes can
// be. Each kernel gets as many rows as make it move as many bytes as the copy: every input read
// once and every output written once, whatever the kernel does beyond that. Prints JSON.
//
//   BraidCudaBenchmark BUNDLE [--bytes N] [--repeat K] [--codec ENCODING=TYPE]...
//                      [--cuda-library FILE]
//
//===----------------------------------------------------------------------===//
#include "CudaBenchmark.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>

namespace braid::runtime::cuda {

constexpr int64_t kLimitNs = int64_t(60) * 1000000000; ///< of what is waited for

Status CudaBenchmark::open() {
  ASSIGN_OR_RETURN(bundle, Bundle::read(options.bundle));
  ASSIGN_OR_RETURN(std::shared_ptr<const Driver> driver, Driver::load(options.cudaLibrary));
  ASSIGN_OR_RETURN(device, Device::open(driver, 0, kLimitNs));
  ASSIGN_OR_RETURN(const KernelLibrary *library, chooseLibrary(*bundle, *device));
  const Bytes *launches = bundle->find(library->launchesMember);
  if (!launches)
    return Status::error("the bundle lacks its member '", library->launchesMember, "'");
  ASSIGN_OR_RETURN(table, CudaLaunchTable::fromJson(std::string(
                              reinterpret_cast<const char *>(launches->data()), launches->size())));
  ASSIGN_OR_RETURN(kernels, Kernels::load(*bundle, *library, table, device));
  ASSIGN_OR_RETURN(stream, createStream(device));
  for (Event *event : {&begin, &end}) {
    ASSIGN_OR_RETURN(*event, createEvent(device, /*timed=*/true));
  }
  return {};
}

Result<double> CudaBenchmark::measureCopy(nlohmann::ordered_json &entry) {
  const Driver &api = device->api();
  const auto half = static_cast<size_t>(std::max<int64_t>(options.bytes / 2, 1));
  ASSIGN_OR_RETURN(const Memory from, get(half, "what is copied"));
  ASSIGN_OR_RETURN(const Memory to, get(half, "the copy"));
  ASSIGN_OR_RETURN(const double seconds, time([&] {
                     return api.check(api.cuMemcpyAsync(to.get(), from.get(), half, stream.get()),
                                      "cuMemcpyAsync");
                   }));
  const double rate = 2.0 * static_cast<double>(half) / seconds;
  entry = {{"bytes", 2 * half}, {"seconds", seconds}, {"bytes_per_s", rate}};
  return rate;
}

Result<Memory> CudaBenchmark::get(size_t bytes, const std::string &what) {
  return allocate(device, bytes, stream.get(), what);
}

Result<double> CudaBenchmark::time(const std::function<Status()> &enqueue) {
  const Driver &api = device->api();
  auto several = [&]() -> Status {
    BRAID_CUDA_TRY(api, cuEventRecordWithFlags, begin.get(), stream.get(), kEventRecordDefault);
    for (int64_t i = 0; i < options.repeat; ++i)
      RETURN_IF_ERROR(enqueue());
    BRAID_CUDA_TRY(api, cuEventRecordWithFlags, end.get(), stream.get(), kEventRecordDefault);
    return device->finish(stream.get());
  };
  double seconds = 0;
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
  return seconds;
}

} // namespace braid::runtime::cuda

using namespace braid::runtime;
using namespace braid::runtime::cuda;

namespace {

Result<nlohmann::ordered_json> run(const CudaBenchmarkOptions &options) {
  CudaBenchmark benchmark(options);
  RETURN_IF_ERROR(benchmark.open());
  nlohmann::ordered_json report;
  report["device"] = benchmark.device->name;
  report["compute_capability"] =
      std::to_string(benchmark.device->major) + "." + std::to_string(benchmark.device->minor);
  report["architecture"] = benchmark.table.architecture;
  ASSIGN_OR_RETURN(const double copyRate, benchmark.measureCopy(report["copy"]));
  RETURN_IF_ERROR(options.codecs.empty() ? measureKernels(benchmark, copyRate, report)
                                         : measureCodecs(benchmark, copyRate, report));
  return report;
}

/// "int8:128=bf16".
Result<TimedCodec> parseCodec(const std::string &text) {
  const size_t at = text.find('=');
  if (at == std::string::npos)
    return Status::error("expects ENCODING=TYPE, got '", text, "'");
  TimedCodec codec;
  ASSIGN_OR_RETURN(codec.encoding, Encoding::parse(text.substr(0, at)));
  ASSIGN_OR_RETURN(codec.type, parseDType(text.substr(at + 1)));
  if (codec.type != DType::f32 && codec.type != DType::bf16)
    return Status::error("expects values of f32 or bf16, got '", text, "'");
  return codec;
}

} // namespace

int main(int argc, char **argv) {
  CudaBenchmarkOptions options;
  std::vector<std::string> codecs;
  CLI::App app("Measures a bundle's kernels on a GPU against a copy within its memory.",
               "BraidCudaBenchmark");
  app.add_option("BUNDLE", options.bundle, "a bundle with kernels for GPUs")->required();
  app.add_option("--bytes", options.bytes, "that the copy and each kernel move")
      ->check(CLI::Range(int64_t(1024), int64_t(1) << 36))
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "launches that are timed together")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--codec", codecs,
                 "ENCODING=TYPE: instead of the generated kernels, those that encode and decode "
                 "such values, which the bundle's code must have");
  app.add_option("--cuda-library", options.cudaLibrary, "stands in for the CUDA driver, for tests");
  CLI11_PARSE(app, argc, argv);
  auto fail = [](const Status &status) {
    std::cerr << "BraidCudaBenchmark: error: " << status.message() << "\n";
    return 1;
  };
  for (const std::string &text : codecs) {
    Result<TimedCodec> codec = parseCodec(text);
    if (!codec.ok())
      return fail(codec.status());
    options.codecs.push_back(*codec);
  }
  Result<nlohmann::ordered_json> report = run(options);
  if (!report.ok())
    return fail(report.status());
  std::cout << report->dump(2) << "\n";
  return 0;
}
