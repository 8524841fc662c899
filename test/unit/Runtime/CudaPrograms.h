//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs that run on the CPU and on the null device.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_CUDAPROGRAMS_H
#define BRAID_TEST_CUDAPROGRAMS_H

#include "CudaTesting.h"
#include "FeedForward.h"

namespace braid::runtime::testing {

constexpr DType f32 = DType::f32, i32 = DType::i32, i64 = DType::i64;

inline void expectClose(const HostTensor &got, const HostTensor &expected, double allowed = 1e-6) {
  Result<Difference> difference = compare(got, expected);
  ASSERT_OK(difference);
  EXPECT_LE(difference->relativeL2, allowed);
}

/// Embedding, positions, rotary embedding and attention, with all their optional operands, on
/// integers and floats of these types. Ids are below `limit`: each of two ranks has 5 of 10 rows;
/// rows from `limit` on are padding.
inline ProgramBuilder libraryCalls(DType integers = i64, int64_t limit = 0, DType floats = f32) {
  constexpr int64_t kRows = 10, kSeq = 6, kHeads = 4, kGroups = 2, kDim = 8;
  ProgramBuilder b({{"tp", 2}});
  b.parameter("table", {kRows, kHeads * kDim}, {{"tp"}, {}}, floats);
  b.operand("ids", integers, {2, kSeq});
  b.operand("mask", integers, {2, kSeq});
  b.operand("length", integers, {2});
  b.operand("offset", integers, {2});
  b.result("rows", floats, {2, kSeq, kHeads * kDim}, {});
  b.result("positions", integers, {2, kSeq});
  b.result("attended", floats, {2, kSeq, kHeads, kDim});
  b.result("half", floats, {2, kSeq, kHeads * kDim}, {{}, {}, {"tp"}});
  auto p = b.procedure("main", 9, 8192, 8192, 2);
  const Shape rows{2, kSeq, kHeads * kDim}, heads{2, kSeq, kHeads, kDim},
      groups{2, kSeq, kGroups, kDim};
  V part = symmetric(0, floats, rows), whole = symmetric(2048, floats, rows);
  EmbeddingLaunch gather;
  gather.table = argument(0, floats, {kRows / 2, kHeads * kDim}).build();
  gather.ids = argument(1, integers, {2, kSeq}).build();
  gather.out = part.build();
  gather.axes = ProcedureBuilder::axisRefs({"tp"});
  gather.rows = limit;
  p.compute("embed", std::move(gather));
  p.start("embed.sum", fb::CollectiveKind::all_reduce, {"tp"}, {part}, {whole}, 0, 0, 1);
  PositionIdsLaunch positions;
  positions.ids = argument(1, integers, {2, kSeq}).build();
  positions.padding = 1;
  positions.out = argument(6, integers, {2, kSeq}).build();
  p.compute("positions", std::move(positions));
  V cos = local(0, floats, {2, kSeq, kDim / 2}), sin = local(512, floats, {2, kSeq, kDim / 2});
  RotaryTableLaunch table;
  table.frequencies = {1, 0.5, 0.25, 0.125};
  table.scale = 1.5;
  table.position_offset = argument(4, integers, {2}).build();
  table.cos = cos.build();
  table.sin = sin.build();
  p.compute("angles", std::move(table));
  p.wait("embed.sum", 1);
  p.copy("rows", whole, argument(5, floats, rows));
  RotaryLaunch rotary;
  V query = local(1024, floats, heads);
  rotary.input = symmetric(2048, floats, heads).build();
  rotary.cos = cos.build();
  rotary.sin = sin.build();
  rotary.out = query.build();
  p.compute("turn", std::move(rotary));
  AttentionLaunch attention;
  V keys = symmetric(2048, floats, groups),
    values = symmetric(2048 + kGroups * kDim * byteSize(floats), floats, groups);
  keys.strides = values.strides = {kSeq * kHeads * kDim, kHeads * kDim, kDim, 1};
  attention.query = query.build();
  attention.key = keys.build();
  attention.value = values.build();
  attention.mask = argument(2, integers, {2, kSeq}).build();
  attention.valid_length = argument(3, integers, {2}).build();
  attention.position_offset = argument(4, integers, {2}).build();
  attention.out = argument(7, floats, heads).build();
  attention.scale = 0.3F;
  attention.causal = true;
  p.compute("attend", std::move(attention));
  PartLaunch slice; // one side is strided
  slice.source = whole.build();
  slice.dest = argument(8, floats, {2, kSeq, kHeads * kDim / 2}).build();
  slice.dim = 2;
  slice.axes = ProcedureBuilder::axisRefs({"tp"});
  p.compute("half", std::move(slice));
  return b;
}

inline Status setIntegers(Session &session, DType dtype, const std::string &name,
                          const Shape &shape, const std::vector<int64_t> &values) {
  if (dtype == i64)
    return session.setInput(name, i64, shape, values.data());
  std::vector<int32_t> narrow;
  for (int64_t value : values)
    narrow.push_back(static_cast<int32_t>(value));
  return session.setInput(name, i32, shape, narrow.data());
}

inline Status setLibraryInputs(Session &session, const std::vector<int64_t> &ids,
                               DType dtype = i64) {
  Status status = setIntegers(session, dtype, "ids", {2, 6}, ids);
  if (status.ok())
    status = setIntegers(session, dtype, "mask", {2, 6}, {1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1});
  if (status.ok())
    status = setIntegers(session, dtype, "length", {2}, {6, 5});
  return status.ok() ? setIntegers(session, dtype, "offset", {2}, {0, 3}) : status;
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_CUDAPROGRAMS_H
