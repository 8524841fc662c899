//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Codec.h"

#include "braid/Base/Encoding.h"

namespace braid::runtime {

// Codec*.inc has these numbers.
static_assert(static_cast<int>(DType::f32) == 0 && static_cast<int>(DType::f16) == 1 &&
              static_cast<int>(DType::bf16) == 2);
static_assert(static_cast<int>(Encoding::Element::f16) == 1 &&
              static_cast<int>(Encoding::Element::integer) == 2 &&
              static_cast<int>(Encoding::Element::e4m3) == 3 &&
              static_cast<int>(Encoding::Element::e2m1) == 7);
static_assert(static_cast<int>(Encoding::Form::zeroPoint) == 2);
static_assert(static_cast<int>(Encoding::Scale::bf16) == 1 &&
              static_cast<int>(Encoding::Scale::e8m0) == 2 &&
              static_cast<int>(Encoding::Scale::nvfp4) == 3);

CodecRow CodecRow::of(const PayloadLayout &layout) {
  const Encoding &e = layout.encoding;
  CodecRow row{};
  row.element = static_cast<int>(e.element);
  row.form = static_cast<int>(e.form);
  row.scale = static_cast<int>(e.scale);
  row.type = static_cast<int>(layout.type);
  row.bits = static_cast<int>(e.bits);
  row.spikes = e.spikes;
  row.group = e.isCast() ? layout.columns : e.group;
  row.rotation = e.rotation;
  row.columns = layout.columns;
  row.groups = layout.groups;
  row.groupHeaderBytes = layout.groupHeaderBytes;
  row.codesOffset = layout.codesOffset;
  row.rowBytes = layout.rowBytes;
  return row;
}

} // namespace braid::runtime
