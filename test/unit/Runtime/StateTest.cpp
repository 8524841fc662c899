//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models whose entries share weights and states.
//
//===----------------------------------------------------------------------===//
#include "StatePrograms.h"

#include <numeric>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32, i32 = DType::i32;

/// A loaded model of cacheProgram() with its two executions.
struct Cache {
  std::unique_ptr<Model> model;
  Execution *write = nullptr, *read = nullptr;

  Status append(int32_t position, float first) {
    std::vector<float> row(4);
    std::iota(row.begin(), row.end(), first);
    RETURN_IF_ERROR(write->setInput("x", f32, {1, 1, 4}, row.data()));
    RETURN_IF_ERROR(write->setInput("position", i32, {1}, &position));
    return write->run();
  }
  /// The cache, as the entry `read` copies it.
  Result<HostTensor> copied() {
    RETURN_IF_ERROR(read->run());
    return read->output("y");
  }
};

Result<Cache> load(ProgramBuilder builder, const WorldOptions &options = {}) {
  ASSIGN_OR_RETURN(std::shared_ptr<const World> world, World::create(options));
  Cache cache;
  ASSIGN_OR_RETURN(std::shared_ptr<const Bundle> bundle, makeBundle(builder.contents()));
  ASSIGN_OR_RETURN(cache.model, Model::load(world, bundle));
  ASSIGN_OR_RETURN(cache.write, cache.model->execution("write"));
  ASSIGN_OR_RETURN(cache.read, cache.model->execution("read"));
  RETURN_IF_ERROR(cache.model->loadWeights(*WeightSource::random(3)));
  return cache;
}

std::vector<float> floats(const HostTensor &tensor) {
  return {tensor.as<float>(), tensor.as<float>() + tensor.numElements()};
}

TEST(State, EntriesShareItBetweenRuns) {
  Result<Cache> cache = load(cacheProgram());
  ASSERT_OK(cache);
  // Zeros at first.
  Result<HostTensor> y = cache->copied();
  ASSERT_OK(y);
  EXPECT_EQ(floats(*y), std::vector<float>(12, 0));
  ASSERT_OK(cache->append(1, 10));
  ASSERT_OK(cache->append(0, 1));
  const std::vector<float> expected = {1, 2, 3, 4, 10, 11, 12, 13, 0, 0, 0, 0};
  Result<HostTensor> state = cache->model->state("keys");
  ASSERT_OK(state);
  EXPECT_EQ(floats(*state), expected);
  y = cache->copied();
  ASSERT_OK(y);
  EXPECT_EQ(floats(*y), expected);
  // It can be saved, reset, and given back.
  ASSERT_OK(cache->model->resetStates());
  y = cache->copied();
  ASSERT_OK(y);
  EXPECT_EQ(floats(*y), std::vector<float>(12, 0));
  ASSERT_OK(cache->model->setState("keys", *state));
  ASSERT_OK(cache->append(2, 5));
  y = cache->copied();
  ASSERT_OK(y);
  EXPECT_EQ(floats(*y), std::vector<float>({1, 2, 3, 4, 10, 11, 12, 13, 5, 6, 7, 8}));
  ASSERT_EQ(cache->model->states().size(), 1u);
  EXPECT_EQ(cache->model->states()[0].name, "keys");
}

TEST(State, LiesInTheCallersMemory) {
  Result<Cache> cache = load(cacheProgram());
  ASSERT_OK(cache);
  struct alignas(64) Shard {
    float values[6];
  } first{{1, 2, 3, 4, 5, 6}}, second{{7, 8, 9, 10, 11, 12}};
  float *shards[] = {first.values, second.values};
  constexpr size_t kBytes = 6 * sizeof(float);
  for (int64_t rank = 0; rank < 2; ++rank)
    ASSERT_OK(cache->model->bindState(rank, "keys", shards[rank], kBytes));
  ASSERT_OK(cache->append(1, 20));
  EXPECT_THAT(first.values, ::testing::ElementsAre(1, 2, 20, 21, 5, 6));
  EXPECT_THAT(second.values, ::testing::ElementsAre(7, 8, 22, 23, 11, 12));
  Result<HostTensor> y = cache->copied();
  ASSERT_OK(y);
  EXPECT_EQ(floats(*y), std::vector<float>({1, 2, 7, 8, 20, 21, 22, 23, 5, 6, 11, 12}));

  EXPECT_ERROR(cache->model->bindState(0, "keys", shards[0], 8),
               "state 'keys' of rank 0 expects 24 bytes [1, 3, 2], got 8");
  EXPECT_ERROR(cache->model->bindState(2, "keys", shards[0], 24),
               "expects a rank of 0 to 1, got 2");
  EXPECT_ERROR(cache->model->bindState(0, "keys", &shards[0][1], 24),
               "state 'keys' of rank 0 expects memory aligned to 64 bytes");
  // What a run writes overlaps nothing else.
  ASSERT_OK(cache->model->bindState(1, "keys", shards[0], kBytes));
  EXPECT_ERROR(cache->append(0, 1), "state 'keys' of rank 1 expects memory that does not overlap "
                                    "that of state 'keys' of rank 0");
  ASSERT_OK(cache->model->bindState(1, "keys", shards[1], kBytes));
  ASSERT_OK(cache->write->bindInput(0, "x", shards[0], 2 * sizeof(float)));
  EXPECT_ERROR(cache->append(0, 1), "state 'keys' of rank 0 expects memory that does not overlap "
                                    "that of input 'x' of rank 0");
  EXPECT_OK(cache->read->run()); // has no such input
}

