//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What verifyProgram says of lists of queues, and of events that are passed into calls.
//
//===----------------------------------------------------------------------===//
#include "ProgramChanges.h"
#include "QueuePrograms.h"

#include "Testing.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;
using braid::program::ProgramT;

namespace {

TEST(ProgramQueues, RefusesBadLists) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.queues.clear(); }), "expects at least one queue");
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { p.queues[0]->kind = fb::QueueKind::copy; }),
      "queue 0: expects the first queue and no other to be of kind compute, got kind copy");
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { p.queues[1]->kind = fb::QueueKind::compute; }),
      "queue 1: expects the first queue and no other to be of kind compute, got kind compute");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.queues[1]->kind = unknown<fb::QueueKind>(3); }),
               "queue 1: unknown kind 3");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.queues[1]->name = ""; }),
               "queue 1: expects a name of its own, got ''");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.queues[1]->name = "compute"; }),
               "queue 1: expects a name of its own, got 'compute'");
  auto withQueues = [](size_t count, fb::QueueKind kind) {
    return verifyAfter([=](ProgramT &p) {
      for (size_t i = 0; i < count; ++i)
        addQueue(p, kind, "more " + std::to_string(i));
    });
  };
  const std::string tooMany = ": expects at most 8 communication queues and one copy queue";
  EXPECT_ERROR(withQueues(8, fb::QueueKind::communication), "queue 9" + tooMany);
  EXPECT_ERROR(withQueues(2, fb::QueueKind::copy), "queue 3" + tooMany);
  // As many as there may be; the calls are missing in them.
  EXPECT_ERROR(withQueues(7, fb::QueueKind::communication),
               "procedure 'main', compute command 0 ('layer.0'): expects the same call in the more "
               "0 queue");
}

TEST(ProgramQueues, RefusesStreamsThatDoNotFitTheList) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).streams.pop_back(); }),
               "procedure 'main': expects a stream for each of 2 queues, got 1");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.queues.pop_back(); }),
               "procedure 'layer': expects a stream for each of 1 queues, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.queues[1]->kind = fb::QueueKind::copy; }),
               collectivePlace() + "expects a collective on a communication queue");
}

/// The program of eventsAcrossCalls after a change: main calls outer, which calls inner.
Status verifyCalls(const Change &change) {
  Expected expected;
  ProgramBuilder b = eventsAcrossCalls(expected);
  change(b.program);
  BundleContents contents = b.contents();
  return verifyProgram(contents.members.at(contents.manifest.programMember), contents.manifest);
}
void eachCallOf(ProgramT &p, size_t procedure,
                const std::function<void(braid::program::CallT &)> &change) {
  for (auto &stream : p.procedures[procedure]->streams)
    for (auto &command : stream->commands)
      if (auto *call = command->op.AsCall())
        change(*call);
}

TEST(ProgramQueues, RefusesBadEventArguments) {
  EXPECT_OK(verifyCalls([](ProgramT &) {}));
  const std::string inMain = "procedure 'main', compute command 2 ('outer'): ",
                    inOuter = "procedure 'outer', compute command 0 ('inner'): ";
  EXPECT_ERROR(verifyCalls([](ProgramT &p) {
                 eachCallOf(p, 0, [](auto &call) { call.event_arguments.clear(); });
               }),
               inMain + "expects 1 event arguments, got 0");
  EXPECT_ERROR(verifyCalls([](ProgramT &p) {
                 eachCallOf(p, 0, [](auto &call) { call.event_arguments = {1, 1}; });
               }),
               inMain + "expects 1 event arguments, got 2");
  EXPECT_ERROR(verifyCalls([](ProgramT &p) {
                 eachCallOf(p, 0, [](auto &call) { call.event_arguments = {4}; });
               }),
               inMain + "event argument 0: expects an event below 4, got 4");
  // Two events of outer's frame and its argument.
  EXPECT_ERROR(verifyCalls([](ProgramT &p) {
                 eachCallOf(p, 1, [](auto &call) { call.event_arguments = {3}; });
               }),
               inOuter + "event argument 0: expects an event below 3, got 3");
  EXPECT_ERROR(verifyCalls([](ProgramT &p) {
                 computeOf(*p.procedures[2])[0]->op.AsCollectiveWait()->event = 3;
               }),
               "procedure 'inner', compute command 0 ('sum'): expects an event below 3, got 3");
  // A callee sets events of its own only.
  EXPECT_ERROR(
      verifyCalls([](ProgramT &p) { computeOf(*p.procedures[2])[2]->op.AsRecord()->event = 2; }),
      "procedure 'inner', compute command 2 ('twice'): expects to set an event of the procedure, "
      "got event argument 0");
  EXPECT_ERROR(verifyCalls([](ProgramT &p) {
                 communicationOf(*p.procedures[2])[1]->op.AsCollectiveStart()->done = 2;
               }),
               "procedure 'inner', communication command 1 ('twice'): expects to set an event of "
               "the procedure, got event argument 0");
  // The collective's event, not that of the record before it.
  EXPECT_ERROR(verifyCalls([](ProgramT &p) {
                 eachCallOf(p, 0, [](auto &call) { call.event_arguments = {0}; });
               }),
               "entry 'main': procedure 'inner', compute command 0 ('sum'): waits for event 2 of a "
               "collective, which a record sets");
  // The callee waits for what the caller starts after the call.
  EXPECT_ERROR(
      verifyCalls([](ProgramT &p) {
        for (Queue queue = 0; queue < 2; ++queue) {
          CommandList &commands = streamOf(*p.procedures[0], queue);
          for (size_t i = 0; i + 1 < commands.size(); ++i)
            if (commands[i + 1]->op.AsCall())
              std::swap(commands[i], commands[i + 1]);
        }
      }),
      "entry 'main': deadlock: procedure 'inner', compute command 0 ('sum') waits for event "
      "2, which is not set by then; procedure 'main', communication command 0 ('sum') "
      "waits for event 0, which is not set by then");
  EXPECT_ERROR(verifyCalls([](ProgramT &p) { p.procedures[0]->num_event_arguments = 1; }),
               "entry 'main': expects a procedure without event arguments, got 1");
}

} // namespace
