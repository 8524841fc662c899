//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// encode, decode and decode_sum: launches of the kernels of codec.cuh that the program's code has.
//
//===----------------------------------------------------------------------===//
#include "StreamCommand.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime::cuda {

namespace {

/// The kernels count warps, columns and parts in 31 bits.
constexpr int64_t kMostCounted = int64_t(1) << 31;

/// The multiplier m = (2^shift + e) / d, of shift = 31 + ceil(log2(d)), has e < d. For n < 2^31, n
/// * m / 2^shift is n / d and n * e / (d * 2^shift) < 1 / d more, which is the same number when it
/// is rounded down.
library::Divisor divisorOf(int64_t divisor) {
  int shift = 31;
  while ((int64_t(1) << (shift - 31)) < divisor)
    ++shift;
  const uint64_t power = uint64_t(1) << shift, d = static_cast<uint64_t>(divisor);
  return {static_cast<unsigned>(d), static_cast<unsigned>((power + d - 1) / d), shift};
}

int64_t ceilDiv(int64_t n, int64_t by) { return n / by + (n % by != 0); }

/// The warps that a row has when it is encoded.
int64_t warpsToEncode(const PayloadLayout &layout) {
  if (layout.encoding.isCast())
    return ceilDiv(layout.columns, library::kCodecElements);
  if (layout.encoding.scale == Encoding::Scale::nvfp4)
    return library::kThreads / 32;
  return ceilDiv(layout.groups, 32 / library::codecLanes(layout.encoding.group));
}

} // namespace

Result<CodecLaunch> codecLaunch(const LibraryArguments &a) {
  CodecLaunch launch;
  ASSIGN_OR_RETURN(launch.kernel, CudaCodec::of(a));
  RETURN_IF_ERROR(storedType(a, Storage::halves).status());
  ASSIGN_OR_RETURN(const PayloadLayout layout, payloadLayout(a));
  const bool decodes = launch.kernel.result.has_value();
  const bool sums = std::strcmp(a.kernel->name, "decode_sum") == 0;
  const int64_t senders = sums ? a.integers.back() : 1;
  const Tensor tensor = a.tensor(decodes ? "out" : "input"), payload = a.tensor("payload");
  ASSIGN_OR_RETURN(const int64_t rowStride, tensor.rowStride());
  ASSIGN_OR_RETURN(const int64_t partStride, payload.rowStride());
  const int64_t rows = decodes ? layout.rows : layout.parts * layout.rowsPerPart;
  const int64_t warpsPerRow =
      decodes ? ceilDiv(layout.columns, library::kCodecElements) : warpsToEncode(layout);
  const std::optional<int64_t> warps = checkedMul(rows, warpsPerRow);
  if (!warps || *warps >= kMostCounted || layout.columns >= kMostCounted ||
      layout.parts >= kMostCounted / senders)
    return Status::error("expects fewer than 2^31 columns, parts and blocks of ",
                         library::kCodecElements, " elements on target 'cuda', got ", layout.rows,
                         " rows of ", layout.columns, " in ", layout.parts * senders, " parts");
  library::Codec &c = launch.arguments;
  c.tensor = tensor.data;
  c.rowBytes = rowStride * byteSize(tensor.dtype);
  c.payload = reinterpret_cast<unsigned char *>(payload.data);
  c.partStride = partStride;
  c.payloadRowBytes = layout.rowBytes;
  c.codesOffset = layout.codesOffset;
  c.partBytes = layout.partBytes;
  c.rows = layout.rows;
  c.columns = static_cast<unsigned>(layout.columns);
  c.groups = static_cast<unsigned>(layout.groups);
  c.parts = static_cast<unsigned>(layout.parts);
  c.warps = static_cast<unsigned>(*warps);
  c.rowsPerPart = divisorOf(layout.rowsPerPart);
  c.warpsPerRow = divisorOf(warpsPerRow);
  c.groupHeaderBytes = static_cast<int>(layout.groupHeaderBytes);
  auto isAligned = [](const std::byte *data, int64_t stride, uint64_t bytes) {
    return static_cast<int>((address(data) | static_cast<uint64_t>(stride)) % bytes == 0);
  };
  c.alignedTensor = isAligned(tensor.data, c.rowBytes, 16);
  c.alignedPayload = isAligned(payload.data, partStride, 4);
  if (!a.payloadParts.empty())
    c.alignedPayload = static_cast<int>(
        std::all_of(a.payloadParts.begin(), a.payloadParts.end(),
                    [&](const std::byte *part) { return isAligned(part, 0, 4) != 0; }));
  layout.writeHeader(reinterpret_cast<std::byte *>(c.header), 0);
  c.header[2] = static_cast<unsigned>(layout.rowsPerPart);
  const OwnParts ownParts = decodes ? OwnParts() : OwnParts::of(a, a.part);
  c.ranks = static_cast<unsigned>(ownParts.ranks);
  c.ownParts = static_cast<unsigned>(ownParts.offset);
  c.senders = static_cast<unsigned>(senders);
  if (sums && a.has("own")) {
    const Tensor own = a.tensor("own");
    ASSIGN_OR_RETURN(const int64_t ownStride, own.rowStride());
    c.own = own.data;
    c.ownRowBytes = ownStride * byteSize(own.dtype);
    c.ownSender = static_cast<unsigned>(a.part);
  }
  c.mayBeAbsent = static_cast<int>(decodes && !sums && a.integers.back() != 0);
  // To decode, a thread checks the header of each part.
  launch.threads = std::max(*warps * 32, decodes ? senders * layout.parts : 0);
  return launch;
}

