//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramChanges.h"

#include "Testing.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;
namespace program = braid::program;
using Type = program::DType;
using program::ProgramT;

namespace {

TEST(Program, RefusesBadCalls) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { communicationOf(mainOf(p)).pop_back(); }),
               "procedure 'main', compute command 1 ('layer.1'): expects the same call in the "
               "communication queue");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { computeOf(mainOf(p)).pop_back(); }),
               "procedure 'main', communication command 1 ('layer.1'): expects the same call in "
               "the compute queue");
  const std::string same =
      call1Place() +
      "expects the same call as procedure 'main', communication command 1 ('layer.1')";
  const std::function<void(program::CallT &)> differences[] = {
      [](program::CallT &c) { c.event_base = 0; },
      [](program::CallT &c) { c.local_base_bytes = 0; },
      [](program::CallT &c) { c.symmetric_base_bytes = 64; },
      [](program::CallT &c) { c.procedure = 1; },
      [](program::CallT &c) { c.arguments.pop_back(); },
      [](program::CallT &c) { c.event_arguments.push_back(0); },
      [](program::CallT &c) { c.arguments[0]->offset_bytes = 64; },
      [](program::CallT &c) { c.arguments[0]->strides[0] = 9; },
      [](program::CallT &c) {
        c.arguments[0]->position = std::make_unique<program::PositionT>();
        c.arguments[0]->position->count = 1;
      },
      [](program::CallT &c) { c.arguments[0]->shape[0] = 1; }};
  for (const auto &difference : differences)
    EXPECT_ERROR(
        verifyAfter([&](ProgramT &p) { difference(*computeOf(mainOf(p))[1]->op.AsCall()); }), same);
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { eachCall(p, 0, [](program::CallT &c) { c.procedure = 2; }); }),
      call0Place() + "expects a procedure below 2, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.procedure = 1; });
                 eachCall(p, 1, [](program::CallT &c) { c.event_base = 4; });
               }),
               "procedure 'main' calls itself, or one that does");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).local_bytes = 127; }),
               call0Place() + "expects local bytes of the callee below 127, got 64 from 64");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.local_base_bytes = ~uint64_t(63); });
               }),
               call0Place() + "expects local bytes of the callee below 192, got 64 from "
                              "18446744073709551552");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).symmetric_bytes = 0; }),
               call0Place() + "expects symmetric bytes of the callee below 0, got 64 from 0");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).num_events = 3; }),
               call1Place() + "expects events of the callee below 3, got 2 from 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.local_base_bytes = 32; });
               }),
               call0Place() + "expects a callee's frame at a multiple of 64 bytes, got 32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.arguments.pop_back(); });
               }),
               call0Place() + "expects 3 arguments, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.arguments[0] = argument(1, {2, 7}); });
               }),
               call0Place() + "argument 0: the callee expects 64 bytes, got 56");
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) {
        eachCall(p, 0, [](program::CallT &c) { c.arguments[0] = argument(1, {2, 8}, Type::i32); });
      }),
      call0Place() + "argument 0: the callee expects f32, got i32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.arguments[2] = local(64, {2, 8}); });
               }),
               call0Place() + "argument 2: lies in the callee's frame");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { matmul(p).rhs->dtype = Type::f16; }),
               matmulPlace() + "rhs: expects f32, got f16");
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { launch(p).operands[1] = argument(1, {2, 8}, Type::i32); }),
      launchPlace() + "operand 1: argument 1 is used as i32 here and as f32 elsewhere");
}

/// A procedure that only calls `callee`, `times` times.
std::unique_ptr<program::ProcedureT> caller(const ProgramT &program, const std::string &name,
                                            uint32_t callee, int times) {
  auto procedure = std::make_unique<program::ProcedureT>();
  procedure->name = name;
  addStreams(program, *procedure);
  for (auto *queue : {&computeOf(*procedure), &communicationOf(*procedure)})
    for (int i = 0; i < times; ++i) {
      program::CallT call;
      call.procedure = callee;
      queue->push_back(command(std::move(call)));
    }
  return procedure;
}

TEST(Program, BoundsTheCallTree) {
  // Each level calls the level below twice: few bytes, but 2^40 commands.
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 p.procedures.push_back(caller(p, "leaf", 0, 0));
                 for (uint32_t i = 0; i < 40; ++i)
                   p.procedures.push_back(caller(p, "level", 2 + i, 2));
                 program::CallT call;
                 call.procedure = 42;
                 computeOf(mainOf(p)).push_back(command(call));
                 communicationOf(mainOf(p)).push_back(command(call));
               }),
               "entry 'main': expects at most 16777216 commands with all calls expanded");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 p.procedures.push_back(caller(p, "leaf", 0, 0));
                 for (uint32_t i = 0; i < 64; ++i)
                   p.procedures.push_back(caller(p, "level" + std::to_string(i), 2 + i, 1));
               }),
               "procedure 'level63': expects calls at most 64 deep");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 p.procedures.push_back(caller(p, "a", 3, 1));
                 p.procedures.push_back(caller(p, "b", 2, 1));
               }),
               "procedure 'a' calls itself, or one that does");
}

TEST(Program, RefusesBadEvents) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { record(p).event = 2; }),
               "procedure 'layer', compute command 2: expects an event below 2, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { record(p).event = 1; }),
               "entry 'main': " + collectivePlace() + "sets event 1 for the second time");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { layer(p).num_events = 3; }),
               call1Place() + "shares events with command 0");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).num_events = 5; }),
               "entry 'main': procedure 'main': nothing sets event 4");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).num_events = 4000000000u; }),
               "entry 'main': procedure 'main': has 4000000000 events, but only 18 commands that "
               "could set them");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { wait(p).event = 0; }),
               "entry 'main': procedure 'layer', compute command 3: waits for event 0 of a "
               "collective, which a record sets");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { await(p).event = 1; }),
               "entry 'main': procedure 'layer', communication command 0: waits for event 1 "
               "of a record, which a collective sets");
}

TEST(Program, FindsDeadlocks) {
  // The compute queue waits for the collective before it records the event that the
  // collective needs.
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { std::swap(computeOf(layer(p))[2], computeOf(layer(p))[3]); }),
      "entry 'main': deadlock: procedure 'layer', compute command 2 waits for event "
      "1, which is not set by then; procedure 'layer', communication command 0 "
      "waits for event 0, which is not set by then");
  // A deadlock within one queue.
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 computeOf(layer(p)).insert(computeOf(layer(p)).begin() + 2,
                                            std::move(communicationOf(layer(p))[0]));
                 communicationOf(layer(p)).erase(communicationOf(layer(p)).begin());
               }),
               "entry 'main': deadlock: procedure 'layer', compute command 2 waits for event 0, "
               "which is not set by then");
}

/// A collective in flight across a call belongs to the caller: the callee starts, the caller waits.
TEST(Program, AcceptsEventsAcrossCalls) {
  EXPECT_OK(verifyAfter([](ProgramT &p) {
    computeOf(layer(p)).erase(computeOf(layer(p)).begin() + 3); // removes the wait
    computeOf(mainOf(p)).push_back(eventCommand<program::CollectiveWaitT>(1));
    computeOf(mainOf(p)).push_back(eventCommand<program::CollectiveWaitT>(3));
  }));
}

} // namespace
