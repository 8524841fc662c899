//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "braid/Base/StatusMacros.h"

#include <cstdlib>
#include <tuple>

namespace braid::runtime::cuda {

namespace {

struct Architecture {
  int major = -1, minor = 0;
  char suffix = 0; ///< 'a', 'f' or none
};

Architecture parse(const std::string &text) {
  if (text.rfind("sm_", 0) != 0)
    return {};
  char *end = nullptr;
  const unsigned long number = std::strtoul(text.c_str() + 3, &end, 10);
  const std::string suffix = end;
  if (number < 10 || number > 9999 || (!suffix.empty() && suffix != "a" && suffix != "f"))
    return {};
  return {static_cast<int>(number / 10), static_cast<int>(number % 10),
          suffix.empty() ? '\0' : suffix[0]};
}

} // namespace

bool runsOn(const std::string &architecture, int major, int minor) {
  const Architecture a = parse(architecture);
  return a.major == major && (a.suffix == 'a' ? a.minor == minor : a.minor <= minor);
}

Result<const KernelLibrary *> chooseLibrary(const Bundle &bundle, const Device &device) {
  const KernelLibrary *best = nullptr;
  auto rank = [](const KernelLibrary &library) {
    const Architecture a = parse(library.isa);
    return std::tuple(a.minor, a.suffix == 'a' ? 2 : a.suffix == 'f' ? 1 : 0);
  };
  std::string offers;
  for (const KernelLibrary &library : bundle.manifest().kernels) {
    offers += (offers.empty() ? "" : ", ") + library.target + " " + library.isa;
    if (library.target == "cuda" && runsOn(library.isa, device.major, device.minor) &&
        (!best || rank(library) > rank(*best)))
      best = &library;
  }
  if (!best)
    return Status::error("the bundle has no kernels for " + device.name + " (compute capability " +
                         std::to_string(device.major) + "." + std::to_string(device.minor) +
                         "): it has " + (offers.empty() ? "none at all" : offers));
  return best;
}

Result<std::unique_ptr<Kernels>> Kernels::load(const Bundle &bundle, const KernelLibrary &library,
                                               const CudaLaunchTable &table,
                                               const DevicePtr &device) {
  auto kernels = std::make_unique<Kernels>();
  kernels->device = device;
  kernels->member = library.member;
  const Bytes *code = bundle.find(library.member);
  if (!code)
    return Status::error("the bundle lacks its member '" + library.member + "'");
  const Driver &api = device->api();
  RETURN_IF_ERROR(device->use());
  CUmodule module;
  if (Status status = api.check(api.cuModuleLoadData(&module, code->data()), "cuModuleLoadData");
      !status.ok())
    return Status::error("the bundle's member '" + library.member + "': " + status.message());
  kernels->module = Module(device, module, api.cuModuleUnload);
  // All functions of the table are checked before anything runs.
  for (const CudaKernel &kernel : table.kernels)
    RETURN_IF_ERROR(kernels->generated(kernel).status());
  return kernels;
}

Result<CUfunction> Kernels::generated(const CudaKernel &kernel) {
  constexpr int64_t kGivenToAll = 48 * 1024; // of dynamic shared memory; more must be requested
  Result<CUfunction> function = find(kernel.function, kernel.parameterBytes());
  if (function.ok() && kernel.sharedBytes > kGivenToAll)
    if (Status status = device->api().check(
            device->api().cuFuncSetAttribute(*function, kMaxDynamicSharedBytes,
                                             static_cast<int>(kernel.sharedBytes)),
            "cuFuncSetAttribute");
        !status.ok())
      return Status::error("the bundle's member '" + member + "': function '" + kernel.function +
                           "' with " + std::to_string(kernel.sharedBytes) +
                           " bytes of dynamic shared memory: " + status.message());
  return function;
}

Result<CUfunction> Kernels::library(const std::string &name, size_t bytes) {
  return find(name, {bytes});
}

Result<CUfunction> Kernels::find(const std::string &name,
                                 const std::vector<size_t> &parameterBytes) {
  auto known = found.find(name);
  if (known != found.end())
    return known->second;
  const Driver &api = device->api();
  RETURN_IF_ERROR(device->use());
  CUfunction function;
  if (api.cuModuleGetFunction(&function, module.get(), name.c_str()) != kSuccess)
    return Status::error("the bundle's member '" + member + "' lacks function '" + name + "'");
  std::string expected, got;
  for (size_t bytes : parameterBytes)
    expected += (expected.empty() ? "" : ", ") + std::to_string(bytes);
  size_t offset, bytes;
  for (size_t i = 0; api.cuFuncGetParamInfo(function, i, &offset, &bytes) == kSuccess; ++i)
    got += (got.empty() ? "" : ", ") + std::to_string(bytes);
  if (got != expected)
    return Status::error("the bundle's member '" + member + "': function '" + name +
                         "' expects parameters of " + expected + " bytes, got " +
                         (got.empty() ? "none" : got));
  found.emplace(name, function);
  return function;
}

} // namespace braid::runtime::cuda
