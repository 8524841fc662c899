//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramChanges.h"

#include "Testing.h"

#include <limits>

using namespace braid::runtime;
using namespace braid::runtime::testing;
namespace program = braid::program;
using Type = program::DType;
using program::ProgramT;

namespace {

TEST(Program, RefusesBadViews) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs->space = unknown<program::Space>(3); }),
               matmulPlace() + "lhs: unknown memory space 3");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs->space = unknown<program::Space>(-1); }),
               matmulPlace() + "lhs: unknown memory space -1");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs->dtype = unknown<Type>(7); }),
               matmulPlace() + "lhs: unknown type 7");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs->strides.pop_back(); }),
               matmulPlace() +
                   "lhs: expects as many strides as sizes, got shape [2, 4] and strides [4]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs->shape[0] = 0; }),
               matmulPlace() +
                   "lhs: expects positive sizes and no negative strides, got shape [0, 4] "
                   "and strides [4, 1]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs->strides[0] = -4; }),
               matmulPlace() +
                   "lhs: expects positive sizes and no negative strides, got shape [2, 4] "
                   "and strides [-4, 1]");
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { matmul(p).lhs = local(0, std::vector<int64_t>(9, 1)); }),
      matmulPlace() + "lhs: expects at most 8 dimensions, got shape of 9");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs->offset_bytes = 2; }),
               matmulPlace() + "lhs: expects an offset at a multiple of 4 bytes for f32, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs->offset_bytes = 36; }),
               matmulPlace() + "lhs: view ends at byte 68 of a local frame of 64 bytes");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).lhs->strides[0] = 13; }),
               matmulPlace() + "lhs: view ends at byte 68 of a local frame of 64 bytes");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { layer(p).symmetric_bytes = 0; }),
               matmulPlace() + "out: view ends at byte 64 of a symmetric frame of 0 bytes");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).rhs->index = 3; }),
               matmulPlace() + "rhs: expects an argument below 3, got 3");
}

TEST(Program, RefusesViewsThatOverflow) {
  const int64_t big = std::numeric_limits<int64_t>::max();
  auto message = [](const std::string &shape, const std::string &strides) {
    return matmulPlace() + "lhs: view of shape " + shape + " and strides " + strides +
           " is too large";
  };
  auto with = [&](std::vector<int64_t> shape, std::vector<int64_t> strides, uint64_t offset) {
    return verifyAfter([&](ProgramT &p) {
      matmul(p).lhs->shape = shape;
      matmul(p).lhs->strides = strides;
      matmul(p).lhs->offset_bytes = offset;
    });
  };
  const std::string text = std::to_string(big);
  EXPECT_ERROR(with({3, 4}, {big, 1}, 0), message("[3, 4]", "[" + text + ", 1]"));
  EXPECT_ERROR(with({2, 2}, {big, big}, 0), message("[2, 2]", "[" + text + ", " + text + "]"));
  EXPECT_ERROR(with({2, 4}, {big / 2, 1}, 0),
               message("[2, 4]", "[" + std::to_string(big / 2) + ", 1]"));
  EXPECT_ERROR(with({2, 4}, {4, 1}, ~uint64_t(3)), message("[2, 4]", "[4, 1]"));
  // The stride is not used, but it overflows when converted to bytes.
  EXPECT_ERROR(with({1, 4}, {int64_t(1) << 61, 1}, 0),
               message("[1, 4]", "[2305843009213693952, 1]"));
  // All elements are the same one, but their number overflows.
  EXPECT_ERROR(with({big, 4}, {0, 1}, 0), message("[" + text + ", 4]", "[0, 1]"));
}

