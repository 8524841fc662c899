//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures encode, decode and decode_sum of four parts, per encoding and instruction set, in GB/s
// of the f32 tensor and as a share of what memcpy does with the same bytes in the same run.
// decode_sum counts the bytes of the sum. One thread. Build the target BraidCodecBenchmark.
//
// With --norm, measures a kernel that encodes its result (of norm.mlir beside this file, say)
// against the kernel alone, a cast to bf16 alone, and the kernel and the encode one after the
// other:
//
//   braid compile runtime/benchmark/norm.mlir -o norm.braid
//   BraidCodecBenchmark --norm norm.braid
//
// usage: BraidCodecBenchmark [--size MIB]... [--norm BUNDLE] [ENCODING...]
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Kernels/Codec.h"
#include "braid/Base/Encoding.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Program/program_generated.h"
#include "braid/Runtime/Bundle.h"
#include "braid/Runtime/KernelLibrary.h"
#include "runtime/lib/Executor/Commands.h"
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
namespace fb = braid::program;

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

//===----------------------------------------------------------------------===//
// A kernel that encodes
//===----------------------------------------------------------------------===//

/// The first kernel of a bundle whose last operand is encoded.
struct EncodingKernel {
  std::shared_ptr<const KernelLibraryHandle> library;
  std::unique_ptr<fb::ProgramT> program;
  const fb::KernelT *kernel = nullptr;
  const fb::LaunchT *launch = nullptr;
  KernelFunction function = nullptr;

  static Result<EncodingKernel> load(const std::string &path) {
    EncodingKernel result;
    ASSIGN_OR_RETURN(const Bundle bundle, Bundle::read(path));
    ASSIGN_OR_RETURN(result.library, KernelLibraryHandle::load(bundle));
    result.program = fb::UnPackProgram(bundle.program().data());
    for (const auto &command : result.program->procedures[0]->streams[kComputeQueue]->commands)
      if (const fb::LaunchT *launch = command->op.AsLaunch()) {
        const fb::KernelT &kernel = *result.program->kernels[launch->kernel];
        if (kernel.codecs.size() == 1 && kernel.codecs[0]->operand + 1 == kernel.num_operands &&
            kernel.num_outputs == 1) {
          result.kernel = &kernel;
          result.launch = launch;
        }
      }
    if (!result.kernel)
      return Status::error(path, ": expects a kernel whose only result is encoded");
    ASSIGN_OR_RETURN(result.function, result.library->find(result.kernel->symbol));
    return result;
  }
};

/// Runs commands as a queue of one thread does.
class Runner {
public:
  template <typename Op> void run(const Op &op) {
    ExecutionContext context{control, control.queue(0, kComputeQueue), team, vectorKernels(),
                             scratch};
    if constexpr (std::is_same_v<Op, LibraryCommand>)
      op->run(source, context);
    else
      execute(op, source, context);
  }

private:
  RunControl control{1, {{QueueKind::compute, "compute"}}, 0, {}};
  Team team{1};
  std::vector<std::vector<std::byte>> scratch{1};
  Command source;
};

LibraryArguments encodeOf(const Encoding &encoding, const Tensor &rows, const Tensor &payload) {
  LibraryArguments call;
  call.kernel = findLibraryKernel("encode");
  call.integers = {encoding.code(), 0};
  for (const Tensor *t : {&rows, &payload}) {
    call.operands.emplace_back(OperandType{t->dtype, t->shape, t->strides});
    call.data.push_back(t->data);
  }
  return call;
}

