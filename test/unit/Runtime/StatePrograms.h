//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A program of two entries over one cache.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_STATEPROGRAMS_H
#define BRAID_TEST_UNIT_RUNTIME_STATEPROGRAMS_H

#include "ProgramBuilder.h"
#include "braid/Runtime/Model.h"

namespace braid::runtime::testing {

/// `write` appends a row x to the cache `keys` at a position, and `read` copies the cache to y.
/// Both have the parameter w. Ranks hold columns of the cache, w is replicated.
inline ProgramBuilder cacheProgram() {
  constexpr DType f32 = DType::f32;
  constexpr int64_t kRanks = 2, kCapacity = 3, kColumns = 4 / kRanks;
  const std::vector<Axes> dims = {{}, {}, {"tp"}};
  const Shape whole = {1, kCapacity, 4}, cache = {1, kCapacity, kColumns};
  ProgramBuilder b({{"tp", kRanks}});
  b.manifest.entries[0].name = "write";
  b.parameter("w", {8});
  b.manifest.entries[0].states.push_back({"keys", f32, whole, ProgramBuilder::sharding(dims)});
  b.operand("x", f32, {1, 1, 4}, dims);
  b.operand("position", DType::i32, {1});
  Entry read;
  read.name = "read";
  read.parameters = b.manifest.entries[0].parameters;
  read.states = b.manifest.entries[0].states;
  read.results.push_back({"y", f32, whole, ProgramBuilder::sharding(dims)});
  b.manifest.entries.push_back(read);

  auto write = b.procedure("write", 4, 0, 0, 0);
  LibraryLaunch append{"append", {}, {1}};
  append.operands.push_back(argument(2, f32, {1, 1, kColumns}).build());
  append.operands.push_back(argument(3, DType::i32, {1}).build());
  append.operands.push_back(argument(1, f32, cache).build());
  write.compute("append keys", launchIn(b.program, std::move(append)));
  b.procedure("read", 3, 0, 0, 0)
      .copy("copy keys", argument(1, f32, cache), argument(2, f32, cache));
  for (const char *name : {"write", "read"}) {
    b.program.entries.push_back(std::make_unique<fb::EntryT>());
    b.program.entries.back()->name = name;
    b.program.entries.back()->procedure = static_cast<uint32_t>(b.program.entries.size() - 1);
  }
  return b;
}

/// Runs the entry `read` of cacheProgram(): it and the model's state give these values.
inline void expectCache(Model &model, Execution &read, const std::vector<float> &expected) {
  ASSERT_OK(read.run());
  Result<HostTensor> y = read.output("y"), keys = model.state("keys");
  ASSERT_OK(y);
  ASSERT_OK(keys);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(y->as<float>()[i], expected[i]);
    EXPECT_EQ(keys->as<float>()[i], expected[i]);
  }
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_STATEPROGRAMS_H
