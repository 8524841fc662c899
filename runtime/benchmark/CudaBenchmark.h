//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the measurements of BraidCudaBenchmark share: a bundle's code on the first GPU, and times by
// the GPU's clock.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BENCHMARK_CUDABENCHMARK_H
#define BRAID_BENCHMARK_CUDABENCHMARK_H

#include "braid/Base/Encoding.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Cuda/Kernels.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>

namespace braid::runtime::cuda {

/// Values of a type in an encoding.
struct TimedCodec {
  Encoding encoding;
  DType type = DType::f32;
};

struct CudaBenchmarkOptions {
  std::string bundle, cudaLibrary;
  int64_t bytes = int64_t(512) << 20; ///< that a kernel moves, several times what caches hold
  int64_t repeat = 20;
  std::vector<TimedCodec> codecs;
};

class CudaBenchmark {
public:
  explicit CudaBenchmark(const CudaBenchmarkOptions &options) : options(options) {}
  Status open();

  /// Bytes per second, read and written, of a copy that moves as many bytes as the kernels do.
  Result<double> measureCopy(nlohmann::ordered_json &entry);
  /// Memory of zeros.
  Result<Memory> get(size_t bytes, const std::string &what);
  /// Seconds of one of several enqueued together, the least of five times.
  Result<double> time(const std::function<Status()> &enqueue);

  const CudaBenchmarkOptions &options;
  CudaLaunchTable table;
  DevicePtr device;
  std::unique_ptr<Kernels> kernels;
  Stream stream;

private:
  std::optional<Bundle> bundle;
  Event begin, end;
};

/// The program's generated kernels, one after the other.
Status measureKernels(CudaBenchmark &benchmark, double copyRate, nlohmann::ordered_json &report);
/// encode, decode and decode_sum of the codecs in the options.
Status measureCodecs(CudaBenchmark &benchmark, double copyRate, nlohmann::ordered_json &report);

} // namespace braid::runtime::cuda
#endif // BRAID_BENCHMARK_CUDABENCHMARK_H
