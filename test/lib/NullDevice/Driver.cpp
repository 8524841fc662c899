//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Devices, memory, streams and events. Kernels are in Kernels.cpp, graphs in Graphs.cpp.
//
//===----------------------------------------------------------------------===//
#include "NullDevice.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace braid::null;

namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Stream *from(CUstream stream) { return reinterpret_cast<Stream *>(stream); }
Event *from(CUevent event) { return reinterpret_cast<Event *>(event); }

/// Adds the access to one side of a copy if it is memory allocated here. Other host memory is not
/// tracked.
void addSide(std::vector<Access> &accesses, CUdeviceptr address, size_t bytes, bool writes) {
  if (world().memory.contains(address))
    accesses.push_back({address, bytes, writes});
}

std::string copyProblem(CUdeviceptr dest, CUdeviceptr source, size_t bytes) {
  if (bytes == 0)
    return {};
  if (dest < source + bytes && source < dest + bytes)
    return "a copy of " + std::to_string(bytes) + " bytes overlaps itself";
  if (!world().memory.onDevice(dest) && !world().memory.onDevice(source))
    return "a copy has no side on the device: both addresses are outside of any allocation";
  return {};
}

void copyBytes(CUdeviceptr dest, CUdeviceptr source, size_t bytes) {
  std::memcpy(reinterpret_cast<void *>(dest), reinterpret_cast<const void *>(source), bytes);
}

/// If the source is allocated host memory, the stream reads it only when it reaches the copy: keeps
/// its content to detect later writes.
void keepHostRead(CUdeviceptr source, size_t bytes, const Lane &lane) {
  if (!world().memory.contains(source) || world().memory.onDevice(source))
    return;
  const auto *data = reinterpret_cast<const char *>(source);
  world().hostReads.push_back({source,
                               {data, data + bytes},
                               lane.number,
                               lane.clock.at(lane.number),
                               "a copy on " + lane.name});
}

CUresult waited(const std::shared_ptr<Snapshot> &snapshot) {
  return snapshot->never ? kNotReady : result(world().wait(snapshot->clock));
}

} // namespace

extern "C" {

// For tests: `function` never ends.
void braidNullStall(const char *function) { world().stallAt = function; }
void braidNullDevices(int count) { world().devices = count; }
/// Describes the objects that were made and not freed. The text is valid until the next call.
const char *braidNullInUse() {
  Guard guard(world().mutex);
  const World &w = world();
  static std::string text;
  text.clear();
  auto add = [&](size_t count, const char *what) {
    if (count != 0)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(w.memory.size(), "allocations");
  add(w.streams.size(), "streams");
  add(w.events.size(), "events");
  add(w.graphs.size() + w.executables.size(), "graphs");
  add(w.modules, "modules");
  add(w.contexts, "contexts");
  add(w.handles.size(), "handles of cuBLASLt");
  add(w.communicators, "communicators");
  return text.c_str();
}

CUresult cuInit(unsigned) { return kSuccess; }
CUresult cuGetErrorName(CUresult code, const char **name) {
  *name = code == kUnknownError  ? "null device"
          : code == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
                                 : "CUDA_ERROR";
  return kSuccess;
}
CUresult cuGetErrorString(CUresult code, const char **text) {
  Guard guard(world().mutex);
  *text = code == kUnknownError  ? world().lastError.c_str()
          : code == kOutOfMemory ? "out of memory"
                                 : "invalid value";
  return kSuccess;
}

CUresult cuDeviceGetCount(int *count) {
  *count = world().devices;
  return kSuccess;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (ordinal < 0 || ordinal >= world().devices)
    return kInvalidValue;
  *device = ordinal;
  return kSuccess;
}
CUresult cuDeviceGetName(char *name, int length, CUdevice) {
  std::snprintf(name, static_cast<size_t>(length), "null device");
  return kSuccess;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  *value = attribute == kComputeCapabilityMajor ? 9 : 0;
  return kSuccess;
}
// A context is its device's number plus one.
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  Guard guard(world().mutex);
  ++world().contexts;
  *context = reinterpret_cast<CUcontext>(static_cast<uintptr_t>(device) + 1);
  return kSuccess;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  Guard guard(world().mutex);
  --world().contexts;
  return kSuccess;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  Guard guard(world().mutex);
  world().current = static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1;
  return kSuccess;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  Guard guard(world().mutex);
  if (world().current < 0)
    return result("memory is allocated without a current context");
  if (bytes == 0)
    return kInvalidValue;
  *address = world().memory.allocate(bytes, world().current);
  return *address ? kSuccess : kOutOfMemory;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  Guard guard(world().mutex);
  return result(world().memory.release(address, false, world().host));
}
CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  Guard guard(world().mutex);
  if (flags != kHostAllocPortable)
    return result("memory of the host is allocated that not all devices can use");
  *memory = reinterpret_cast<void *>(world().memory.allocate(bytes, Memory::kHost));
  return *memory ? kSuccess : kOutOfMemory;
}
CUresult cuMemFreeHost(void *memory) {
  Guard guard(world().mutex);
  return result(world().memory.release(reinterpret_cast<uint64_t>(memory), true, world().host));
}