TEST(State, APositionBehindTheEndIsNamed) {
  Result<Cache> cache = load(cacheProgram());
  ASSERT_OK(cache);
  for (const int32_t position : {3, -1, INT32_MAX}) {
    Status status = cache->append(position, 1);
    EXPECT_THAT(status.message(),
                ::testing::MatchesRegex(
                    "entry 'write': rank [01]: append 'append keys' in @write: position " +
                    std::to_string(position) +
                    " of row 0 is outside of .0, 2., for a capacity of 3"));
    EXPECT_EQ(status.code(), Code::invalid);
    EXPECT_OK(cache->append(2, 1)); // the model survives
  }
}

TEST(State, WrongRequestsAreNamed) {
  Result<Cache> cache = load(cacheProgram());
  ASSERT_OK(cache);
  std::vector<float> values(12);
  EXPECT_ERROR(cache->model->setState("keys", DType::f16, {1, 3, 4}, values.data()),
               "state 'keys' expects f32 [1, 3, 4], got f16 [1, 3, 4]");
  EXPECT_ERROR(cache->model->setState("keys", f32, {1, 4, 3}, values.data()),
               "state 'keys' expects f32 [1, 3, 4], got f32 [1, 4, 3]");
  EXPECT_ERROR(cache->model->state("values"),
               "no state 'values', the model has 'keys' f32 [1, 3, 4]");
  EXPECT_ERROR(cache->model->readState("keys", values.data(), 4),
               "state 'keys' expects memory of 48 bytes, got 4");
  EXPECT_ERROR(cache->model->execution(),
               "the bundle has several entries, name one of 'write', 'read'");
  EXPECT_ERROR(cache->model->execution("decode"),
               "the bundle has no entry 'decode', it has 'write', 'read'");
  EXPECT_ERROR(cache->write->setInput("keys", f32, {1, 3, 4}, values.data()),
               "no input 'keys', the entry has 'x' f32 [1, 1, 4], 'position' i32 [1]");
}

TEST(State, WeightsOfOneNameAreLoadedOnce) {
  Result<std::shared_ptr<const World>> world = World::create({});
  ASSERT_OK(world);
  Result<std::unique_ptr<Model>> model = Model::load(*world, cacheProgram().bundle());
  ASSERT_OK(model);
  size_t total = 0;
  ASSERT_OK(
      (*model)->loadWeights(*WeightSource::random(3), [&](size_t, size_t all) { total = all; }));
  EXPECT_EQ(total, 2u); // one parameter of two entries, on two ranks
}

TEST(State, OfTwoTypesIsRefused) {
  ProgramBuilder other = cacheProgram();
  other.manifest.entries[1].states[0].globalShape = {1, 5, 4};
  EXPECT_ERROR(
      makeBundle(other.contents()),
      "bundle: entry 'read' expects state 'keys' to be f32 [1, 3, 4] sharded [{}, {}, {tp}] as in "
      "entry 'write', got f32 [1, 5, 4] sharded [{}, {}, {tp}]");
  other.manifest.entries[1].states[0].globalShape = {1, 3, 4};
  other.manifest.entries[1].states[0].sharding = {};
  EXPECT_ERROR(
      makeBundle(other.contents()),
      "bundle: entry 'read' expects state 'keys' to be f32 [1, 3, 4] sharded [{}, {}, {tp}] as in "
      "entry 'write', got f32 [1, 3, 4]");
}

TEST(State, ProgramsWriteNothingElse) {
  ProgramBuilder builder = cacheProgram();
  // The state as an operand, which is read only.
  Entry &entry = builder.manifest.entries[0];
  entry.operands.insert(entry.operands.begin(), entry.states[0]);
  entry.states.clear();
  EXPECT_THAT(makeBundle(builder.contents()).status().message(),
              ::testing::HasSubstr("operand 'keys' is no state, but the program writes it"));
}

} // namespace