Status benchmarkKernel(const EncodingKernel &kernel, const Encoding &encoding, int64_t mib) {
  const std::vector<int64_t> &rowShape = kernel.kernel->codecs[0]->row_shape;
  const int64_t columns = rowShape.back(), rows = std::max<int64_t>(1, (mib << 20) / 4 / columns);
  std::vector<std::unique_ptr<Aligned<float>>> memory;
  std::vector<Tensor> operands;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto tensor = [&](std::vector<int64_t> shape) {
    const auto count = static_cast<size_t>(shape[0] * (shape.size() > 1 ? shape[1] : 1));
    memory.push_back(std::make_unique<Aligned<float>>(count));
    for (size_t i = 0; i < count; ++i)
      memory.back()->data[i] = normal(random);
    std::vector<int64_t> strides =
        shape.size() > 1 ? std::vector<int64_t>{shape[1], 1} : std::vector<int64_t>{1};
    return Tensor{reinterpret_cast<std::byte *>(memory.back()->data), DType::f32, std::move(shape),
                  std::move(strides)};
  };
  std::vector<bool> rowOperand = kernel.launch->row_operand;
  for (size_t i = 0; i + 1 < kernel.launch->operands.size(); ++i)
    operands.push_back(tensor(rowOperand[i] ? std::vector<int64_t>{rows, columns}
                                            : kernel.launch->operands[i]->shape));
  const Tensor result = tensor({rows, columns});
  const Encoding cast = *Encoding::parse("bf16");
  auto payloadOf = [&](const Encoding &e) -> Result<Tensor> {
    ASSIGN_OR_RETURN(const PayloadLayout layout,
                     PayloadLayout::of(e, DType::f32, rows, columns, 1));
    Tensor bytes = tensor({(layout.partBytes + 3) / 4});
    bytes.dtype = DType::i8;
    bytes.shape = {1, layout.partBytes};
    bytes.strides = {layout.partBytes, 1};
    return bytes;
  };
  ASSIGN_OR_RETURN(const Tensor payload, payloadOf(encoding));
  ASSIGN_OR_RETURN(const Tensor halves, payloadOf(cast));

  std::vector<Tensor> fusedOperands = operands, plainOperands = operands;
  fusedOperands.push_back(payload);
  plainOperands.push_back(result);
  const size_t last = operands.size();
  ASSIGN_OR_RETURN(const LibraryCommand fused,
                   resolveCodecLaunch(kernel.function, fusedOperands, rowOperand,
                                      {{last, encodeOf(encoding, result, payload)}}, rows, 1));
  rowOperand[last] = true;
  ASSIGN_OR_RETURN(const LaunchCommand alone,
                   resolveLaunch(kernel.function, plainOperands, rowOperand, rows, 1));
  ASSIGN_OR_RETURN(const LibraryCommand casts,
                   resolveLibrary(encodeOf(cast, result, halves), CpuResources()));
  ASSIGN_OR_RETURN(const LibraryCommand encodes,
                   resolveLibrary(encodeOf(encoding, result, payload), CpuResources()));
  Runner runner;
  const std::vector<double> times =
      measure({[&] { runner.run(fused); }, [&] { runner.run(alone); }, [&] { runner.run(casts); },
               [&] {
                 runner.run(alone);
                 runner.run(encodes);
               }});
  auto ms = [](double seconds) { return seconds * 1e3; };
  std::printf("| %ld | %s | %s | %.3f | %.3f | %.3f | %.3f | %.2f | %.2f |\n", mib,
              encoding.str().c_str(), vectorKernels().isa, ms(times[1]), ms(times[2]), ms(times[3]),
              ms(times[0]), times[0] / (times[1] + times[2]), times[0] / times[3]);
  std::fflush(stdout);
  return {};
}

//===----------------------------------------------------------------------===//
// The codec
//===----------------------------------------------------------------------===//

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
        kernels->codec->decodeRows(codec, from, parts, /*own=*/-1, 0, y.data + row * kColumns,
                                   stream);
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
  std::string bundle;
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
    } else if (std::string(argv[i]) == "--norm" && i + 1 < argc) {
      bundle = argv[++i];
    } else {
      encodings.emplace_back(argv[i]);
    }
  if (sizes.empty())
    sizes = {1, 64};
  std::optional<EncodingKernel> kernel;
  if (!bundle.empty()) {
    Result<EncodingKernel> loaded = EncodingKernel::load(bundle);
    if (!loaded.ok()) {
      std::fprintf(stderr, "error: %s\n", loaded.status().message().c_str());
      return 1;
    }
    kernel = std::move(*loaded);
    if (encodings.empty())
      encodings = {"int8:128", "int4:128", "int4:128+spikes", "fp8e4m3:128", "mxfp4", "bf16"};
  }
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
  if (kernel)
    std::printf(
        "| MiB | encoding | kernels | kernel ms | cast ms | kernel, then encode ms | fused "
        "ms | fused / (kernel + cast) | fused / apart |\n| ---: | --- | --- | ---: | ---: | "
        "---: | ---: | ---: | ---: |\n");
  else
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
      if (!kernel) {
        benchmark(*encoding, mib);
      } else if (const Status status = benchmarkKernel(*kernel, *encoding, mib); !status.ok()) {
        std::fprintf(stderr, "error: %s\n", status.message().c_str());
        return 1;
      }
    }
  return 0;
}
