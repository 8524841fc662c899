//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The kernels that encode and decode payloads (braid/Runtime/CudaCodec.h), in launches as programs
// have them. Bytes are those of values and payloads.
//
//===----------------------------------------------------------------------===//
#include "CudaBenchmark.h"
#include "braid/Base/Float16.h"
#include "runtime/lib/Cuda/StreamCommand.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace braid::runtime::cuda {

namespace {

constexpr int64_t kColumns = 4096; ///< of a row: as wide as a model's hidden states
constexpr int64_t kSenders = 4;    ///< whose payloads decode_sum adds

OperandType rowsOf(DType type, int64_t rows, int64_t columns) {
  return {type, {rows, columns}, {columns, 1}};
}

/// Normally distributed numbers. They repeat: to draw all of them would take longer than anything
/// that is measured.
Status fill(CudaBenchmark &benchmark, const Memory &memory, DType type, int64_t count) {
  const int64_t drawn = std::min<int64_t>(count, 64 * kColumns);
  const int64_t size = byteSize(type);
  std::vector<std::byte> numbers(static_cast<size_t>(drawn * size));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < drawn; ++i) {
    const float number = normal(random);
    const uint16_t half = floatToBf16(number);
    std::memcpy(numbers.data() + i * size,
                type == DType::f32 ? static_cast<const void *>(&number) : &half,
                static_cast<size_t>(size));
  }
  RETURN_IF_ERROR(copyNow(*benchmark.device, memory.get(), address(numbers.data()), numbers.size(),
                          benchmark.stream.get()));
  const Driver &api = benchmark.device->api();
  for (int64_t done = drawn; done < count; done *= 2) {
    const auto bytes = static_cast<size_t>(std::min(done, count - done) * size);
    BRAID_CUDA_TRY(api, cuMemcpyAsync, memory.get() + static_cast<CUdeviceptr>(done * size),
                   memory.get(), bytes, benchmark.stream.get());
  }
  return benchmark.device->finish(benchmark.stream.get());
}

class CodecMeasurement {
public:
  CodecMeasurement(CudaBenchmark &benchmark, const TimedCodec &codec, double copyRate,
                   nlohmann::ordered_json &entries)
      : benchmark(benchmark), codec(codec), copyRate(copyRate), entries(entries) {}

  /// encode and decode, or decode_sum of several senders.
  Status measure(int64_t senders) {
    ASSIGN_OR_RETURN(layout, PayloadLayout::of(codec.encoding, codec.type, 1, kColumns, 1));
    const int64_t rowBytes = kColumns * byteSize(codec.type);
    const int64_t rows =
        std::max<int64_t>(1, benchmark.options.bytes / (rowBytes + senders * layout.rowBytes));
    ASSIGN_OR_RETURN(layout, PayloadLayout::of(codec.encoding, codec.type, rows, kColumns, 1));
    const auto partBytes = static_cast<size_t>(layout.partBytes);
    ASSIGN_OR_RETURN(values, benchmark.get(static_cast<size_t>(rows * rowBytes), "values"));
    ASSIGN_OR_RETURN(payload, benchmark.get(static_cast<size_t>(senders) * partBytes, "payloads"));
    ASSIGN_OR_RETURN(faults, benchmark.get(sizeof(library::Fault), "a fault"));
    RETURN_IF_ERROR(fill(benchmark, values, codec.type, rows * kColumns));
    rank.device = benchmark.device;
    rank.kernels = benchmark.kernels.get();
    rank.faults = reinterpret_cast<library::Fault *>(pointer(faults.get()));
    rank.hasFaults.assign(1, false);

    const int64_t code = codec.encoding.code(), type = static_cast<int64_t>(codec.type);
    ASSIGN_OR_RETURN(const StreamCommand encode, command("encode", {code, 0}, 1));
    const int64_t moved = rows * rowBytes + senders * layout.partBytes;
    if (senders == 1) {
      RETURN_IF_ERROR(time("encode", encode, moved));
    } else {
      RETURN_IF_ERROR(encode(benchmark.stream.get()));
    }
    const Driver &api = benchmark.device->api();
    for (int64_t sender = 1; sender < senders; ++sender)
      BRAID_CUDA_TRY(api, cuMemcpyAsync,
                     payload.get() + static_cast<CUdeviceptr>(sender) * partBytes, payload.get(),
                     partBytes, benchmark.stream.get());
    const char *name = senders == 1 ? "decode" : "decode_sum";
    ASSIGN_OR_RETURN(const StreamCommand decode,
                     command(name, {code, type, senders == 1 ? 0 : senders}, senders));
    RETURN_IF_ERROR(time(name, decode, moved));
    return checkFault();
  }

private:
  Result<StreamCommand> command(const char *name, std::vector<int64_t> integers, int64_t senders) {
    LibraryArguments call;
    call.kernel = findLibraryKernel(name);
    call.integers = std::move(integers);
    call.operands.resize(call.kernel->operands.size());
    call.data.resize(call.operands.size());
    auto give = [&](const char *operand, const Memory &memory, OperandType type) {
      call.operands[call.place(operand)] = std::move(type);
      call.data[call.place(operand)] = pointer(memory.get());
    };
    give(std::strcmp(name, "encode") == 0 ? "input" : "out", values,
         rowsOf(codec.type, layout.rows, kColumns));
    give("payload", payload, rowsOf(DType::i8, senders, layout.partBytes));
    RETURN_IF_ERROR(call.check());
    const std::string nowhere; // it reads no files
    return makeCodec(call, {1, kComputeQueue, nowhere, benchmark.stream.get()}, rank);
  }

  Status time(const char *name, const StreamCommand &command, int64_t bytes) {
    ASSIGN_OR_RETURN(const double seconds,
                     benchmark.time([&] { return command(benchmark.stream.get()); }));
    const double rate = static_cast<double>(bytes) / seconds;
    entries.push_back({{"encoding", codec.encoding.str()},
                       {"type", braid::runtime::name(codec.type)},
                       {"kernel", name},
                       {"bytes", bytes},
                       {"seconds", seconds},
                       {"bytes_per_s", rate},
                       {"of_copy", rate / copyRate}});
    return {};
  }

  /// What decodes a payload that is not right only looks at its header.
  Status checkFault() {
    library::Fault fault{};
    RETURN_IF_ERROR(copyNow(*benchmark.device, address(&fault), faults.get(), sizeof fault,
                            benchmark.stream.get()));
    return fault.command == 0 ? Status() : Status::error("its payload is not as it was encoded");
  }

  CudaBenchmark &benchmark;
  const TimedCodec &codec;
  double copyRate;
  nlohmann::ordered_json &entries;
  PayloadLayout layout;
  Memory values, payload, faults;
  RankDevice rank;
};

} // namespace

Status measureCodecs(CudaBenchmark &benchmark, double copyRate, nlohmann::ordered_json &report) {
  nlohmann::ordered_json &entries = report["codecs"] = nlohmann::ordered_json::array();
  for (const TimedCodec &codec : benchmark.options.codecs)
    for (int64_t senders : {int64_t(1), kSenders})
      if (Status status = CodecMeasurement(benchmark, codec, copyRate, entries).measure(senders);
          !status.ok())
        return Status::error(codec.encoding.str(), " of ", name(codec.type), ": ", status.message(),
                             status.code());
  return {};
}

} // namespace braid::runtime::cuda
