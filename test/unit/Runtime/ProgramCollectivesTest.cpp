//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramChanges.h"

#include "Testing.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;
namespace program = braid::program;
using program::CollectiveKind;
using Type = program::DType;
using program::ProgramT;

namespace {

TEST(Program, RefusesBadCollectives) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 computeOf(layer(p)).push_back(std::move(communicationOf(layer(p))[1]));
                 communicationOf(layer(p)).pop_back();
               }),
               "procedure 'layer', compute command 5 ('all_reduce'): expects a collective on a "
               "communication queue");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).inputs[0] = local(0, {2, 8}); }),
               collectivePlace() + "input 0: expects symmetric memory, got local");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).kind = unknown<CollectiveKind>(10); }),
               collectivePlace() + "unknown collective 10");
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { collective(p).reduce = unknown<program::ReduceKind>(-1); }),
      collectivePlace() + "unknown reduction -1");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).axes[0]->name = "dp"; }),
               collectivePlace() + "unknown axis 'dp' in mesh 'mesh'");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).inputs.clear(); }),
               collectivePlace() +
                   "expects as many outputs as inputs and at least one, got 1 and 0");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).outputs[0] = symmetric(0, {2, 4}); }),
               collectivePlace() + "output 0: expects shape [2, 8], got [2, 4]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).outputs[0]->dtype = Type::i32; }),
               collectivePlace() + "output 0: expects f32, got i32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).outputs[0]->strides = {0, 1}; }),
               collectivePlace() +
                   "output 0: writes through strides [0, 1] that overlap for shape [2, 8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).done = 2; }),
               collectivePlace() + "expects an event below 2, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 collective(p).kind = CollectiveKind::reduce_scatter;
                 collective(p).dim = 1;
               }),
               collectivePlace() +
                   "input 0: expects 2 times output 0 of shape [2, 8] along dimension 1, got [2, "
                   "8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 collective(p).kind = CollectiveKind::all_gather;
                 collective(p).dim = 0;
               }),
               collectivePlace() +
                   "output 0: expects 2 times input 0 of shape [2, 8] along dimension 0, got [2, "
                   "8]");
  EXPECT_OK(verifyAfter([](ProgramT &p) {
    collective(p).kind = CollectiveKind::reduce_scatter;
    collective(p).dim = 1;
    collective(p).outputs[0] = symmetric(0, {2, 4});
  }));
  EXPECT_OK(verifyAfter([](ProgramT &p) {
    collective(p).kind = CollectiveKind::all_gather;
    collective(p).dim = 0;
    collective(p).inputs[0] = symmetric(0, {1, 8});
  }));
}

TEST(Program, RefusesBadExchanges) {
  auto asAllToAll = [](program::CollectiveStartT &c, uint32_t dim, uint32_t concat,
                       const std::vector<int64_t> &out) {
    c.kind = CollectiveKind::all_to_all;
    c.dim = dim;
    c.concat_dim = concat;
    c.outputs[0] = symmetric(0, out);
  };
  EXPECT_OK(verifyAfter([&](ProgramT &p) { asAllToAll(collective(p), 1, 0, {4, 4}); }));
  EXPECT_OK(verifyAfter([&](ProgramT &p) { asAllToAll(collective(p), 1, 1, {2, 8}); }));
  EXPECT_ERROR(verifyAfter([&](ProgramT &p) { asAllToAll(collective(p), 1, 0, {2, 8}); }),
               collectivePlace() + "output 0: expects shape [4, 4], got [2, 8]");
  EXPECT_ERROR(verifyAfter([&](ProgramT &p) { asAllToAll(collective(p), 1, 2, {4, 4}); }),
               collectivePlace() + "expects a dimension below 2, got 2");
  EXPECT_ERROR(verifyAfter([&](ProgramT &p) {
                 asAllToAll(collective(p), 0, 1, {1, 16});
                 collective(p).inputs[0] = symmetric(0, {3, 4});
               }),
               collectivePlace() + "expects dimension 0 of shape [3, 4] to divide by 2");
  for (CollectiveKind kind : {CollectiveKind::reduce, CollectiveKind::broadcast}) {
    EXPECT_OK(verifyAfter([&](ProgramT &p) {
      collective(p).kind = kind;
      collective(p).root = 1;
    }));
    EXPECT_ERROR(verifyAfter([&](ProgramT &p) {
                   collective(p).kind = kind;
                   collective(p).root = 2;
                 }),
                 collectivePlace() + "expects a root at a position below 2, got 2");
  }
  auto permute = [](const std::vector<uint32_t> &pairs) {
    return verifyAfter([&](ProgramT &p) {
      collective(p).kind = CollectiveKind::permute;
      collective(p).pairs = pairs;
    });
  };
  EXPECT_OK(permute({}));
  EXPECT_OK(permute({0, 1, 1, 0}));
  EXPECT_ERROR(permute({0, 1, 1}),
               collectivePlace() + "expects pairs of positions, got 3 positions");
  EXPECT_ERROR(permute({0, 2}),
               collectivePlace() + "expects a target at a position below 2, got 2");
  EXPECT_ERROR(permute({0, 1, 0, 0}), collectivePlace() + "expects position 0 as a source once");
  EXPECT_ERROR(permute({0, 1, 1, 1}), collectivePlace() + "expects position 1 as a target once");
}

