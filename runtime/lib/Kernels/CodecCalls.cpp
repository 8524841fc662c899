//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// encode, decode and decode_sum on the CPU.
//
//===----------------------------------------------------------------------===//
#include "PayloadRows.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>

namespace braid::runtime {

namespace {

/// A tensor, by rows, and its payload.
struct Operands {
  PayloadRows payload;
  std::byte *tensor = nullptr;
  int64_t rowStrideBytes = 0;

  static Result<Operands> of(const LibraryArguments &a, const char *tensorName) {
    Operands o;
    ASSIGN_OR_RETURN(o.payload, PayloadRows::of(a));
    const Tensor tensor = a.tensor(tensorName);
    ASSIGN_OR_RETURN(const int64_t rowStride, tensor.rowStride());
    o.tensor = tensor.data;
    o.rowStrideBytes = rowStride * byteSize(tensor.dtype);
    return o;
  }

  std::byte *row(int64_t i) const { return tensor + i * rowStrideBytes; }
  double bytes() const {
    return static_cast<double>(payload.rows()) * static_cast<double>(payload.columns()) * 4;
  }
};

/// Bytes of a tensor in f32 for which a further member is worth it.
constexpr int64_t kGrain = 1 << 18;

class Encode : public LibraryRun {
public:
  Encode(const Operands &operands, int64_t threads)
      : o(operands), members(std::max<int64_t>(
                         1, std::min(o.payload.sentRows(), shareOut(o.bytes(), kGrain, threads)))) {
  }

  void run(const NamedCommand &, ExecutionContext &context) const override {
    o.payload.writeBorders();
    context.share(members, [&](int64_t member) {
      const Range range = partOf(o.payload.sentRows(), member, members);
      for (int64_t i = range.begin; i < range.end; ++i) {
        const int64_t row = o.payload.sentRow(i);
        o.payload.encode(*context.kernels.codec, row, o.row(row));
      }
    });
  }

private:
  Operands o;
  int64_t members;
};

/// decode and decode_sum: the payloads of any number of senders follow each other.
class Decode : public LibraryRun {
public:
  Decode(const Operands &operands, int64_t threads)
      : o(operands), members(std::min(o.payload.rows(), shareOut(o.bytes(), kGrain, threads))) {}

  void run(const NamedCommand &source, ExecutionContext &context) const override {
    Status status = o.payload.checkHeaders();
    std::vector<Status> failures(static_cast<size_t>(members));
    if (status.ok())
      context.share(members, [&](int64_t member) {
        const Range range = partOf(o.payload.rows(), member, members);
        failures[static_cast<size_t>(member)] =
            o.payload.decode(*context.kernels.codec, range, o.row(range.begin), o.rowStrideBytes,
                             o.bytes() >= kStreamed);
      });
    for (size_t i = 0; i < failures.size() && status.ok(); ++i)
      status = failures[i];
    if (!status.ok())
      context.control.fail(
          status.within("rank " + std::to_string(context.self.rank) + ": " + describe(source)));
  }

private:
  /// Bytes from which results would not stay in a cache.
  static constexpr double kStreamed = 1 << 24;

  Operands o;
  int64_t members;
};

} // namespace

Result<LibraryCommand> resolveEncode(const LibraryArguments &a, int64_t threads) {
  ASSIGN_OR_RETURN(const Operands operands, Operands::of(a, "input"));
  return LibraryCommand(std::make_shared<Encode>(operands, threads));
}

Result<LibraryCommand> resolveDecode(const LibraryArguments &a, int64_t threads) {
  ASSIGN_OR_RETURN(const Operands operands, Operands::of(a, "out"));
  return LibraryCommand(std::make_shared<Decode>(operands, threads));
}

} // namespace braid::runtime
