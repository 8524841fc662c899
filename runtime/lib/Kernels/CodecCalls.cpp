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
    if (payload.shape.back() != 1 && payload.strides.back() != 1)
      return Status::error("expects a contiguous last dimension of ", payloadName, " ",
                           shapeString(payload.shape), ", got strides ",
                           shapeString(payload.strides));
    ASSIGN_OR_RETURN(const int64_t rowStride, tensor.rowStride());
    ASSIGN_OR_RETURN(o.layout, payloadLayout(a));
    o.codec = CodecRow::of(o.layout);
    o.tensor = tensor.data;
    o.payload = payload.data;
    o.rows = tensor.rows();
    o.rowStrideBytes = rowStride * byteSize(o.type);
    o.partStrideBytes = payload.strides[0];
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

/// decode, of rows that are cut into parts, and decode_sum, of parts that have all rows each.
class Decode : public LibraryRun {
public:
  Decode(const Operands &operands, bool sums, int64_t threads)
      : o(operands), sums(sums), members(std::min(o.rows, shareOut(o.bytes(), kGrain, threads))) {}

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
  Status checkHeaders() const {
    auto within = [](Status status, int64_t part) {
      return status.within("part " + std::to_string(part));
    };
    uint32_t first = 0;
    for (int64_t part = 0; part < o.layout.parts; ++part) {
      const std::byte *header = o.part(part);
      RETURN_IF_ERROR(within(o.layout.checkHeader(header, sums ? 0 : o.layout.rowsOf(part)), part));
      uint32_t rows;
      std::memcpy(&rows, header + 8, sizeof rows);
      first = part == 0 ? rows : first;
      if (sums && rows != first)
        return within(
            Status::error("expects a payload of ", first, " rows, as part 0 has, got ", rows),
            part);
    }
    return {};
  }

  Status decode(Range range, const CodecKernels &kernels) const {
    const int64_t perPart = o.layout.rowsPerPart, parts = sums ? o.layout.parts : 1;
    std::vector<const void *> from(static_cast<size_t>(parts));
    const bool stream = o.bytes() >= kStreamed;
    for (int64_t row = range.begin; row < range.end; ++row) {
      for (int64_t part = 0; part < parts; ++part)
        from[static_cast<size_t>(part)] =
            sums ? o.payloadRow(part, row) : o.payloadRow(row / perPart, row % perPart);
      const SpikeFault fault = kernels.decodeRows(o.codec, from.data(), parts,
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
  bool sums;
  int64_t members;
};

} // namespace

Result<LibraryCommand> resolveEncode(const LibraryArguments &a, int64_t threads) {
  ASSIGN_OR_RETURN(const Operands operands, Operands::of(a, "input", "payload"));
  return LibraryCommand(std::make_shared<Encode>(operands, threads));
}

Result<LibraryCommand> resolveDecode(const LibraryArguments &a, bool sums, int64_t threads) {
  ASSIGN_OR_RETURN(const Operands operands, Operands::of(a, "out", "payload"));
  return LibraryCommand(std::make_shared<Decode>(operands, sums, threads));
}

} // namespace braid::runtime
