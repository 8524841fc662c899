//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// fake_quantize on the CPU: rows are encoded into scratch memory and decoded from it, by the codec
// that payloads have.
//
//===----------------------------------------------------------------------===//
#include "Codec.h"
#include "Operations.h"
#include "braid/Base/Float16.h"
#include "braid/Base/RowPieces.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

namespace {

/// Bytes of a tensor in f32 for which a further member is worth it.
constexpr int64_t kGrain = 1 << 18;

/// An element as f32.
float read(DType type, const std::byte *row, int64_t i) {
  if (type == DType::f32)
    return reinterpret_cast<const float *>(row)[i];
  const uint16_t bits = reinterpret_cast<const uint16_t *>(row)[i];
  return type == DType::f16 ? f16ToFloat(bits) : bf16ToFloat(bits);
}

class FakeQuantize : public LibraryRun {
public:
  static Result<LibraryCommand> resolve(const LibraryArguments &a, const CpuResources &resources) {
    auto run = std::make_shared<FakeQuantize>();
    run->input = a.tensor("input");
    run->out = a.tensor("out");
    run->codes = integersOf(a, "encodings");
    run->gather = a.integers[0] != 0;
    run->ranks = a.integers[1];
    run->parts = a.integers[2] * a.parts;
    run->group = a.parts;
    run->self = a.part;
    run->rows = run->input.rows();
    run->columns = run->input.shape.back();
    ASSIGN_OR_RETURN(const int64_t inputStride, run->input.rowStride());
    ASSIGN_OR_RETURN(const int64_t outStride, run->out.rowStride());
    run->inputRowBytes = inputStride * byteSize(run->input.dtype);
    run->outRowBytes = outStride * byteSize(run->out.dtype);
    const double bytes = static_cast<double>(run->rows) * static_cast<double>(run->columns) * 4;
    run->members = std::min(run->rows, shareOut(bytes, kGrain, resources.threads));
    run->sums.identity = resources.identity;
    run->sums.gather = run->gather;
    return LibraryCommand(std::move(run));
  }

  void run(const NamedCommand &source, ExecutionContext &context) const override {
    Result<std::optional<PayloadLayout>> layout = chosen();
    if (!layout.ok()) {
      context.control.fail(layout.status().within("rank " + std::to_string(context.self.rank) +
                                                  ": " + describe(source)));
      return;
    }
    std::vector<std::pair<double, double>> parts(static_cast<size_t>(members));
    context.share(members, [&](int64_t member) {
      const Range range = partOf(rows, member, members);
      for (int64_t row = range.begin; row < range.end; ++row) {
        if (*layout)
          through(**layout, row, *context.kernels.codec);
        else
          convert(row, 0, columns);
        add(row, parts[static_cast<size_t>(member)]);
      }
    });
    for (const auto &[squares, errorSquares] : parts) {
      sums.squares += squares;
      sums.errorSquares += errorSquares;
    }
  }

  EncodingErrors *errors() const override { return &sums; }

private:
  /// Of a row, or of a piece of it, by itself; none: it travels as it is.
  Result<std::optional<PayloadLayout>> chosen() const {
    std::optional<Encoding> halves[2];
    for (int64_t i : {0, 1}) {
      const int64_t code = codes[i];
      if (code < 0 || code > INT32_MAX)
        return Status::error("expects the code of an encoding or 0, got ", code, Code::invalid);
      if (code == 0)
        continue;
      ASSIGN_OR_RETURN(halves[i], Encoding::fromCode(static_cast<uint32_t>(code)));
    }
    const std::optional<Encoding> &half = halves[gather ? 1 : 0];
    if (!half)
      return std::optional<PayloadLayout>();
    const int64_t pieces =
        halves[0] && halves[1] ? rowPieces({*halves[0], *halves[1]}, rows, columns, ranks) : 1;
    ASSIGN_OR_RETURN(PayloadLayout layout,
                     PayloadLayout::of(*half, input.dtype, 1, columns / pieces, 1));
    return std::optional<PayloadLayout>(layout);
  }

  const std::byte *from(int64_t row) const { return input.data + row * inputRowBytes; }
  std::byte *to(int64_t row) const { return out.data + row * outRowBytes; }

  void through(const PayloadLayout &layout, int64_t row, const CodecKernels &kernels) const {
    const CodecRow codec = CodecRow::of(layout);
    std::vector<std::byte> encoded(static_cast<size_t>(layout.rowBytes));
    const int64_t pieces = columns / layout.columns,
                  rowsOfPart = (rows * pieces + parts - 1) / parts;
    for (int64_t begin = 0; begin < columns; begin += layout.columns) {
      const int64_t piece = row * pieces + begin / layout.columns;
      if (group > 1 && piece / rowsOfPart % group == self) {
        convert(row, begin, layout.columns);
        continue;
      }
      kernels.encodeRow(codec, from(row) + begin * byteSize(input.dtype), encoded.data());
      const void *only = encoded.data();
      kernels.decodeRows(codec, &only, 1, /*own=*/-1, static_cast<int>(out.dtype),
                         to(row) + begin * byteSize(out.dtype), /*stream=*/false);
    }
  }

  void convert(int64_t row, int64_t begin, int64_t count) const {
    const std::byte *source = from(row) + begin * byteSize(input.dtype);
    std::byte *dest = to(row) + begin * byteSize(out.dtype);
    if (input.dtype == out.dtype) {
      std::memcpy(dest, source, static_cast<size_t>(count * byteSize(out.dtype)));
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      const float value = read(input.dtype, source, i);
      if (out.dtype == DType::f32)
        reinterpret_cast<float *>(dest)[i] = value;
      else
        reinterpret_cast<uint16_t *>(dest)[i] =
            out.dtype == DType::f16 ? floatToF16(value) : floatToBf16(value);
    }
  }

  void add(int64_t row, std::pair<double, double> &part) const {
    for (int64_t i = 0; i < columns; ++i) {
      const double x = read(input.dtype, from(row), i);
      const double y = read(out.dtype, to(row), i);
      part.first += x * x;
      part.second += (y - x) * (y - x);
    }
  }

  Tensor input, out;
  Integers codes{};
  bool gather = false;
  int64_t ranks = 1, parts = 1, group = 1, self = 0, rows = 0, columns = 0, inputRowBytes = 0,
          outRowBytes = 0, members = 1;
  mutable EncodingErrors sums;
};

} // namespace

Result<LibraryCommand> resolveFakeQuantize(const LibraryArguments &a, const CpuResources &r) {
  return FakeQuantize::resolve(a, r);
}

} // namespace braid::runtime
