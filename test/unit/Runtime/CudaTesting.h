//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sessions on the null device (test/lib/NullDevice).
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_CUDATESTING_H
#define BRAID_TEST_CUDATESTING_H

#include "Paths.h"
#include "ProgramBuilder.h"
#include "braid/Runtime/CudaKernels.h"

#include <dlfcn.h>

namespace braid::runtime::testing {

/// The launch table of the kernels in NullKernels.cpp, or a table without kernels.
inline CudaLaunchTable nullKernelTable() {
  void *handle = dlopen(kNullKernelsPath, RTLD_NOW | RTLD_LOCAL);
  auto *text = static_cast<const char *>(dlsym(handle, "braid_launch_table"));
  Result<CudaLaunchTable> table = CudaLaunchTable::fromJson(text);
  EXPECT_OK(table);
  dlclose(handle);
  return *table;
}

/// The bundle with code for the null device and this launch table.
inline Result<std::shared_ptr<const Bundle>> withCudaKernels(BundleContents contents,
                                                             const CudaLaunchTable &table) {
  KernelLibrary library = cudaKernelLibrary(table.architecture);
  Result<Bytes> code = readFile(kNullKernelsPath);
  EXPECT_OK(code);
  contents.members[library.member] = *code;
  contents.members[library.launchesMember] = toBytes(table.toJson());
  contents.members[library.sourceMember] = toBytes("");
  contents.manifest.kernels.push_back(library);
  contents.manifest.transports = {"threads", "shm", "nccl"};
  return makeBundle(std::move(contents));
}

inline WorldOptions onNullDevice(const std::string &transport = "threads") {
  WorldOptions options;
  options.target = "cuda";
  options.transport = transport;
  options.cudaLibrary = kNullDevicePath;
  return options;
}

inline Result<std::unique_ptr<Session>>
cudaSession(ProgramBuilder &builder, const WorldOptions &options = onNullDevice(),
            const CudaLaunchTable &table = nullKernelTable(), const std::string &entry = {}) {
  auto bundle = withCudaKernels(builder.contents(), table);
  return bundle.ok() ? Session::create(*bundle, options, entry) : bundle.status();
}

/// A target and a transport.
struct Where {
  const char *name, *target, *transport;
  bool graph = false;

  bool onCpu() const { return target == std::string("cpu"); }
  /// A session of a program without kernels.
  Result<std::unique_ptr<Session>>
  session(ProgramBuilder &b, double timeLimit = WorldOptions().timeLimitSeconds) const {
    WorldOptions options = onCpu() ? WorldOptions() : onNullDevice();
    options.transport = transport;
    options.cudaGraph = graph;
    options.timeLimitSeconds = timeLimit;
    return onCpu() ? b.session(options) : cudaSession(b, options, {"sm_90a", {}});
  }
};
inline void PrintTo(const Where &where, std::ostream *os) { *os << where.name; }

/// All targets and transports.
inline constexpr Where kEverywhere[] = {
    {"threads", "cpu", "threads"}, {"shm", "cpu", "shm"},
    {"cuda", "cuda", "threads"},   {"cudaGraph", "cuda", "threads", true},
    {"nccl", "cuda", "nccl"},      {"ncclGraph", "cuda", "nccl", true}};

} // namespace braid::runtime::testing
#endif // BRAID_TEST_CUDATESTING_H
