//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures encode, decode and decode_sum. What was encoded, or came from peers, was last used some
// operations ago, as in a model.
//
//===----------------------------------------------------------------------===//
#include "LibraryWork.h"
#include "Parts.h"

#include <algorithm>

namespace braid::runtime {

namespace {

constexpr int64_t kColumns = 4096;
/// Payloads that a decode_sum adds.
constexpr int64_t kSenders = 4;

/// Of each kind of codes one with groups of 128; and those that tell what smaller groups and
/// options add.
const std::vector<const char *> &encodings(bool quick) {
  static const std::vector<const char *> all{"int2:128",
                                             "int3:128",
                                             "int4:128",
                                             "int5:128",
                                             "int6:128",
                                             "int7:128",
                                             "int8:128",
                                             "fp4e2m1:128",
                                             "fp6e2m3:128",
                                             "fp6e3m2:128",
                                             "fp8e4m3:128",
                                             "fp8e5m2:128",
                                             "nvfp4",
                                             "bf16",
                                             "f16",
                                             "int8:32",
                                             "int8:8192",
                                             "int8:128+spikes",
                                             "int8:128+hadamard64"};
  static const std::vector<const char *> few{"int8:128", "int8:32", "int8:128+spikes",
                                             "int8:128+hadamard64", "bf16"};
  return quick ? few : all;
}

/// Of a tensor, and so 64 KiB, 1 MiB and 8 MiB of f32.
const std::vector<int64_t> &elementCounts(bool quick) {
  static const std::vector<int64_t> whole{1 << 14, 1 << 18, 1 << 21}, few{1 << 12};
  return quick ? few : whole;
}

class CodecWork : public LibraryWork {
public:
  /// Tensors and payloads lie at places that are taken in turn from the pool.
  Status start(const char *kernel, const PayloadLayout &layout, std::byte *memory,
               size_t poolBytes) {
    const bool encodes = std::strcmp(kernel, "encode") == 0;
    const int64_t senders = std::strcmp(kernel, "decode_sum") == 0 ? kSenders : 1;
    const auto elements = static_cast<size_t>(layout.rows * layout.columns);
    auto *source = reinterpret_cast<float *>(memory);
    fill(source, elements);
    const size_t tensorBytes = elements * kFloat,
                 payloadBytes = (static_cast<size_t>(senders * layout.bytes) + 63) / 64 * 64,
                 places = std::clamp<size_t>(poolBytes / (tensorBytes + payloadBytes), 1, 32);
    std::vector<LibraryArguments> sets, toEncode;
    for (size_t place = 0; place < places; ++place) {
      std::byte *payload = memory + tensorBytes + place * (tensorBytes + payloadBytes);
      std::byte *tensor = payload + payloadBytes;
      if (encodes) {
        std::memcpy(tensor, source, tensorBytes);
        sets.push_back(arguments("encode", layout, tensor, payload, 1));
        continue;
      }
      for (int64_t sender = 0; sender < senders; ++sender)
        toEncode.push_back(arguments("encode", layout, memory, payload + sender * layout.bytes, 1));
      sets.push_back(arguments(kernel, layout, tensor, payload, senders));
    }
    LibraryWork encoder;
    RETURN_IF_ERROR(encoder.start(toEncode));
    for (size_t i = 0; i < toEncode.size(); ++i) {
      encoder.prepare();
      encoder.run();
    }
    return LibraryWork::start(sets);
  }

private:
  static LibraryArguments arguments(const char *kernel, const PayloadLayout &layout,
                                    std::byte *tensor, std::byte *payload, int64_t senders) {
    LibraryArguments a;
    a.kernel = findLibraryKernel(kernel);
    a.integers = {layout.encoding.code(), 0};
    const OperandType values{DType::f32, {layout.rows, layout.columns}, {layout.columns, 1}};
    const OperandType bytes{
        DType::i8, {senders * layout.parts, layout.partBytes}, {layout.partBytes, 1}};
    const bool encodes = std::strcmp(kernel, "encode") == 0;
    if (!encodes) {
      const bool sums = std::strcmp(kernel, "decode_sum") == 0;
      a.integers = {layout.encoding.code(), static_cast<int64_t>(DType::f32), sums ? senders : 0};
    }
    a.operands.resize(a.kernel->operands.size());
    a.data.resize(a.operands.size());
    a.operands[codecRows(a)] = values;
    a.data[codecRows(a)] = tensor;
    a.operands[codecPayload(a)] = bytes;
    a.data[codecPayload(a)] = payload;
    return a;
  }
};

} // namespace

Status measureCodecs(Crew &crew, bool quick, size_t poolBytes, cost::ComputeRates &rates) {
  const size_t pool = std::min(poolBytes, kernelMemoryBytes(quick) / 4);
  Repetitions each = repetitions(quick);
  each.seconds /= 2; // there are many
  each.least = quick ? each.least : 3;
  for (const char *name : encodings(quick)) {
    ASSIGN_OR_RETURN(const Encoding encoding, Encoding::parse(name));
    for (int64_t elements : elementCounts(quick)) {
      ASSIGN_OR_RETURN(const PayloadLayout layout,
                       PayloadLayout::of(encoding, DType::f32, elements / kColumns, kColumns, 1));
      auto secondsOf = [&](const char *kernel) -> Result<double> {
        ASSIGN_OR_RETURN(const Timing timing, crew.measure(
                                                  [&](std::byte *memory) {
                                                    return started(std::make_unique<CodecWork>(),
                                                                   kernel, layout, memory, pool);
                                                  },
                                                  each));
        return timing.seconds;
      };
      ASSIGN_OR_RETURN(const double encode, secondsOf("encode"));
      ASSIGN_OR_RETURN(const double decode, secondsOf("decode"));
      ASSIGN_OR_RETURN(const double sum, secondsOf("decode_sum"));
      // Each payload behind the first one; of times that are not exact, some remains.
      const double add = std::max(sum - decode, 0.05 * sum) / (kSenders - 1);
      const auto count = static_cast<double>(elements);
      rates.codecs.push_back(
          {encoding.str(), elements, count / encode, count / decode, count / add});
    }
  }
  return {};
}

} // namespace braid::runtime
