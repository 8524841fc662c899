//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Overlap and coverage of random views of a buffer, compared with sets of bytes.
//
//===----------------------------------------------------------------------===//
#include "braid/Analysis/MemoryRegion.h"

#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace mlir;
using namespace braid;

namespace {

constexpr int64_t kRanks = 2; // of each of two axes

class MemoryRegions : public ::testing::Test {
protected:
  MemoryRegions() { context.loadDialect<comm::CommDialect, rt::RTDialect>(); }

  int64_t upTo(int64_t limit) { return static_cast<int64_t>(random() % uint64_t(limit)); }

  /// A procedure with `count` random views of one buffer of f32.
  void draw(int count) {
    std::string text = "comm.mesh @mesh <a = 2, b = 2>\nrt.procedure @f(%x: memref<4x6x8xf32>) {\n";
    for (int i = 0; i < count; ++i) {
      // A part of each dimension, by rank in one of two, and the view that it is of a reshape.
      const int64_t sizes[] = {4, 6, 8};
      int64_t offsets[3], shape[3];
      for (int d = 0; d < 3; ++d) {
        shape[d] = 1 + upTo(sizes[d]);
        offsets[d] = upTo(sizes[d] - shape[d] + 1);
      }
      const int64_t dim = upTo(3);
      const bool byRank = upTo(2) == 0 && offsets[dim] + kRanks * shape[dim] <= sizes[dim];
      std::string number = std::to_string(i), part;
      if (byRank)
        part = " part " + std::to_string(dim) + " shift " + std::to_string(upTo(5) - 2) +
               " over <@mesh, {" + (upTo(2) == 0 ? "a" : "b") + "}>";
      const MemRefType type = rt::viewType(shape, Float32Type::get(&context), {48, 8, 1}, {});
      std::string typeText;
      llvm::raw_string_ostream(typeText) << type;
      text += "  %" + number + " = rt.subview %x at [" + std::to_string(offsets[0]) + ", " +
              std::to_string(offsets[1]) + ", " + std::to_string(offsets[2]) + "]" + part +
              " : memref<4x6x8xf32> to " + typeText + "\n";
    }
    text += "  rt.return\n}\n";
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    views.clear();
    module->walk([&](rt::SubviewOp view) { views.push_back(view); });
  }

  /// The bytes of a view on the rank at positions `a` and `b`.
  static std::set<int64_t> bytes(rt::SubviewOp view, int64_t a, int64_t b) {
    std::set<int64_t> result;
    SmallVector<int64_t> begin(view.getOffsets());
    ArrayRef<int64_t> shape = view.getResult().getType().getShape();
    if (view.getGroup()) {
      const int64_t position = view.getGroup()->getAxes().front().getName() == "a" ? a : b;
      const auto shift = static_cast<int64_t>(view.getShift().value_or(0));
      begin[*view.getPart()] +=
          ((position + shift) % kRanks + kRanks) % kRanks * shape[*view.getPart()];
    }
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t k = 0; k < shape[1]; ++k)
        for (int64_t l = 0; l < shape[2]; ++l)
          for (int64_t byte = 0; byte < 4; ++byte)
            result.insert(((begin[0] + i) * 48 + (begin[1] + k) * 8 + begin[2] + l) * 4 + byte);
    return result;
  }

  /// Whether `holds` on the rank at any of the positions.
  template <typename Fn> static bool onAnyRank(Fn holds) {
    for (int64_t a = 0; a < kRanks; ++a)
      for (int64_t b = 0; b < kRanks; ++b)
        if (holds(a, b))
          return true;
    return false;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  SmallVector<rt::SubviewOp> views;
  const uint32_t seed = std::random_device()();
  std::mt19937 random{seed};
};

TEST_F(MemoryRegions, OverlapWhereTheyShareBytes) {
  RecordProperty("seed", std::to_string(seed));
  int overlapping = 0, apart = 0;
  for (int round = 0; round < 300; ++round) {
    draw(2);
    const bool expected = onAnyRank([&](int64_t a, int64_t b) {
      const std::set<int64_t> first = bytes(views[0], a, b), second = bytes(views[1], a, b);
      return llvm::any_of(first, [&](int64_t byte) { return second.count(byte) != 0; });
    });
    ++(expected ? overlapping : apart);
    EXPECT_EQ(mayOverlap(regionOf(views[0].getResult()), regionOf(views[1].getResult())), expected)
        << "seed " << seed;
  }
  EXPECT_GE(overlapping, 20);
  EXPECT_GE(apart, 20);
}

TEST_F(MemoryRegions, CoverWhatTheirBytesTogetherAre) {
  RecordProperty("seed", std::to_string(seed));
  int covered = 0, open = 0;
  for (int round = 0; round < 600; ++round) {
    draw(9);
    SmallVector<MemoryRegion> regions;
    for (rt::SubviewOp view : views)
      regions.push_back(regionOf(view.getResult()));
    SmallVector<const MemoryRegion *> parts;
    for (const MemoryRegion &region : ArrayRef(regions).drop_front())
      parts.push_back(&region);
    const bool gap = onAnyRank([&](int64_t a, int64_t b) {
      std::set<int64_t> together;
      for (rt::SubviewOp view : ArrayRef(views).drop_front())
        together.merge(bytes(view, a, b));
      return llvm::any_of(bytes(views[0], a, b),
                          [&](int64_t byte) { return together.count(byte) == 0; });
    });
    ++(gap ? open : covered);
    EXPECT_EQ(cover(parts, regions[0]), !gap) << "seed " << seed;
  }
  EXPECT_GE(covered, 20);
  EXPECT_GE(open, 20);
}

TEST_F(MemoryRegions, OfAReshapeIsThatOfItsSource) {
  module = parseSourceString<ModuleOp>(R"(
    rt.procedure @f(%x: memref<4x6x8xf32>) {
      %0 = rt.subview %x at [0, 2, 0] : memref<4x6x8xf32> to memref<4x3x8xf32, strided<[48, 8, 1]>>
      %1 = rt.view %0 : memref<4x3x8xf32, strided<[48, 8, 1]>> to memref<2x2x24xf32, strided<[96, 48, 1]>>
      rt.return
    })",
                                       &context);
  ASSERT_TRUE(module);
  SmallVector<Value> values;
  module->walk([&](Operation *op) {
    if (isa<rt::SubviewOp, rt::ViewOp>(op))
      values.push_back(op->getResult(0));
  });
  const MemoryRegion region = regionOf(values[1]);
  EXPECT_TRUE(region == regionOf(values[0]));
  EXPECT_EQ(region.begin, 16 * 4);
  EXPECT_EQ(region.length, 24 * 4);
  ASSERT_EQ(region.steps.size(), 1U);
  EXPECT_EQ(region.steps[0].count, 4);
  EXPECT_EQ(region.steps[0].bytes, 48 * 4);
}

} // namespace