CUresult cuMemcpyAsync(CUdeviceptr dest, CUdeviceptr source, size_t bytes, CUstream stream) {
  Guard guard(world().mutex);
  if (std::string problem = copyProblem(dest, source, bytes); !problem.empty())
    return result(problem);
  std::vector<Access> accesses;
  addSide(accesses, source, bytes, false);
  addSide(accesses, dest, bytes, true);
  Action copy = checked("a copy", accesses, [=] { copyBytes(dest, source, bytes); });
  return result(submit(from(stream), [=](const std::vector<Lane *> &lanes) {
    std::string problem = copy(lanes);
    if (problem.empty())
      keepHostRead(source, bytes, *lanes.front());
    return problem;
  }));
}
CUresult cuMemsetD8Async(CUdeviceptr dest, unsigned char value, size_t bytes, CUstream stream) {
  Guard guard(world().mutex);
  return result(submit(from(stream), checked("a fill", {{dest, bytes, true}}, [=] {
                         std::memset(reinterpret_cast<void *>(dest), value, bytes);
                       })));
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned, int) {
  Guard guard(world().mutex);
  World &w = world();
  auto *created = new Stream;
  created->lane = w.newLane("", w.current);
  created->lane.name = "stream " + std::to_string(created->lane.number);
  created->device = w.current;
  w.streams.insert(created);
  *stream = reinterpret_cast<CUstream>(created);
  return kSuccess;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  Guard guard(world().mutex);
  if (!world().streams.erase(from(stream)))
    return result("a stream is destroyed that does not exist");
  delete from(stream);
  return kSuccess;
}
CUresult cuStreamQuery(CUstream stream) {
  Guard guard(world().mutex);
  if (!world().streams.count(from(stream)))
    return result("a stream is waited for that does not exist");
  if (from(stream)->capture)
    return result("a stream is waited for while it is being captured");
  return from(stream)->lane.stuck ? kNotReady : result(world().wait(from(stream)->lane.clock));
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  Guard guard(world().mutex);
  auto *created = new Event;
  created->timed = (flags & kEventDisableTiming) == 0;
  created->device = world().current;
  world().events.insert(created);
  *event = reinterpret_cast<CUevent>(created);
  return kSuccess;
}
CUresult cuEventDestroy_v2(CUevent event) {
  Guard guard(world().mutex);
  if (!world().events.erase(from(event)))
    return result("an event is destroyed that does not exist");
  delete from(event);
  return kSuccess;
}
CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned flags) {
  Guard guard(world().mutex);
  Event *event = from(handle);
  Stream *on = from(stream);
  if (!world().events.count(event))
    return result("an event is recorded that does not exist");
  if (world().streams.count(on) && event->device != on->device)
    return result("an event is recorded on a stream of another device");
  auto take = [](const std::vector<Lane *> &lanes, Snapshot &snapshot) {
    Lane &lane = *lanes.front();
    lane.step();
    snapshot = {lane.clock, lane.stuck, now()};
    return std::string();
  };
  const bool external = flags == kEventRecordExternal;
  if (!world().streams.count(on) || !on->capture) {
    if (external)
      return result("an event is recorded as external outside of a capture");
    auto snapshot = std::make_shared<Snapshot>();
    event->recorded = snapshot;
    event->capture = nullptr;
    if (world().streams.count(on) && on->lane.stuck)
      snapshot->never = true;
    return result(submit(on, [=](const auto &lanes) { return take(lanes, *snapshot); }));
  }
  if (external)
    return result(submit(on, [=](const auto &lanes) {
      event->recorded = std::make_shared<Snapshot>();
      event->capture = nullptr;
      return take(lanes, *event->recorded);
    }));
  auto snapshot = std::make_shared<Snapshot>();
  event->recorded = snapshot;
  event->capture = on->capture;
  CUresult code = result(submit(on, [=](const auto &lanes) { return take(lanes, *snapshot); }));
  event->captureClock = on->capture->order[on->captureLane];
  return code;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned) {
  Guard guard(world().mutex);
  Event *event = from(handle);
  Stream *on = from(stream);
  if (!world().events.count(event) || !world().streams.count(on))
    return result("a stream waits for an event, of which one does not exist");
  // The driver would not block the stream either.
  if (!event->recorded)
    return result(on->lane.name + " waits for an event that has not been recorded");
  if (event->capture && !world().graphs.count(event->capture))
    return result(on->lane.name + " waits for an event of a graph that is gone");
  if (event->capture && !event->capture->capturing)
    return result(on->lane.name + " waits for an event of a capture that has ended");
  if (event->capture && !on->capture) { // the waiting stream joins the capture
    Graph *graph = event->capture;
    on->capture = graph;
    on->captureLane = graph->lanes.size();
    graph->lanes.push_back(world().newLane(on->lane.name, on->device));
    graph->order.emplace_back();
    graph->streams.push_back(on);
  }
  if (on->capture != event->capture)
    return result(on->lane.name + " is being captured and waits for an event that is not");
  if (on->capture)
    on->capture->order[on->captureLane].join(event->captureClock);
  return result(submit(on, [snapshot = event->recorded](const auto &lanes) {
    Lane &lane = *lanes.front();
    lane.clock.join(snapshot->clock);
    lane.stuck |= snapshot->never;
    return std::string();
  }));
}
CUresult cuEventQuery(CUevent handle) {
  Guard guard(world().mutex);
  Event *event = from(handle);
  if (!world().events.count(event))
    return result("an event is asked for that does not exist");
  if (!event->recorded || event->capture)
    return result("an event is asked for that has not been recorded");
  return waited(event->recorded);
}
CUresult cuEventElapsedTime(float *ms, CUevent begin, CUevent end) {
  Guard guard(world().mutex);
  for (CUevent handle : {begin, end}) {
    Event *event = from(handle);
    if (!world().events.count(event) || !event->recorded || !event->timed || event->capture)
      return result("times are asked of an event that was made without, or has not been recorded");
  }
  if (from(begin)->device != from(end)->device)
    return result("the time between events of two devices is asked for");
  *ms = static_cast<float>(
      static_cast<double>(from(end)->recorded->ns - from(begin)->recorded->ns) * 1e-6);
  return kSuccess;
}

} // extern "C"
