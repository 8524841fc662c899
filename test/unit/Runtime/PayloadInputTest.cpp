//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Inputs of the fuzzer Payload: which encodings its mutator draws.
//
//===----------------------------------------------------------------------===//
#include "test/fuzz/PayloadInput.h"
#include "CodecTesting.h"
#include "Testing.h"

#include <gtest/gtest.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using braid::fuzz::PayloadInput;

TEST(PayloadInput, DrawsEveryEncoding) {
  // Of those that differ only in the size of their groups and of their rotation, one.
  std::set<std::string> missing;
  for (const Encoding &e : encodingsOf({128}, {0, 64}))
    missing.insert(e.str());
  const size_t all = missing.size();
  std::set<int64_t> groups, rotations;
  braid::fuzz::Random random(7);
  for (int draws = 0; draws < 40000; ++draws) {
    Result<Encoding> e = Encoding::fromCode(PayloadInput::anyCode(random));
    ASSERT_OK(e);
    groups.insert(e->group);
    rotations.insert(e->rotation);
    if (!e->isCast() && e->scale != Encoding::Scale::e8m0 && e->scale != Encoding::Scale::nvfp4)
      e->group = 128;
    if (e->rotation != 0)
      e->rotation = 64;
    missing.erase(e->str());
  }
  EXPECT_GT(all, 100U);
  EXPECT_THAT(missing, ::testing::IsEmpty());
  EXPECT_THAT(groups, ::testing::ElementsAre(0, 16, 32, 40, 64, 128, 256, 512, 8192));
  EXPECT_THAT(rotations, ::testing::ElementsAre(0, 16, 32, 64, 128, 256));
}
