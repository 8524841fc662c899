//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The null device detects wrong uses of streams, events, memory and graphs.
//
//===----------------------------------------------------------------------===//
#include "NullDeviceTesting.h"

#include <cstring>

using namespace braid::runtime;
using namespace braid::runtime::cuda;

namespace {

class NullDevice : public braid::runtime::testing::NullDeviceTest {
protected:
  /// Between beginCapture and endCapture, `second` is part of the capture.
  void beginCapture() {
    ASSERT_EQ(driver->cuStreamBeginCapture_v2(first.get(), kCaptureThreadLocal), kSuccess);
    fork = event();
    EXPECT_EQ(record(fork, first), "");
    EXPECT_EQ(wait(second, fork), "");
  }
  void endCapture() {
    Event join = event();
    EXPECT_EQ(record(join, second), "");
    EXPECT_EQ(wait(first, join), "");
    CUgraph captured;
    ASSERT_EQ(problem(driver->cuStreamEndCapture(first.get(), &captured)), "");
    graph = Graph(device, captured, driver->cuGraphDestroy);
    CUgraphExec instance;
    ASSERT_EQ(driver->cuGraphInstantiateWithFlags(&instance, captured, 0), kSuccess);
    exec = GraphExec(device, instance, driver->cuGraphExecDestroy);
  }
  Event fork;
  Graph graph;
  GraphExec exec;
};

TEST_F(NullDevice, OrdersByStreams) {
  EXPECT_EQ(fill(memory, 256, first), "");
  EXPECT_EQ(copy(other, memory, 256, first), "");
  EXPECT_EQ(fill(memory, 256, first), "");
}

TEST_F(NullDevice, NoticesAccessesThatRace) {
  EXPECT_EQ(fill(memory, 128, first), "");
  EXPECT_EQ(copy(other, memory + 64, 16, second),
            "a copy on stream # reads 16 bytes at 64 of allocation # (256 bytes) without being "
            "ordered after a fill on stream #, which writes them");
  EXPECT_EQ(fill(memory + 100, 8, second),
            "a fill on stream # writes 8 bytes at 100 of allocation # (256 bytes) without being "
            "ordered after a fill on stream #, which writes them");
  EXPECT_OK(device->finish(first.get()));
  EXPECT_EQ(copy(other, memory, 64, first), "");
  EXPECT_EQ(fill(memory + 64, 64, second), ""); // does not overlap
  EXPECT_EQ(fill(memory + 63, 1, second),
            "a fill on stream # writes 1 bytes at 63 of allocation # (256 bytes) without being "
            "ordered after a copy on stream #, which reads them");
}

TEST_F(NullDevice, EventsOrder) {
  Event done = event(), later = event();
  EXPECT_EQ(fill(memory, 256, first), "");
  EXPECT_EQ(record(done, first), "");
  EXPECT_EQ(fill(memory, 1, first), ""); // after the event
  EXPECT_EQ(wait(second, done), "");
  EXPECT_EQ(copy(other, memory, 2, second),
            "a copy on stream # reads 2 bytes at 0 of allocation # (256 bytes) without being "
            "ordered after a fill on stream #, which writes them");
  EXPECT_EQ(copy(other, memory + 1, 2, second), "");
  EXPECT_EQ(record(later, second), "");
  EXPECT_EQ(wait(first, later), "");
  EXPECT_EQ(fill(memory, 256, first), "");
}

TEST_F(NullDevice, NoticesMemoryThatIsFreedInUse) {
  Event done = event();
  EXPECT_EQ(fill(memory, 256, first), "");
  EXPECT_EQ(record(done, first), "");
  EXPECT_EQ(problem(driver->cuMemFree_v2(memory)),
            "allocation # is freed while a fill on stream # may still use it");
  EXPECT_EQ(driver->cuEventQuery(done.get()), kSuccess); // now the host knows the event
  EXPECT_EQ(problem(driver->cuMemFree_v2(memory)), "");
  EXPECT_EQ(problem(driver->cuMemFree_v2(memory)),
            "memory is freed that was not allocated, or was freed before");
  EXPECT_EQ(fill(memory, 1, first), "a fill on stream # writes 1 bytes outside of any allocation");
  memory = 0;
}

TEST_F(NullDevice, NoticesBoundsAndWhatNobodyWrote) {
  EXPECT_EQ(fill(memory + 128, 129, first),
            "a fill on stream # writes 129 bytes at 128 of allocation # (256 bytes), beyond its "
            "end");
  EXPECT_EQ(fill(memory, 100, first), "");
  EXPECT_EQ(copy(other, memory, 101, first),
            "a copy on stream # reads 101 bytes at 0 of allocation # (256 bytes), which nothing "
            "has written");
  EXPECT_EQ(copy(memory, memory + 8, 9, first), "a copy of 9 bytes overlaps itself");
  char here[8], there[8] = {};
  EXPECT_EQ(copy(address(here), address(there), 8, first),
            "a copy has no side on the device: both addresses are outside of any allocation");
}

TEST_F(NullDevice, NoticesHostMemoryThatChangesUnderACopy) {
  auto pages = allocatePinned(device, 64);
  ASSERT_OK(pages);
  std::memset(pages->get(), 1, 64);
  EXPECT_EQ(copy(memory, address(pages->get()), 64, first), "");
  EXPECT_OK(device->finish(first.get()));
  EXPECT_EQ(copy(memory, address(pages->get()), 64, first), "");
  static_cast<char *>(pages->get())[63] = 2;
  EXPECT_EQ(problem(driver->cuStreamQuery(second.get())), ""); // does not order `first`
  EXPECT_EQ(problem(driver->cuStreamQuery(first.get())),
            "the host has written to 64 bytes of its memory before it waited for a copy on stream "
            "#, which reads them");
}

TEST_F(NullDevice, NoticesHostMemoryThatIsFreedInUse) {
  auto pages = allocatePinned(device, 64);
  ASSERT_OK(pages);
  EXPECT_EQ(fill(memory, 64, first), "");
  EXPECT_EQ(copy(address(pages->get()), memory, 64, first), "");
  EXPECT_EQ(problem(driver->cuMemFreeHost(pages->get())),
            "allocation # is freed while a copy on stream # may still use it");
  EXPECT_EQ(problem(driver->cuMemFree_v2(address(pages->get()))),
            "memory is freed that was not allocated, or was freed before");
  EXPECT_EQ(copy(address(pages->get()) + 60, memory, 5, first),
            "a copy on stream # writes 5 bytes at 60 of allocation # (64 bytes), beyond its end");
  EXPECT_OK(device->finish(first.get())); // then it may be freed
  void *own;
  EXPECT_EQ(problem(driver->cuMemHostAlloc(&own, 8, 0)),
            "memory of the host is allocated that not all devices can use");
}

TEST_F(NullDevice, NoticesEventsThatMeanNothing) {
  Event never = event(), untimed = event(), timed = event(true);
  EXPECT_EQ(wait(first, never), "stream # waits for an event that has not been recorded");
  EXPECT_EQ(problem(driver->cuEventQuery(never.get())),
            "an event is asked for that has not been recorded");
  EXPECT_EQ(record(untimed, first), "");
  EXPECT_EQ(record(timed, first), "");
  float ms;
  EXPECT_EQ(problem(driver->cuEventElapsedTime(&ms, timed.get(), untimed.get())),
            "times are asked of an event that was made without, or has not been recorded");
  EXPECT_EQ(record(timed, first, kEventRecordExternal),
            "an event is recorded as external outside of a capture");
  CUevent gone = untimed.get();
  untimed = {};
  EXPECT_EQ(problem(driver->cuEventDestroy_v2(gone)), "an event is destroyed that does not exist");
  EXPECT_EQ(problem(driver->cuEventQuery(gone)), "an event is asked for that does not exist");
  EXPECT_EQ(problem(driver->cuEventRecordWithFlags(gone, first.get(), 0)),
            "an event is recorded that does not exist");
  EXPECT_EQ(problem(driver->cuStreamWaitEvent(first.get(), gone, 0)),
            "a stream waits for an event, of which one does not exist");
}

TEST_F(NullDevice, NoticesStreamsThatAreGone) {
  CUstream gone = second.get();
  second = {};
  EXPECT_EQ(problem(driver->cuStreamDestroy_v2(gone)), "a stream is destroyed that does not exist");
  EXPECT_EQ(problem(driver->cuStreamQuery(gone)), "a stream is waited for that does not exist");
  EXPECT_EQ(problem(driver->cuMemsetD8Async(memory, 0, 1, gone)),
            "a stream that does not exist is used");
  second = std::move(*createStream(device));
}

TEST_F(NullDevice, NoticesUsesOfAnotherDevice) {
  Event timed = event(true);
  EXPECT_EQ(record(timed, first), "");
  auto elsewhere = Device::open(driver, 1, 0);
  ASSERT_OK(elsewhere);
  Stream foreign = std::move(*createStream(*elsewhere));
  Event there = std::move(*createEvent(*elsewhere, true));
  EXPECT_EQ(record(there, foreign), "");
  EXPECT_EQ(record(timed, foreign), "an event is recorded on a stream of another device");
  float ms;
  EXPECT_EQ(problem(driver->cuEventElapsedTime(&ms, timed.get(), there.get())),
            "the time between events of two devices is asked for");
  EXPECT_EQ(
      fill(memory, 1, foreign),
      "a fill on stream # writes 1 bytes at 0 of allocation # (256 bytes), which is on device "
      "0, not 1");
  EXPECT_EQ(wait(foreign, timed), ""); // events may order streams of any device
  ASSERT_OK(device->use());
  EXPECT_EQ(fill(memory, 1, foreign), "stream # is of device 1, the current one is 0");
  ASSERT_EQ(driver->cuCtxSetCurrent(nullptr), kSuccess);
  CUdeviceptr more;
  EXPECT_EQ(problem(driver->cuMemAlloc_v2(&more, 1)),
            "memory is allocated without a current context");
}

TEST_F(NullDevice, CapturesAndLaunches) {
  EXPECT_EQ(fill(memory, 256, first), "");
  beginCapture();
  EXPECT_EQ(copy(other, memory, 256, second), "");
  EXPECT_EQ(problem(driver->cuStreamQuery(second.get())),
            "a stream is waited for while it is being captured");
  endCapture();
  EXPECT_EQ(fill(memory, 256, first), "");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(problem(driver->cuGraphLaunch(exec.get(), first.get())), "");
  EXPECT_EQ(copy(memory, other, 256, first), ""); // ordered after the complete graph
  EXPECT_EQ(wait(second, fork), "stream # waits for an event of a capture that has ended");
  graph = {};
  EXPECT_EQ(wait(second, fork), "stream # waits for an event of a graph that is gone");
}

TEST_F(NullDevice, NoticesARaceInAGraph) {
  EXPECT_EQ(fill(memory, 256, first), "");
  EXPECT_EQ(fill(other, 256, first), "");
  beginCapture();
  EXPECT_EQ(copy(other, memory, 256, second), "");
  EXPECT_EQ(fill(memory, 1, first), "");
  endCapture();
  EXPECT_EQ(problem(driver->cuGraphLaunch(exec.get(), first.get())),
            "a fill on stream # writes 1 bytes at 0 of allocation # (256 bytes) without being "
            "ordered after a copy on stream #, which reads them");
}

TEST_F(NullDevice, NoticesAGraphThatOutlivesItsMemory) {
  beginCapture();
  EXPECT_EQ(fill(memory, 256, second), "");
  endCapture();
  EXPECT_EQ(problem(driver->cuMemFree_v2(memory)), "");
  memory = 0;
  EXPECT_EQ(problem(driver->cuGraphLaunch(exec.get(), first.get())),
            "a fill on stream # writes 256 bytes outside of any allocation");
}

TEST_F(NullDevice, NoticesCapturesThatAreNotWhole) {
  Event before = event();
  EXPECT_EQ(record(before, second), "");
  beginCapture();
  EXPECT_EQ(problem(driver->cuStreamBeginCapture_v2(first.get(), kCaptureThreadLocal)),
            "a capture begins on a stream that is being captured or does not exist");
  EXPECT_EQ(wait(first, before), "stream # is being captured and waits for an event that is not");
  EXPECT_EQ(fill(memory, 256, second), "");
  CUgraph captured;
  EXPECT_EQ(problem(driver->cuStreamEndCapture(second.get(), &captured)),
            "a capture ends on a stream that it did not begin on");
  EXPECT_EQ(problem(driver->cuStreamEndCapture(first.get(), &captured)),
            "stream # has not come back to the one that a capture began on");
  CUgraphExec instance;
  EXPECT_EQ(problem(driver->cuGraphDestroy(captured)), "");
  EXPECT_EQ(problem(driver->cuGraphDestroy(captured)), "a graph is destroyed that does not exist");
  EXPECT_EQ(problem(driver->cuGraphInstantiateWithFlags(&instance, captured, 0)),
            "a graph is made executable that does not exist or is being captured");
  EXPECT_EQ(problem(driver->cuGraphLaunch(reinterpret_cast<CUgraphExec>(captured), first.get())),
            "a graph is launched that does not exist");
  EXPECT_EQ(problem(driver->cuGraphExecDestroy(reinterpret_cast<CUgraphExec>(captured))),
            "an executable graph is destroyed that does not exist");
}

TEST_F(NullDevice, KnowsWhatIsInUse) {
  using braid::runtime::testing::inUse;
  const std::string before = inUse();
  {
    Event more = event();
    EXPECT_NE(inUse(), before);
  }
  EXPECT_EQ(inUse(), before);
}

} // namespace