TEST(Program, RefusesBadCounts) {
  // Four blocks of at most two rows, and their counts.
  auto counted = [](const std::function<void(program::CollectiveStartT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::CollectiveStartT &c = collective(p);
      c.kind = CollectiveKind::all_to_all_v;
      c.inputs.clear();
      c.outputs.clear();
      for (auto *views : {&c.inputs, &c.outputs}) {
        views->push_back(symmetric(0, {4, 2}));
        views->push_back(symmetric(0, {4}));
        views->back()->dtype = Type::i32;
      }
      change(c);
    });
  };
  EXPECT_OK(counted([](program::CollectiveStartT &) {}));
  EXPECT_ERROR(counted([](program::CollectiveStartT &c) {
                 c.inputs.erase(c.inputs.begin());
                 c.outputs.erase(c.outputs.begin());
               }),
               collectivePlace() + "expects at least one value beside the counts");
  EXPECT_ERROR(counted([](program::CollectiveStartT &c) {
                 c.inputs[1]->dtype = c.outputs[1]->dtype = Type::f32;
               }),
               collectivePlace() + "input 1: expects counts of i32 or i64, got f32");
  EXPECT_ERROR(counted([](program::CollectiveStartT &c) {
                 c.inputs[0] = symmetric(0, {4});
                 c.outputs[0] = symmetric(0, {4});
               }),
               collectivePlace() + "input 0: expects 4 blocks by one capacity, got [4]");
  EXPECT_ERROR(counted([](program::CollectiveStartT &c) {
                 for (auto *views : {&c.inputs, &c.outputs})
                   views->insert(views->begin() + 1, symmetric(0, {4, 1}));
               }),
               collectivePlace() + "input 1: expects 4 blocks by one capacity, got [4, 1]");
  EXPECT_ERROR(counted([](program::CollectiveStartT &c) {
                 for (auto *views : {&c.inputs, &c.outputs}) {
                   (*views)[0] = symmetric(0, {3, 2});
                   (*views)[1]->shape = {3};
                 }
               }),
               collectivePlace() + "expects 3 blocks to divide by 2");
}

TEST(Program, RefusesBadHalves) {
  for (CollectiveKind kind : {CollectiveKind::send, CollectiveKind::recv}) {
    const bool sends = kind == CollectiveKind::send;
    auto half = [&](const std::vector<uint32_t> &pairs, bool both = false) {
      return verifyAfter([&](ProgramT &p) {
        collective(p).kind = kind;
        collective(p).pairs = pairs;
        if (!both)
          (sends ? collective(p).outputs : collective(p).inputs).clear();
      });
    };
    EXPECT_ERROR(half({0, 1}),
                 sends ? "entry 'main': rank 0 sends at procedure 'layer', communication command 1 "
                         "('all_reduce'), what rank 1 does not receive (message 0 with tag 0)"
                       : "entry 'main': rank 1 receives at procedure 'layer', communication "
                         "command 1 ('all_reduce'), what rank 0 does not send (message 0 with tag "
                         "0)");
    EXPECT_OK(half({}));
    EXPECT_ERROR(half({0, 1}, true),
                 collectivePlace() + (sends ? "expects inputs and no outputs, got 1 and 1 values"
                                            : "expects outputs and no inputs, got 1 and 1 values"));
    EXPECT_ERROR(half({1, 1}), collectivePlace() + "expects no position to send to itself, got 1");
    EXPECT_ERROR(half({0, 2}), collectivePlace() + "expects a target at a position below 2, got 2");
  }
}

} // namespace
