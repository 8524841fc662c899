//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The null device through the function tables that the executor uses, with one device, two streams
// and two allocations on it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_NULLDEVICETESTING_H
#define BRAID_TEST_NULLDEVICETESTING_H

#include "../../../runtime/lib/Cuda/Device.h"
#include "Paths.h"
#include "Testing.h"

#include <dlfcn.h>

namespace braid::runtime::testing {

/// A function of the null device that drivers do not have.
template <typename Function> Function *ofNullDevice(const char *name) {
  return reinterpret_cast<Function *>(dlsym(dlopen(kNullDevicePath, RTLD_NOW | RTLD_LOCAL), name));
}
/// A text that lists the null device's resources in use.
inline std::string inUse() { return ofNullDevice<const char *()>("braidNullInUse")(); }
/// From now on this kernel does not end; "" for none.
inline void stallNullDevice(const char *kernel) {
  ofNullDevice<void(const char *)>("braidNullStall")(kernel);
}

class NullDeviceTest : public ::testing::Test {
protected:
  static constexpr int64_t kLimitNs = 100'000'000;

  void SetUp() override {
    auto loaded = cuda::Driver::load(kNullDevicePath);
    ASSERT_OK(loaded);
    driver = *loaded;
    auto opened = cuda::Device::open(driver, 0, kLimitNs);
    ASSERT_OK(opened);
    device = *opened;
    for (cuda::Stream *stream : {&first, &second}) {
      auto created = cuda::createStream(device);
      ASSERT_OK(created);
      *stream = std::move(*created);
    }
    for (cuda::CUdeviceptr *address : {&memory, &other})
      ASSERT_EQ(driver->cuMemAlloc_v2(address, 256), cuda::kSuccess);
  }
  void TearDown() override {
    EXPECT_OK(device->use());
    EXPECT_OK(device->finish(first.get()));
    EXPECT_OK(device->finish(second.get()));
    for (cuda::CUdeviceptr address : {memory, other})
      if (address)
        EXPECT_EQ(problem(driver->cuMemFree_v2(address)), "");
  }

  /// Removes the numbers of streams and allocations, which continue from test to test.
  static std::string withoutNumbers(const std::string &text) {
    std::string result;
    bool skip = false;
    for (char c : text) {
      const bool digit = c >= '0' && c <= '9';
      auto after = [&](const std::string &word) {
        return result.size() >= word.size() &&
               result.compare(result.size() - word.size(), word.size(), word) == 0;
      };
      if (digit && (skip || after("stream ") || after("allocation "))) {
        skip = true;
        continue;
      }
      if (skip)
        result += '#';
      skip = false;
      result += c;
    }
    return skip ? result + '#' : result;
  }
  /// Returns an empty text on success.
  std::string problem(cuda::CUresult result) const {
    const char *text = "";
    if (result != cuda::kSuccess)
      driver->cuGetErrorString(result, &text);
    return withoutNumbers(text);
  }
  std::string fill(cuda::CUdeviceptr to, size_t bytes, const cuda::Stream &stream) const {
    return problem(driver->cuMemsetD8Async(to, 1, bytes, stream.get()));
  }
  std::string copy(cuda::CUdeviceptr to, cuda::CUdeviceptr from, size_t bytes,
                   const cuda::Stream &stream) const {
    return problem(driver->cuMemcpyAsync(to, from, bytes, stream.get()));
  }
  std::string record(const cuda::Event &event, const cuda::Stream &stream,
                     unsigned flags = cuda::kEventRecordDefault) const {
    return problem(driver->cuEventRecordWithFlags(event.get(), stream.get(), flags));
  }
  std::string wait(const cuda::Stream &stream, const cuda::Event &event) const {
    return problem(driver->cuStreamWaitEvent(stream.get(), event.get(), 0));
  }
  cuda::Event event(bool timed = false) const {
    return std::move(*cuda::createEvent(device, timed));
  }

  std::shared_ptr<const cuda::Driver> driver;
  cuda::DevicePtr device;
  cuda::Stream first, second;
  cuda::CUdeviceptr memory = 0, other = 0;
};

} // namespace braid::runtime::testing
#endif // BRAID_TEST_NULLDEVICETESTING_H
