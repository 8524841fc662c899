//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The encodings of braid/Base/Encoding.h once more, one element and one bit after the other, as the
// header's text says: what the runtime's codecs are compared with.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_INTERPRETER_CORE_CODEC_H
#define BRAID_LIB_INTERPRETER_CORE_CODEC_H

#include "braid/Base/Encoding.h"

#include <cstdint>
#include <vector>

namespace braid::interp {

/// The bytes of a row of a tensor of `type`, whose elements are of that type.
std::vector<uint8_t> encodeRow(const runtime::Encoding &encoding, runtime::DType type,
                               const std::vector<float> &row);
/// The elements of a row, not yet cast to a tensor's type. An error for bytes that no row has.
runtime::Result<std::vector<float>> decodeRow(const runtime::Encoding &encoding,
                                              runtime::DType type, int64_t columns,
                                              const std::vector<uint8_t> &bytes);
/// The nearest value of f32, f16 or bf16; a finite one stays finite, and a NaN is quiet and
/// positive.
float castTo(runtime::DType type, float value);

} // namespace braid::interp
#endif // BRAID_LIB_INTERPRETER_CORE_CODEC_H
