//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Element types of tensors.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_DTYPE_H
#define BRAID_BASE_DTYPE_H

#include "braid/Base/Status.h"

#include <cstdint>
#include <string>

namespace braid::runtime {

enum class DType : int8_t { f32 = 0, f16, bf16, f64, i32, i64, i8 }; // values equal program.fbs
int64_t byteSize(DType type);
inline bool isInteger(DType type) {
  return type == DType::i32 || type == DType::i64 || type == DType::i8;
}
const char *name(DType type);                      // "f32", ...
Result<DType> parseDType(const std::string &name); // "f32", ...

} // namespace braid::runtime
#endif // BRAID_BASE_DTYPE_H
