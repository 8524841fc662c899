//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decodes bytes as the payload of any encoding and layout. Every instruction set gives what the
// interpreter gives, an error or the same elements, and touches no byte besides the payload and the
// tensor. The same bytes as a tensor are encoded to the same payload by all of them.
//
//===----------------------------------------------------------------------===//
#include "../unit/Runtime/LibraryCallsTesting.h"
#include "Fuzz.h"
#include "PayloadInput.h"
#include "lib/Interpreter/Core/Codec.h"
#include "runtime/lib/Kernels/Codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using namespace braid::fuzz;

namespace {

/// Bytes on the heap that end where they are said to, so that the address sanitizer sees an access
/// beyond them.
class Exact {
public:
  explicit Exact(int64_t size, uint8_t fill = 0) : size(static_cast<size_t>(size)) {
    bytes = std::make_unique<uint8_t[]>(this->size);
    std::memset(bytes.get(), fill, this->size);
  }
  uint8_t *data() { return bytes.get(); }
  std::vector<uint8_t> get() const { return {bytes.get(), bytes.get() + size}; }

private:
  size_t size;
  std::unique_ptr<uint8_t[]> bytes;
};

float elementOf(DType type, const uint8_t *from) {
  uint32_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(byteSize(type)));
  float x;
  if (type == DType::bf16)
    bits <<= 16;
  if (type != DType::f16) {
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 31  ? fraction == 0 ? INFINITY : NAN
                          : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(fraction + 1024),
                                                       static_cast<int>(exponent) - 25);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

/// The bits of an element; all NaNs are equal.
uint32_t bitsOf(float x) {
  uint32_t bits = 0x7fc00000;
  if (!std::isnan(x))
    std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

void requireEqual(DType type, const std::vector<uint8_t> &got, const std::vector<float> &expected,
                  const std::string &what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const float x = elementOf(type, got.data() + i * static_cast<size_t>(byteSize(type)));
    const float y = braid::interp::castTo(type, expected[i]);
    require(bitsOf(x) == bitsOf(y), what + ": element " + std::to_string(i) + " is " +
                                        std::to_string(x) + ", the interpreter's is " +
                                        std::to_string(y));
  }
}

/// The rows of some parts, as the rows of one sum.
void decodeRows(const PayloadInput &input, const PayloadLayout &layout) {
  const CodecRow codec = CodecRow::of(layout);
  const auto terms = static_cast<size_t>(input.senders);
  std::vector<Exact> rows;
  std::vector<const void *> from;
  std::vector<float> sum(static_cast<size_t>(layout.columns));
  std::string error;
  for (size_t term = 0; term < terms; ++term) {
    rows.emplace_back(layout.rowBytes);
    input.fill(rows.back().data(), layout.rowBytes, static_cast<int64_t>(term) * layout.rowBytes);
    from.push_back(rows.back().data());
    const auto decoded =
        braid::interp::decodeRow(layout.encoding, layout.type, layout.columns, rows.back().get());
    if (!decoded.ok()) {
      error = decoded.status().message();
      continue;
    }
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] = term == 0 ? (*decoded)[i] : sum[i] + (*decoded)[i];
  }
  for (const VectorKernels *kernels : allKernels()) {
    const std::string isa = layout.encoding.str() + ", " + kernels->isa;
    Exact out(layout.columns * byteSize(input.outType));
    const SpikeFault fault =
        kernels->codec->decodeRows(codec, from.data(), input.senders, -1,
                                   static_cast<int>(input.outType), out.data(), input.absent);
    require((fault.position >= 0) == !error.empty(),
            isa + ": a spike is outside of its group where the interpreter says so");
    if (error.empty())
      requireEqual(input.outType, out.get(), sum, isa);
  }
}

/// The bytes as a row of a tensor.
void encodeRow(const PayloadInput &input, const PayloadLayout &layout) {
  Exact tensor(layout.columns * byteSize(layout.type));
  input.fill(tensor.data(), layout.columns * byteSize(layout.type), 0);
  std::vector<float> x;
  for (int64_t i = 0; i < layout.columns; ++i)
    x.push_back(elementOf(layout.type, tensor.data() + i * byteSize(layout.type)));
  const std::vector<uint8_t> expected = braid::interp::encodeRow(layout.encoding, layout.type, x);
  for (const VectorKernels *kernels : allKernels()) {
    Exact row(layout.rowBytes, 0xA5);
    kernels->codec->encodeRow(CodecRow::of(layout), tensor.data(), row.data());
    require(row.get() == expected,
            layout.encoding.str() + ", " + kernels->isa + ": the interpreter's payload");
    Exact out(layout.columns * byteSize(input.outType));
    const void *rows[] = {row.data()};
    require(kernels->codec
                    ->decodeRows(CodecRow::of(layout), rows, 1, -1, static_cast<int>(input.outType),
                                 out.data(), false)
                    .position < 0,
            "spikes of an encoder are in their groups");
  }
}

