//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/KernelLibrary.h"
#include "CpuFeatures.h"
#include "runtime/lib/Data/Digest.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace braid::runtime {

KernelLibraryHandle::~KernelLibraryHandle() {
  if (handle)
    dlclose(handle);
  if (file >= 0)
    close(file);
}

static std::string missingFeatures(const KernelLibrary &library) {
  std::string missing;
  for (const std::string &feature : library.features)
    if (!hostHasFeature(feature))
      missing += (missing.empty() ? "" : ", ") + feature;
  return missing;
}

Result<std::shared_ptr<const KernelLibraryHandle>> KernelLibraryHandle::load(const Bundle &bundle) {
  const KernelLibrary *best = nullptr;
  std::string offers;
  for (const KernelLibrary &library : bundle.manifest().kernels) {
    std::string name = library.target + " " + library.triple + " " + library.isa;
    std::string arch = library.triple.substr(0, library.triple.find('-'));
    std::string why;
    if (library.target != "cpu")
      why = "is not for the cpu";
    else if (arch != hostArchitecture())
      why = std::string("is not for ") + hostArchitecture();
    else if (std::string missing = missingFeatures(library); !missing.empty())
      why = "needs " + missing;
    if (!why.empty()) {
      offers += (offers.empty() ? "" : "; ") + name + " " + why;
      continue;
    }
    if (!best || library.features.size() > best->features.size())
      best = &library;
  }
  if (!best)
    return Status::error("the bundle has no kernels for this host (", hostCpuModel(),
                         "): ", offers.empty() ? "it has none at all" : offers);
  const Bytes *bytes = bundle.find(best->member);

  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const KernelLibraryHandle>> loaded;
  std::lock_guard<std::mutex> lock(mutex);
  auto &known = loaded[best->isa + " " + best->member + " " + sha256(bytes->data(), bytes->size())];
  if (std::shared_ptr<const KernelLibraryHandle> library = known.lock())
    return library;
  // A file without a name leaves nothing on disk, even after a crash.
  int file = memfd_create("braid-kernels", MFD_CLOEXEC);
  if (file < 0)
    return Status::error("cannot create memory for the kernels: ", std::strerror(errno));
  for (size_t done = 0; done < bytes->size();) {
    ssize_t n = write(file, bytes->data() + done, bytes->size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      close(file);
      return Status::error("cannot store the kernels in memory: ", std::strerror(errno));
    }
    done += static_cast<size_t>(n);
  }
  // The loader identifies a library by its path. The descriptor stays open while the library is
  // loaded, so that no other library can get the same path.
  auto result = std::make_shared<KernelLibraryHandle>();
  result->file = file;
  result->handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!result->handle)
    return Status::error("cannot load the bundle's member '", best->member, "': ", dlerror());
  result->chosenIsa = best->isa;
  result->member = best->member;
  known = result;
  return std::shared_ptr<const KernelLibraryHandle>(std::move(result));
}

Result<KernelFunction> KernelLibraryHandle::find(const std::string &symbol) const {
  void *address = dlsym(handle, symbol.c_str());
  // dlsym also finds symbols of the libraries that this one is linked with, such as libc.
  link_map *own = nullptr, *home = nullptr;
  Dl_info info{};
  if (!address || dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void *>(&own)) != 0 ||
      dladdr1(address, &info, reinterpret_cast<void **>(&home), RTLD_DL_LINKMAP) == 0 ||
      home != own)
    return Status::error("the bundle's member '", member, "' lacks kernel '", symbol, "'");
  return reinterpret_cast<KernelFunction>(address);
}

} // namespace braid::runtime
