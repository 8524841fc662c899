//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Libraries.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

namespace braid::runtime {

namespace {

/// A loaded library. It stays loaded: some do not survive being taken out again.
class Library {
public:
  explicit Library(void *handle) : handle(handle) {}

  template <typename Function> Function *find(const char *symbol) const {
    return reinterpret_cast<Function *>(dlsym(handle, symbol));
  }
  std::string path() const {
    link_map *map = nullptr;
    return dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void *>(&map)) == 0 && map->l_name
               ? map->l_name
               : "";
  }

private:
  void *handle;
};

std::string dotted(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

// Each of these functions works before its library is initialized.

std::string mpiVersion(const Library &library) {
  // MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI and 8192 in MPICH.
  char text[8192 + 1] = "";
  int length = 0;
  auto *get = library.find<int(char *, int *)>("MPI_Get_library_version");
  if (!get || get(text, &length) != 0)
    return "";
  std::string version(text);
  return version.substr(0, version.find_first_of(",\n"));
}

std::string driverVersion(const Library &library) {
  int version = 0;
  auto *get = library.find<int(int *)>("cuDriverGetVersion");
  if (!get || get(&version) != 0)
    return "";
  std::string text = "for CUDA " + dotted(version / 1000, version % 1000 / 10);
  auto *init = library.find<int(unsigned)>("cuInit");
  auto *count = library.find<int(int *)>("cuDeviceGetCount");
  int devices = 0;
  if (init && count && init(0) == 0 && count(&devices) == 0)
    return text + ", " + std::to_string(devices) + (devices == 1 ? " GPU" : " GPUs");
  return text + ", no GPU";
}

std::string nvrtcVersion(const Library &library) {
  int major = 0, minor = 0;
  auto *get = library.find<int(int *, int *)>("nvrtcVersion");
  return get && get(&major, &minor) == 0 ? dotted(major, minor) : "";
}

std::string ncclVersion(const Library &library) {
  int version = 0;
  auto *get = library.find<int(int *)>("ncclGetVersion");
  if (!get || get(&version) != 0)
    return "";
  // The number had two digits less before 2.9.
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
  return dotted(major, minor) + "." + std::to_string(version % 100);
}

struct Probe {
  const char *name;
  std::vector<const char *> files; ///< best first
  std::string (*version)(const Library &);
  const char *unused; ///< why nothing is made of it
};

Finding look(const Probe &probe, const DoctorOptions &options) {
  Finding finding;
  finding.name = probe.name;
  std::vector<std::string> paths;
  std::string tried;
  for (const char *file : probe.files) {
    tried += (tried.empty() ? "" : ", ") + std::string(file);
    if (!options.libraryDirectories)
      paths.emplace_back(file);
    else
      for (const std::string &directory : *options.libraryDirectories)
        if (std::string path = directory + "/" + file; access(path.c_str(), F_OK) == 0)
          paths.push_back(std::move(path));
  }
  std::string damage;
  for (const std::string &path : paths) {
    void *handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle) {
      Library library(handle);
      std::string version = probe.version(library);
      if (version.empty()) {
        damage = library.path() + " does not say its version";
        continue;
      }
      finding.state = Finding::State::unused;
      finding.found = version + ", " + library.path();
      finding.use = probe.unused;
      return finding;
    }
    const std::string error = dlerror();
    if (error.find("No such file") == std::string::npos)
      damage = error;
  }
  finding.state = Finding::State::absent;
  finding.found = damage.empty() ? "no " + tried : damage;
  finding.use = probe.unused;
  return finding;
}

} // namespace

std::vector<Finding> findLibraries(const DoctorOptions &options) {
  const char *noCuda = "not used by runs on the CPU; those with --target cuda do";
  const char *nvrtc =
      "not used by runs; compiling for --target cuda:ARCH does, and looks also where "
      "BRAID_NVRTC, CUDA_HOME and Python's packages have it";
  const Probe probes[] = {
      {"MPI",
       {"libmpi.so.40", "libmpi.so.12", "libmpi.so"},
       mpiVersion,
       "not used: ranks are threads or processes of one host"},
      {"CUDA driver", {"libcuda.so.1"}, driverVersion, noCuda},
      {"NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, nvrtcVersion, nvrtc},
      {"NCCL", {"libnccl.so.2"}, ncclVersion, noCuda}};
  std::vector<Finding> findings;
  for (const Probe &probe : probes)
    findings.push_back(look(probe, options));
  return findings;
}

} // namespace braid::runtime
