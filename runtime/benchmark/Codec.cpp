//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures encode, decode and decode_sum of four parts, per encoding and instruction set, in GB/s
// of the f32 tensor and as a share of what memcpy does with the same bytes in the same run.
// decode_sum counts the bytes of the sum. One thread. Build the target BraidCodecBenchmark.
//
// usage: BraidCodecBenchmark [--size MIB]... [ENCODING...]
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Kernels/Codec.h"
#include "braid/Base/Encoding.h"
#include "runtime/lib/Kernels/CpuFeatures.h"
#include "runtime/lib/Kernels/VectorKernels.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

using namespace braid::runtime;

namespace {

constexpr int64_t kColumns = 4096, kParts = 4;

/// Time of this thread on a processor: others may use the machine too.
double cpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Memory that starts with a line of a cache, as tensors do.
template <typename T> class Aligned {
public:
  explicit Aligned(size_t count)
      : data(static_cast<T *>(std::aligned_alloc(4096, (count * sizeof(T) + 4095) & ~4095ul))) {
    std::memset(data, 0, count * sizeof(T));
  }
  ~Aligned() { std::free(data); }
  Aligned(const Aligned &) = delete;
  Aligned &operator=(const Aligned &) = delete;
  T *const data;
};

/// Least seconds of each, measured in turn so that all see the same machine.
std::vector<double> measure(const std::vector<std::function<void()>> &works) {
  std::vector<double> best(works.size(), 1e9);
  double total = 0;
  for (int i = 0; i < 7 || (total < 0.3 && i < 200); ++i)
    for (size_t w = 0; w < works.size(); ++w) {
      const double begin = cpuSeconds();
      works[w]();
      const double time = cpuSeconds() - begin;
      best[w] = i == 0 ? time : std::min(best[w], time);
      total += time;
    }
  return best;
}

void benchmark(const Encoding &encoding, int64_t mib) {
  const int64_t rows = (mib << 20) / 4 / kColumns;
  const PayloadLayout layout = *PayloadLayout::of(encoding, DType::f32, rows, kColumns, 1);
  const CodecRow codec = CodecRow::of(layout);
  const auto elements = static_cast<size_t>(rows * kColumns);
  Aligned<float> x(elements), y(elements);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < elements; ++i)
    x.data[i] = i < (1 << 20) ? normal(random) : x.data[i - (1 << 20)];
  Aligned<std::byte> payload(static_cast<size_t>(layout.bytes * kParts));
  auto rowOf = [&](int64_t part, int64_t row) {
    return payload.data + part * layout.bytes + layout.rowOffset(row);
  };
  std::vector<const VectorKernels *> candidates = {vectorKernelsGeneric()};
  if (hostHasFeature("avx2"))
    candidates.push_back(vectorKernelsAvx2());
  if (hostHasFeature("avx512f"))
    candidates.push_back(vectorKernelsAvx512());
  std::vector<std::function<void()>> works = {
      [&] { std::memcpy(y.data, x.data, elements * sizeof(float)); }};
  const bool stream = mib >= 16;
  for (const VectorKernels *kernels : candidates) {
    auto decode = [&, kernels](int64_t parts) {
      for (int64_t row = 0; row < rows; ++row) {
        const void *from[kParts];
        for (int64_t part = 0; part < parts; ++part)
          from[part] = rowOf(part, row);
        kernels->codec->decodeRows(codec, from, parts, 0, y.data + row * kColumns, stream);
      }
    };
    works.emplace_back([&, kernels] {
      for (int64_t row = 0; row < rows; ++row)
        kernels->codec->encodeRow(codec, x.data + row * kColumns, rowOf(0, row));
    });
    works.back()();
    for (int64_t part = 1; part < kParts; ++part)
      std::memcpy(payload.data + part * layout.bytes, payload.data,
                  static_cast<size_t>(layout.bytes));
    works.emplace_back([decode] { decode(1); });
    works.emplace_back([decode] { decode(kParts); });
  }
  const std::vector<double> times = measure(works);
  auto rate = [&](double seconds) {
    return static_cast<double>(elements) * sizeof(float) / seconds * 1e-9;
  };
  for (size_t i = 0; i < candidates.size(); ++i) {
    std::printf("| %ld | %s | %s | %.1f |", mib, encoding.str().c_str(), candidates[i]->isa,
                rate(times[0]));
    for (size_t k = 0; k < 3; ++k)
      std::printf(" %.1f | %.2f |", rate(times[1 + 3 * i + k]), times[0] / times[1 + 3 * i + k]);
    std::printf("\n");
  }
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  std::vector<int64_t> sizes;
  std::vector<std::string> encodings;
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]) == "--size" && i + 1 < argc) {
      const std::string text = argv[++i];
      int64_t size = 0;
      const auto end = std::from_chars(text.data(), text.data() + text.size(), size);
      if (end.ec != std::errc() || end.ptr != text.data() + text.size() || size < 1) {
        std::fprintf(stderr, "error: --size expects a number of MiB, got '%s'\n", text.c_str());
        return 1;
      }
      sizes.push_back(size);
    } else {
      encodings.emplace_back(argv[i]);
    }
  if (sizes.empty())
    sizes = {1, 64};
  if (encodings.empty())
    encodings = {"int8:128",
                 "int4:128",
                 "int8:128+symmetric",
                 "int8:128+zero-point",
                 "int2:128",
                 "int3:128",
                 "int5:128",
                 "int6:128",
                 "int7:128",
                 "int4:32",
                 "int8:8192",
                 "int4:128+spikes",
                 "int4:128+hadamard32",
                 "fp8e4m3:128",
                 "fp8e5m2:128",
                 "fp6e3m2:128",
                 "fp6e2m3:128",
                 "fp4e2m1:128",
                 "mxfp8e4m3",
                 "mxfp4",
                 "nvfp4",
                 "bf16",
                 "f16"};
  std::printf(
      "| MiB | encoding | kernels | memcpy GB/s | encode GB/s | of memcpy | decode GB/s | of "
      "memcpy | decode_sum of 4 GB/s | of memcpy |\n| ---: | --- | --- | ---: | ---: | "
      "---: | ---: | ---: | ---: | ---: |\n");
  for (int64_t mib : sizes)
    for (const std::string &text : encodings) {
      const Result<Encoding> encoding = Encoding::parse(text);
      if (!encoding.ok()) {
        std::fprintf(stderr, "%s\n", encoding.status().message().c_str());
        return 1;
      }
      benchmark(*encoding, mib);
    }
  return 0;
}
