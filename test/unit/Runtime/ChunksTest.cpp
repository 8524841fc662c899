//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Weights are copied to devices in chunks of bounded size.
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Model/Chunks.h"
#include "Testing.h"

using namespace braid::runtime;

namespace {

/// The sizes of a box's chunks, and the elements that they contain.
struct Chunks {
  std::vector<int64_t> sizes; ///< in elements
  std::vector<int64_t> elements;
};

/// Takes chunks of a box from a tensor of this shape whose elements are their own indices.
Chunks take(const Box &box, const std::vector<int64_t> &shape, int64_t limit) {
  Chunks chunks;
  chunks.elements.assign(static_cast<size_t>(elementsOf(box)), -1);
  EXPECT_OK(forEachChunk(box, limit, [&](const Box &chunk, int64_t begin) -> Status {
    chunks.sizes.push_back(elementsOf(chunk));
    std::vector<int64_t> index(shape.size(), 0);
    for (int64_t i = 0; i < elementsOf(chunk); ++i) {
      int64_t number = 0;
      for (size_t d = 0; d < shape.size(); ++d)
        number = number * shape[d] + chunk.offsets[d] + index[d];
      chunks.elements.at(static_cast<size_t>(begin + i)) = number;
      for (size_t d = shape.size(); d-- > 0;) {
        if (++index[d] < chunk.sizes[d])
          break;
        index[d] = 0;
      }
    }
    return {};
  }));
  return chunks;
}

TEST(Chunks, PutABoxTogether) {
  const std::vector<int64_t> shape{3, 4, 5, 6};
  const Box box{{1, 1, 0, 2}, {2, 3, 5, 4}};
  const Chunks whole = take(box, shape, 1000);
  EXPECT_THAT(whole.sizes, ::testing::ElementsAre(120));
  for (int64_t limit = 1; limit <= 130; ++limit) {
    const Chunks chunks = take(box, shape, limit);
    EXPECT_EQ(chunks.elements, whole.elements) << limit;
    for (int64_t size : chunks.sizes)
      EXPECT_LE(size, limit);
  }
}

TEST(Chunks, AreAsLargeAsTheyMayBe) {
  EXPECT_THAT(take({{0, 0}, {7, 4}}, {7, 4}, 12).sizes, ::testing::ElementsAre(12, 12, 4));
  EXPECT_THAT(take({{0, 0}, {2, 5}}, {2, 5}, 3).sizes, ::testing::ElementsAre(3, 2, 3, 2));
  EXPECT_THAT(take({{0}, {4}}, {4}, 4).sizes, ::testing::ElementsAre(4));
  EXPECT_THAT(take({{}, {}}, {}, 4).sizes, ::testing::ElementsAre(1));
  EXPECT_TRUE(take({{0, 0}, {3, 0}}, {3, 0}, 1).sizes.empty());
}

TEST(Chunks, EndWithAnError) {
  int chunks = 0;
  EXPECT_ERROR(forEachChunk({{0}, {9}}, 2,
                            [&](const Box &, int64_t) {
                              return ++chunks == 3 ? Status::error("enough") : Status();
                            }),
               "enough");
  EXPECT_EQ(chunks, 3);
}

} // namespace
