//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/CodecFusion.h"

#include "runtime/kernels/cuda/braid/library_arguments.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace braid;
using runtime::Encoding;

/// The most warps of a block.
static constexpr int64_t kMostWarps = 32;
/// Of each kind of reduction a block has a number of every warp.
static constexpr int64_t kReductionBytes = 6 * kMostWarps * 4;

SmallVector<RowCodec> braid::rowCodecsOf(rt::KernelOp kernel) {
  SmallVector<RowCodec> codecs;
  for (auto [i, type] : llvm::enumerate(
           llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes())))
    if (rt::PayloadAttr payload = kernel.getPayload(static_cast<unsigned>(i))) {
      auto rows = cast<RankedTensorType>(type);
      codecs.push_back({payload.getEncoding().getPair().reduce, *comm::toRuntime(payload.getType()),
                        *comm::toRuntime(rows.getElementType()), rows.getShape().back(),
                        i >= kernel.getArgumentTypes().size()});
    }
  return codecs;
}

/// What a warp collects before it writes it to a payload (Stage of codec_payload.cuh).
static int64_t collectedBytes(const RowCodec &codec) {
  auto collected = [](int64_t bytes) { return llvm::alignTo(bytes, 4) + 4; };
  const Encoding &e = codec.encoding;
  const int64_t groups = e.isCast() ? 0 : 32 / library::codecLanes(e.group);
  return static_cast<int64_t>(collected(groups * e.groupHeaderBytes(codec.encoded)) +
                              collected(32 * e.bits));
}

int64_t braid::cudaSharedBytes(ArrayRef<RowCodec> codecs, int64_t rows, int64_t warps) {
  int64_t bytes = kReductionBytes;
  for (const RowCodec &codec : codecs) {
    bytes += rows *
             static_cast<int64_t>(llvm::alignTo(codec.columns * runtime::byteSize(codec.rows), 16));
    if (!codec.encodes)
      continue;
    bytes += rows * warps * collectedBytes(codec);
    if (codec.encoding.scale == Encoding::Scale::nvfp4)
      bytes += warps * 4;
  }
  return bytes;
}

std::string braid::whyNotFused(KernelTarget target, ArrayRef<RowCodec> codecs) {
  if (target == KernelTarget::CPU || codecs.empty())
    return {};
  const int64_t bytes = cudaSharedBytes(codecs, /*rows=*/1, kMostWarps);
  if (bytes <= kCUDASharedBytes)
    return {};
  return ("a block of a GPU would need " + Twine(bytes) +
          " bytes of shared memory for rows and codecs, and has " + Twine(kCUDASharedBytes))
      .str();
}
