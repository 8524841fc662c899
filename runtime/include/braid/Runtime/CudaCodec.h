//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The kernels that encode and decode payloads on a GPU. The code of a program has one for each
// encoding and type that it uses, which the compiler makes of runtime/kernels/cuda/braid/codec.cuh;
// the executor finds it by its name. A kernel of rows may do its work instead, for an operand
// (codec_rows.cuh).
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_CUDACODEC_H
#define BRAID_RUNTIME_CUDACODEC_H

#include "braid/Base/LibraryKernels.h"

#include <optional>
#include <string>

namespace braid::runtime {

struct CudaCodec {
  Encoding encoding;
  DType tensor = DType::f32;   ///< of the tensor that is or was encoded
  std::optional<DType> result; ///< what it is decoded to; none: the kernel encodes

  /// Of a call of encode, decode or decode_sum; the last two have the same kernel.
  static Result<CudaCodec> of(const LibraryCall &call);
  /// Whether `kernel` is the name of one of these calls.
  static bool has(const std::string &kernel);

  /// "braid_decode_int4_128_spikes_of_bf16_to_f32". It takes a library::Codec.
  std::string function() const;
  /// The definition of the function, for a source that includes braid/codec.cuh.
  std::string source() const;
  /// The encoding, the type of the tensor that is or was encoded, and that of the rows that are
  /// encoded or result, in CUDA C++.
  std::string encodingType() const;
  std::string tensorType() const;
  std::string rowsType() const;
};

} // namespace braid::runtime
#endif // BRAID_RUNTIME_CUDACODEC_H