Status placeParts(const LibraryArguments &a, const LaunchPlace &place, RankDevice &rank,
                  library::Codec &arguments) {
  if (a.payloadParts.empty())
    return {};
  const size_t bytes = a.payloadParts.size() * sizeof a.payloadParts.front();
  ASSIGN_OR_RETURN(Memory table, allocate(rank.device, bytes, place.stream, "places of payloads"));
  RETURN_IF_ERROR(copyNow(*rank.device, table.get(),
                          address(static_cast<const void *>(a.payloadParts.data())), bytes,
                          place.stream));
  arguments.partsAt = reinterpret_cast<unsigned char *const *>(pointer(table.get()));
  rank.constants.push_back(std::move(table));
  return {};
}

Result<StreamCommand> makeCodec(const LibraryArguments &a, const LaunchPlace &place,
                                RankDevice &rank) {
  ASSIGN_OR_RETURN(CodecLaunch launch, codecLaunch(a));
  RETURN_IF_ERROR(placeParts(a, place, rank, launch.arguments));
  if (launch.kernel.result) {
    launch.arguments.fault = rank.faults + place.queue;
    launch.arguments.command = place.number;
    rank.hasFaults[place.queue] = true;
  }
  return libraryStreamCommand(rank, launch.kernel.function(), launch.threads, launch.arguments);
}

Status payloadError(const LibraryArguments &call, const library::Fault &fault) {
  if (fault.elements != 0)
    return Status::error("row ", fault.position, ": expects a spike position below ",
                         fault.elements, ", got ", fault.value);
  ASSIGN_OR_RETURN(const PayloadLayout layout, payloadLayout(call));
  const bool sums = std::strcmp(call.kernel->name, "decode_sum") == 0;
  const int64_t inTensor = fault.position % layout.parts;
  const int64_t first = inTensor + (sums && call.has("own") && call.part == 0 ? layout.parts : 0);
  const int64_t least = sums && call.integers.back() > 1 ? 0 : layout.rowsOf(inTensor);
  RETURN_IF_ERROR(layout.checkHeader(reinterpret_cast<const std::byte *>(fault.header), least)
                      .within("part " + std::to_string(fault.position)));
  // Else it is right by itself.
  return Status::error("part ", fault.position, ": expects a payload of ", fault.value,
                       " rows, as part ", first, " has, got ", fault.header[2]);
}

Status payloadError(const DeviceLaunchCommand &command, const library::Fault &fault) {
  const size_t operand = operandOfFault(fault.command);
  for (const EncodedOperand &encoded : command.encoded)
    if (encoded.operand == operand)
      return payloadError(encoded.codec, fault).within("operand " + std::to_string(operand));
  return Status::error("operand ", operand, ": expects a payload");
}

} // namespace braid::runtime::cuda
