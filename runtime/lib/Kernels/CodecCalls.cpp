//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// encode, decode and decode_sum on the CPU.
//
//===----------------------------------------------------------------------===//
#include "Codec.h"
#include "Operations.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

namespace {

/// A tensor, by rows, and its payload, by parts.
struct Operands {
  PayloadLayout layout;
  CodecRow codec;
  std::byte *tensor = nullptr, *payload = nullptr;
  DType type = DType::f32; ///< of the tensor
  int64_t rows = 1, rowStrideBytes = 0, partStrideBytes = 0;

  static Result<Operands> of(const LibraryArguments &a, const char *tensorName,
                             const char *payloadName) {
    Operands o;
    ASSIGN_OR_RETURN(o.type, storedType(a, Storage::halves));
    const Tensor tensor = a.tensor(tensorName), payload = a.tensor(payloadName);
    ASSIGN_OR_RETURN(const int64_t rowStride, tensor.rowStride());
    ASSIGN_OR_RETURN(o.partStrideBytes, payload.rowStride());
    ASSIGN_OR_RETURN(o.layout, payloadLayout(a));
    o.codec = CodecRow::of(o.layout);
    o.tensor = tensor.data;
    o.payload = payload.data;
    o.rows = tensor.rows();
    o.rowStrideBytes = rowStride * byteSize(o.type);
    return o;
  }

  std::byte *part(int64_t i) const { return payload + i * partStrideBytes; }
  std::byte *row(int64_t i) const { return tensor + i * rowStrideBytes; }
  /// A row in its part.
  std::byte *payloadRow(int64_t part, int64_t i) const {
    return this->part(part) + PayloadLayout::kHeaderBytes + i * layout.rowBytes;
  }
  double bytes() const {
    return static_cast<double>(rows) * static_cast<double>(layout.columns) * 4;
  }
};

/// Bytes of a tensor in f32 for which a further member is worth it.
constexpr int64_t kGrain = 1 << 18;

class Encode : public LibraryRun {
public:
  Encode(const Operands &operands, int64_t threads)
      : o(operands), all(o.layout.parts * o.layout.rowsPerPart),
        members(std::min(all, shareOut(o.bytes(), kGrain, threads))) {}

  void run(const NamedCommand &, ExecutionContext &context) const override {
    const PayloadLayout &layout = o.layout;
    const int64_t end = PayloadLayout::kHeaderBytes + layout.rowsPerPart * layout.rowBytes;
    for (int64_t part = 0; part < layout.parts; ++part) {
      layout.writeHeader(o.part(part), part);
      std::memset(o.part(part) + end, 0, static_cast<size_t>(layout.partBytes - end));
    }
    context.share(members, [&](int64_t member) {
      const Range range = partOf(all, member, members);
      for (int64_t row = range.begin; row < range.end; ++row) {
        std::byte *to = o.payloadRow(row / layout.rowsPerPart, row % layout.rowsPerPart);
        if (row < o.rows)
          context.kernels.codec->encodeRow(o.codec, o.row(row), to);
        else
          std::memset(to, 0, static_cast<size_t>(layout.rowBytes));
      }
    });
  }

private:
  Operands o;
  int64_t all; ///< rows of the payload, also those that do not exist
  int64_t members;
};

/// decode and decode_sum: the payloads of any number of senders follow each other.
class Decode : public LibraryRun {
public:
  Decode(const Operands &operands, int64_t senders, bool mayBeAbsent, int64_t threads)
      : o(operands), senders(senders), mayBeAbsent(mayBeAbsent),
        members(std::min(o.rows, shareOut(o.bytes(), kGrain, threads))) {}

  void run(const NamedCommand &source, ExecutionContext &context) const override {
    Status status = checkHeaders();
    std::vector<Status> failures(static_cast<size_t>(members));
    if (status.ok())
      context.share(members, [&](int64_t member) {
        failures[static_cast<size_t>(member)] =
            decode(partOf(o.rows, member, members), *context.kernels.codec);
      });
    for (size_t i = 0; i < failures.size() && status.ok(); ++i)
      status = failures[i];
    if (!status.ok())
      context.control.fail(
          status.within("rank " + std::to_string(context.self.rank) + ": " + describe(source)));
  }

private:
  /// A part has the rows of its tensor, or, after a sum of parts, those that were padding too.
  Status checkHeaders() const {
    const PayloadLayout &layout = o.layout;
    for (int64_t i = 0; i < senders * layout.parts; ++i) {
      const std::byte *header = o.part(i);
      // Nothing was sent; bytes of 0 decode to 0.
      if (mayBeAbsent && std::all_of(header, header + PayloadLayout::kHeaderBytes,
                                     [](std::byte byte) { return byte == std::byte(0); }))
        continue;
      const int64_t part = i % layout.parts;
      RETURN_IF_ERROR(layout.checkHeader(header, senders > 1 ? 0 : layout.rowsOf(part))
                          .within("part " + std::to_string(i)));
      if (const int64_t first = rowsIn(o.part(part)), rows = rowsIn(header); rows != first)
        return Status::error("part ", i, ": expects a payload of ", first, " rows, as part ", part,
                             " has, got ", rows);
    }
    return {};
  }
  static int64_t rowsIn(const std::byte *header) {
    uint32_t rows;
    std::memcpy(&rows, header + 8, sizeof rows);
    return rows;
  }

  Status decode(Range range, const CodecKernels &kernels) const {
    const int64_t perPart = o.layout.rowsPerPart, parts = o.layout.parts;
    std::vector<const void *> from(static_cast<size_t>(senders));
    const bool stream = o.bytes() >= kStreamed;
    for (int64_t row = range.begin; row < range.end; ++row) {
      for (int64_t sender = 0; sender < senders; ++sender)
        from[static_cast<size_t>(sender)] =
            o.payloadRow(sender * parts + row / perPart, row % perPart);
      const SpikeFault fault = kernels.decodeRows(o.codec, from.data(), senders,
                                                  static_cast<int>(o.type), o.row(row), stream);
      if (fault.position >= 0)
        return Status::error("row ", row, ": expects a spike position below ", fault.elements,
                             ", got ", fault.position);
    }
    return {};
  }

  /// Bytes from which results would not stay in a cache.
  static constexpr double kStreamed = 1 << 24;

  Operands o;
  int64_t senders;
  bool mayBeAbsent;
  int64_t members;
};

} // namespace

Result<LibraryCommand> resolveEncode(const LibraryArguments &a, int64_t threads) {
  ASSIGN_OR_RETURN(const Operands operands, Operands::of(a, "input", "payload"));
  return LibraryCommand(std::make_shared<Encode>(operands, threads));
}

Result<LibraryCommand> resolveDecode(const LibraryArguments &a, bool sums, int64_t threads) {
  ASSIGN_OR_RETURN(const Operands operands, Operands::of(a, "out", "payload"));
  const int64_t last = a.integers.back(); // absent of decode, senders of decode_sum
  return LibraryCommand(
      std::make_shared<Decode>(operands, sums ? last : 1, !sums && last != 0, threads));
}

} // namespace braid::runtime
