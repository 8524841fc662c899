//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// GPUs and their objects: memory, streams, events. Destructors free these, unless the device does
// not answer any more.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_DEVICE_H
#define BRAID_CUDA_DEVICE_H

#include "Driver.h"

#include <utility>
#include <vector>

namespace braid::runtime::cuda {

/// A GPU and its context.
class Device {
public:
  /// `limitNs`: how long finish() waits at most; 0: without a limit.
  static Result<std::shared_ptr<Device>> open(std::shared_ptr<const Driver> driver, int ordinal,
                                              int64_t limitNs);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// Directs the calls of this thread to this device. Error when it is lost.
  Status use() const;
  /// Waits for everything that was enqueued on the stream. Beyond the limit the device is lost.
  Status finish(CUstream stream);
  const Driver &api() const { return *driver; }

  int ordinal = 0;
  std::string name;
  int major = 0, minor = 0; ///< compute capability
  /// Commands on it did not end; to free anything would wait for them.
  bool lost = false;

private:
  Device() = default;
  std::shared_ptr<const Driver> driver;
  int64_t limitNs = 0;
  CUcontext context = nullptr;
  bool retained = false;
};
using DevicePtr = std::shared_ptr<Device>;

/// An object of a device that one call frees. A moved-from object is empty and frees nothing.
template <typename Handle> class Owned {
public:
  Owned() = default;
  Owned(DevicePtr device, Handle handle, CUresult (*destroy)(Handle))
      : device(std::move(device)), handle(handle), destroy(destroy) {}
  Owned(Owned &&other) noexcept { *this = std::move(other); }
  Owned &operator=(Owned &&other) noexcept {
    std::swap(device, other.device);
    std::swap(handle, other.handle);
    std::swap(destroy, other.destroy);
    return *this;
  }
  ~Owned() {
    if (destroy && device->use().ok())
      destroy(handle);
  }
  Handle get() const { return handle; }
  explicit operator bool() const { return destroy != nullptr; }

private:
  DevicePtr device;
  Handle handle{};
  CUresult (*destroy)(Handle) = nullptr;
};

using Stream = Owned<CUstream>;
using Event = Owned<CUevent>;
using Memory = Owned<CUdeviceptr>;
using HostPages = Owned<void *>;
using Module = Owned<CUmodule>;
using Graph = Owned<CUgraph>;
using GraphExec = Owned<CUgraphExec>;

/// The device serves streams of higher priority first, as far as it distinguishes priorities.
Result<Stream> createStream(const DevicePtr &device, int32_t priority = 0);
Result<Event> createEvent(const DevicePtr &device, bool timed);
/// Memory that is zeroed on `stream`; `what` is for messages: "the local arena".
Result<Memory> allocate(const DevicePtr &device, size_t bytes, CUstream stream,
                        const std::string &what);
/// Copies from or to any memory, and returns when the copy is done. cuMemcpy may return before.
Status copyNow(Device &device, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
/// Pinned host memory, which the device accesses itself.
Result<HostPages> allocatePinned(const DevicePtr &device, size_t bytes);

/// Called between two polls of a device, after `polls` without news: sleeps only after many, so
/// that short commands are noticed at once and long ones do not keep a core busy.
void pause(int64_t polls);

inline CUdeviceptr address(const void *pointer) { return reinterpret_cast<uintptr_t>(pointer); }
inline std::byte *pointer(CUdeviceptr address) {
  return reinterpret_cast<std::byte *>(static_cast<uintptr_t>(address));
}

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_DEVICE_H