/// What a queue's thread runs commands with, once for each instruction set.
Bench &benchOf(const VectorKernels &kernels) {
  static std::map<const VectorKernels *, std::unique_ptr<Bench>> benches;
  std::unique_ptr<Bench> &bench = benches[&kernels];
  if (!bench)
    bench = std::make_unique<Bench>(1, kernels);
  bench->control.begin();
  return *bench;
}

/// All bytes through the library call. Its error, or none.
Status decodeCall(const PayloadInput &input, const PayloadLayout &layout,
                  const VectorKernels &kernels, bool sums, std::vector<uint8_t> &result) {
  const int64_t senders = sums ? input.senders : 1;
  Exact payload(layout.bytes * senders), out(input.rows * layout.columns * byteSize(input.outType));
  input.fill(payload.data(), layout.bytes * senders, 0);
  if (input.headers)
    for (int64_t i = 0; i < senders * layout.parts; ++i)
      layout.writeHeader(reinterpret_cast<std::byte *>(payload.data()) + i * layout.partBytes,
                         i % layout.parts);
  const Tensor from{reinterpret_cast<std::byte *>(payload.data()),
                    DType::i8,
                    {senders * layout.parts, layout.partBytes},
                    {layout.partBytes, 1}},
      to{reinterpret_cast<std::byte *>(out.data()),
         input.outType,
         {input.rows, layout.columns},
         {layout.columns, 1}};
  std::vector<const Tensor *> operands{&from, &to};
  if (sums)
    operands.insert(operands.begin() + 1, nullptr); // no rows of this rank's own
  const LibraryArguments arguments =
      call(sums ? "decode_sum" : "decode", operands,
           {layout.encoding.code(), static_cast<int64_t>(layout.type),
            sums ? senders : int64_t(input.absent)});
  const Status checked = arguments.check();
  require(checked.ok(), "the call is one: " + checked.message());
  const Result<LibraryCommand> command = resolveLibrary(arguments, CpuResources());
  require(command.ok(), "the call can be made");
  Bench &bench = benchOf(kernels);
  (*command)->run(Command(), bench.context);
  result = out.get();
  return bench.control.failed() ? bench.control.failure() : Status();
}

void decodePayload(const PayloadInput &input, const PayloadLayout &layout) {
  for (bool sums : {false, true}) {
    if (sums && input.senders < 2)
      continue;
    std::vector<uint8_t> first, other;
    const Status status = decodeCall(input, layout, *allKernels().front(), sums, first);
    for (const VectorKernels *kernels : allKernels()) {
      const Status again = decodeCall(input, layout, *kernels, sums, other);
      require(again.message() == status.message(), std::string(kernels->isa) + ": the same error");
      if (status.ok())
        require(other == first, std::string(kernels->isa) + ": the same tensor");
    }
    require(status.ok() || status.message().find("expects") != std::string::npos,
            "an error says what was expected");
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::optional<PayloadInput> input = PayloadInput::parse(data, size);
  if (!input)
    return 0;
  const Result<Encoding> encoding = Encoding::fromCode(input->code);
  if (!encoding.ok())
    return 0;
  const Result<Encoding> back = Encoding::parse(encoding->str());
  require(back.ok() && *back == *encoding, "an encoding has a name");
  // Sizes as they come are refused, or have a layout in 64 bits.
  if (const auto any = PayloadLayout::of(*encoding, input->type, input->anySize(0),
                                         input->anySize(1), input->anySize(2));
      any.ok())
    require(any->rowBytes > 0 && any->bytes >= any->rowBytes && any->bytes % 16 == 0,
            "the sizes of a layout are right");
  const auto layout =
      PayloadLayout::of(*encoding, input->type, input->rows, input->columns, input->parts);
  require(layout.ok(), "small sizes have a layout");
  decodeRows(*input, *layout);
  encodeRow(*input, *layout);
  decodePayload(*input, *layout);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  Random random(seed);
  if (size < PayloadInput::kBytes || random.oneIn(2))
    return LLVMFuzzerMutate(data, size, maxSize);
  if (random.oneIn(2)) {
    const uint32_t code = PayloadInput::anyCode(random);
    std::memcpy(data, &code, sizeof code);
    return size;
  }
  // Numbers that are special in some place of a payload.
  static const uint16_t special[] = {0x7c00, 0x7e00, 0xfc00, 0x7f80, 0xff80, 0x7fc0, 0x0001,
                                     0x8000, 0x00ff, 0xff7f, 0x7bff, 0x0080, 0x0000, 0xffff};
  if (size >= PayloadInput::kBytes + 2) {
    const uint16_t value = random.of(special);
    std::memcpy(data + PayloadInput::kBytes + random.below(size - PayloadInput::kBytes - 1), &value,
                sizeof value);
  }
  return size;
}
