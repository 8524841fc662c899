//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/DType.h"

#include "braid/Base/Support.h"

namespace braid::runtime {

namespace {
struct TypeInfo {
  DType type;
  const char *name;
  int64_t bytes;
};
constexpr TypeInfo kTypes[] = {{DType::f32, "f32", 4},   {DType::f16, "f16", 2},
                               {DType::bf16, "bf16", 2}, {DType::f64, "f64", 8},
                               {DType::i32, "i32", 4},   {DType::i64, "i64", 8},
                               {DType::i8, "i8", 1}};
const TypeInfo &info(DType type) { return kTypes[static_cast<size_t>(type)]; }
} // namespace

int64_t byteSize(DType type) { return info(type).bytes; }

const char *name(DType type) { return info(type).name; }

Result<DType> parseDType(const std::string &text) {
  std::string known;
  for (const TypeInfo &candidate : kTypes) {
    if (text == candidate.name)
      return candidate.type;
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
  }
  return Status::error("unknown type ", inQuotes(text), ", expects one of ", known);
}

} // namespace braid::runtime