TEST(Program, RefusesBadPositions) {
  auto with = [](const std::function<void(program::PositionT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      auto position = std::make_unique<program::PositionT>();
      position->axes.push_back(std::make_unique<program::AxisRefT>());
      position->axes.back()->name = "tp";
      position->count = 2;
      position->stride_bytes = 32;
      change(*position);
      matmul(p).lhs->position = std::move(position);
    });
  };
  EXPECT_OK(with([](program::PositionT &) {})); // the last place ends with the frame
  for (int64_t shift : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()})
    EXPECT_OK(with([&](program::PositionT &p) { p.shift = shift; }));
  EXPECT_ERROR(with([](program::PositionT &p) { p.count = 3; }),
               matmulPlace() + "lhs: view ends at byte 96 of a local frame of 64 bytes");
  EXPECT_ERROR(with([](program::PositionT &p) { p.stride_bytes = 36; }),
               matmulPlace() + "lhs: view ends at byte 68 of a local frame of 64 bytes");
  EXPECT_ERROR(with([](program::PositionT &p) { p.count = 0; }),
               matmulPlace() + "lhs: expects at least one place by position, got 0");
  EXPECT_ERROR(with([](program::PositionT &p) { p.stride_bytes = 30; }),
               matmulPlace() + "lhs: expects places at multiples of 4 bytes, got 30");
  EXPECT_ERROR(with([](program::PositionT &p) {
                 p.count = std::numeric_limits<int64_t>::max();
                 p.stride_bytes = 4;
               }),
               matmulPlace() + "lhs: view of shape [2, 4] and strides [4, 1] is too large");
  EXPECT_ERROR(with([](program::PositionT &p) { p.axes[0]->name = "pp"; }),
               matmulPlace() + "lhs: unknown axis 'pp' in mesh 'mesh'");
  EXPECT_ERROR(with([](program::PositionT &p) { p.axes.clear(); }),
               matmulPlace() + "lhs: expects at least one mesh axis");
}

TEST(Program, RefusesBadBuffers) {
  auto with = [](const std::function<void(ProgramT &, program::BufferT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      auto buffer = std::make_unique<program::BufferT>();
      buffer->space = program::Space::local;
      buffer->size_bytes = 32;
      matmul(p).lhs->buffer = 0;
      change(p, *buffer);
      layer(p).buffers.push_back(std::move(buffer));
    });
  };
  EXPECT_OK(with([](ProgramT &, program::BufferT &) {}));
  EXPECT_ERROR(with([](ProgramT &, program::BufferT &b) { b.space = program::Space::argument; }),
               "procedure 'layer': buffer 0: expects local or symmetric memory");
  EXPECT_ERROR(with([](ProgramT &, program::BufferT &b) { b.offset_bytes = 64; }),
               "procedure 'layer': buffer 0 of 32 bytes at 64 is not within a local frame of 64 "
               "bytes");
  EXPECT_ERROR(with([](ProgramT &, program::BufferT &b) { b.offset_bytes = ~uint64_t(0); }),
               "procedure 'layer': buffer 0 of 32 bytes at 18446744073709551615 is not within a "
               "local frame of 64 bytes");
  for (int32_t index : {1, -2})
    EXPECT_ERROR(with([&](ProgramT &p, program::BufferT &) { matmul(p).lhs->buffer = index; }),
                 matmulPlace() + "lhs: expects a buffer below 1, got " + std::to_string(index));
  EXPECT_ERROR(with([](ProgramT &, program::BufferT &b) { b.size_bytes = 16; }),
               matmulPlace() +
                   "lhs: view of bytes 0 to 32 is not within its buffer 0 of bytes 0 to 16");
  EXPECT_ERROR(with([](ProgramT &, program::BufferT &b) { b.space = program::Space::symmetric; }),
               matmulPlace() +
                   "lhs: view of bytes 0 to 32 is not within its buffer 0 of bytes 0 to 32");
  EXPECT_ERROR(with([](ProgramT &p, program::BufferT &) { matmul(p).rhs->buffer = 0; }),
               matmulPlace() + "rhs: expects no buffer for an argument, got 0");
}

} // namespace
