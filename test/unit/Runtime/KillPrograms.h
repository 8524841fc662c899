//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What ranks run that tests kill.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_KILLPROGRAMS_H
#define BRAID_TEST_UNIT_RUNTIME_KILLPROGRAMS_H

#include "ProgramBuilder.h"

namespace braid::runtime::testing {

/// Two layers of a matmul and an all_reduce, and a ring of sends of three ranks. x and y are 4 x 8,
/// w is 8 x 8; it uses 384 bytes of symmetric memory and 8 events.
inline void addLayersAndRing(ProcedureBuilder &p, const V &x, const V &w, const V &y) {
  const V part = symmetric(0, DType::f32, {4, 8}), sum = symmetric(256, DType::f32, {4, 8});
  p.matmul("first", x, w, nullptr, part);
  p.start("sum.0", fb::CollectiveKind::all_reduce, {"tp"}, {part}, {sum}, 0, 0, 1);
  p.wait("sum.0", 1);
  p.matmul("second", sum, w, nullptr, part);
  p.start("sum.1", fb::CollectiveKind::all_reduce, {"tp"}, {part}, {sum}, 0, 2, 3);
  p.wait("sum.1", 3);
  p.start("send", fb::CollectiveKind::send, {"tp"}, {sum}, {}, 0, 4, 5);
  p.last().pairs = {0, 1, 1, 2, 2, 0};
  p.start("recv", fb::CollectiveKind::recv, {"tp"}, {}, {part}, 0, 6, 7);
  p.last().pairs = {0, 1, 1, 2, 2, 0};
  p.wait("send", 5);
  p.wait("recv", 7);
  p.copy("out", part, y);
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_KILLPROGRAMS_H
