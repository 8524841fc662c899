//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Device.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/RunControl.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace braid::runtime::cuda {

void pause(int64_t polls) {
  if (polls > 2000)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

Result<std::shared_ptr<Device>> Device::open(std::shared_ptr<const Driver> driver, int ordinal,
                                             int64_t limitNs) {
  std::shared_ptr<Device> device(new Device);
  device->driver = std::move(driver);
  device->limitNs = limitNs;
  device->ordinal = ordinal;
  const Driver &api = *device->driver;
  CUdevice handle;
  BRAID_CUDA_TRY(api, cuDeviceGet, &handle, ordinal);
  char name[256] = {};
  BRAID_CUDA_TRY(api, cuDeviceGetName, name, static_cast<int>(sizeof name) - 1, handle);
  device->name = name;
  BRAID_CUDA_TRY(api, cuDeviceGetAttribute, &device->major, kComputeCapabilityMajor, handle);
  BRAID_CUDA_TRY(api, cuDeviceGetAttribute, &device->minor, kComputeCapabilityMinor, handle);
  BRAID_CUDA_TRY(api, cuDevicePrimaryCtxRetain, &device->context, handle);
  device->retained = true;
  RETURN_IF_ERROR(device->use());
  return device;
}

Device::~Device() {
  if (retained && !lost)
    driver->cuDevicePrimaryCtxRelease_v2(ordinal);
}

Status Device::use() const {
  if (lost)
    return Status::error("the device '" + name + "' is not used any more: work on it has not ended",
                         Code::rankFailed);
  return driver->check(driver->cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

Status Device::finish(CUstream stream) {
  RETURN_IF_ERROR(use());
  const int64_t begin = nowNs();
  for (int64_t polls = 0;; ++polls) {
    const CUresult result = driver->cuStreamQuery(stream);
    if (result != kNotReady)
      return driver->check(result, "cuStreamQuery");
    if (limitNs > 0 && nowNs() - begin >= limitNs) {
      lost = true;
      return Status::error("work on " + name + " has not ended within " + seconds(limitNs),
                           Code::rankFailed);
    }
    pause(polls);
  }
}

Result<Stream> createStream(const DevicePtr &device, int32_t priority) {
  const Driver &api = device->api();
  CUstream stream;
  RETURN_IF_ERROR(device->use());
  // The driver's priorities descend, and it takes the nearest one that it has.
  constexpr int32_t kMost = 1 << 20; // beyond what any device has, and safe to negate
  BRAID_CUDA_TRY(api, cuStreamCreateWithPriority, &stream, kStreamNonBlocking,
                 -std::clamp(priority, -kMost, kMost));
  return Stream(device, stream, api.cuStreamDestroy_v2);
}

Result<Event> createEvent(const DevicePtr &device, bool timed) {
  const Driver &api = device->api();
  CUevent event;
  RETURN_IF_ERROR(device->use());
  BRAID_CUDA_TRY(api, cuEventCreate, &event, timed ? kEventDefault : kEventDisableTiming);
  return Event(device, event, api.cuEventDestroy_v2);
}

Result<Memory> allocate(const DevicePtr &device, size_t bytes, CUstream stream,
                        const std::string &what) {
  const Driver &api = device->api();
  bytes = std::max<size_t>(bytes, 1);
  CUdeviceptr memory = 0;
  RETURN_IF_ERROR(device->use());
  if (Status status = api.check(api.cuMemAlloc_v2(&memory, bytes), "cuMemAlloc_v2"); !status.ok())
    return Status::error(what + " of " + std::to_string(bytes) + " bytes on " + device->name +
                         ": " + status.message());
  Memory owned(device, memory, api.cuMemFree_v2);
  BRAID_CUDA_TRY(api, cuMemsetD8Async, memory, 0, bytes, stream);
  return owned;
}

Status copyNow(Device &device, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  RETURN_IF_ERROR(device.use());
  BRAID_CUDA_TRY(device.api(), cuMemcpyAsync, to, from, bytes, stream);
  return device.finish(stream);
}

Result<HostPages> allocatePinned(const DevicePtr &device, size_t bytes) {
  const Driver &api = device->api();
  void *memory = nullptr;
  RETURN_IF_ERROR(device->use());
  BRAID_CUDA_TRY(api, cuMemHostAlloc, &memory, std::max<size_t>(bytes, 1), kHostAllocPortable);
  return HostPages(device, memory, api.cuMemFreeHost);
}

} // namespace braid::runtime::cuda
