//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Libraries.h"
#include "runtime/lib/Net/Networks.h"

#include <dlfcn.h>
#include <functional>
#include <link.h>
#include <unistd.h>

namespace braid::runtime {

namespace {

/// A loaded library. It stays loaded, since some libraries crash when they are unloaded.
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

std::string ucxVersion(const Library &library) {
  auto *get = library.find<void(unsigned *, unsigned *, unsigned *)>("ucp_get_version");
  unsigned major = 0, minor = 0, release = 0;
  if (!get)
    return "";
  get(&major, &minor, &release);
  return dotted(static_cast<int>(major), static_cast<int>(minor)) + "." + std::to_string(release);
}

std::string driverVersion(const Library &library, int &gpus) {
  int version = 0;
  auto *get = library.find<int(int *)>("cuDriverGetVersion");
  if (!get || get(&version) != 0)
    return "";
  auto *init = library.find<int(unsigned)>("cuInit");
  auto *count = library.find<int(int *)>("cuDeviceGetCount");
  if (!init || !count || init(0) != 0 || count(&gpus) != 0)
    gpus = 0;
  return "for CUDA " + dotted(version / 1000, version % 1000 / 10) + ", " +
         (gpus == 0 ? "no GPU" : std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs"));
}

std::string blasVersion(const Library &library) {
  auto *get = library.find<size_t()>("cublasLtGetVersion");
  const int version = get ? static_cast<int>(get()) : 0;
  return version == 0
             ? ""
             : dotted(version / 10000, version % 10000 / 100) + "." + std::to_string(version % 100);
}

std::string ncclVersion(const Library &library) {
  int version = 0;
  auto *get = library.find<int(int *)>("ncclGetVersion");
  if (!get || get(&version) != 0)
    return "";
  // Before 2.9 the number had two digits less.
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
  return dotted(major, minor) + "." + std::to_string(version % 100);
}

struct Probe {
  const char *name;
  std::vector<const char *> files; ///< best first
  std::function<std::string(const Library &)> version;
  const char *use;    ///< its purpose
  const char *absent; ///< what does not work without it
};

/// `hindrance`: the reason why the library is not used even if it is present; null if it is used.
Finding look(const Probe &probe, const DoctorOptions &options, const char *hindrance) {
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
      finding.state = hindrance ? Finding::State::unused : Finding::State::used;
      finding.found = version + ", " + library.path();
      finding.use = hindrance ? hindrance : probe.use;
      return finding;
    }
    const std::string error = dlerror();
    if (error.find("No such file") == std::string::npos)
      damage = error;
  }
  finding.state = Finding::State::absent;
  finding.found = damage.empty() ? "no " + tried : damage;
  finding.use = probe.absent;
  return finding;
}

/// UCX, and the transports that it has on this host.
Finding findUcx(const DoctorOptions &options) {
  const Probe probe{"UCX",
                    {"libucp.so.0"},
                    ucxVersion,
                    "messages between ranks on several hosts, or that a launcher starts",
                    "no ranks on several hosts, nor ranks that a launcher starts"};
  if (options.libraryDirectories)
    return look(probe, options, nullptr);
  // Before the library is looked for, as loading it in this way changes nothing in the process.
  net::NetOptions all;
  all.transports = "all";
  auto networks = net::openNetworks(all);
  Finding finding = look(probe, options, nullptr);
  if (finding.state == Finding::State::absent)
    return finding;
  if (!networks.ok()) {
    finding.state = Finding::State::absent;
    finding.use = networks.status().message();
    return finding;
  }
  std::string names;
  for (const std::string &name : net::transportNames(**networks))
    names += (names.empty() ? "" : ", ") + name;
  finding.found += ", transports " + names;
  return finding;
}

} // namespace

std::vector<Finding> findLibraries(const DoctorOptions &options) {
  const char *noMpi = "not used: messages between hosts go over UCX";
  const Probe mpi{"MPI", {"libmpi.so.40", "libmpi.so.12", "libmpi.so"}, mpiVersion, "", noMpi};
  int gpus = 0;
  const Probe driver{"CUDA driver",
                     {"libcuda.so.1"},
                     [&](const Library &library) { return driverVersion(library, gpus); },
                     "runs bundles that were compiled for GPUs (--target cuda)",
                     "nothing runs on GPUs"};
  const Probe blas{"cuBLASLt",
                   {"libcublasLt.so.13", "libcublasLt.so.12"},
                   blasVersion,
                   "matmuls on GPUs",
                   "no matmuls on GPUs"};
  const Probe nccl{"NCCL",
                   {"libnccl.so.2"},
                   ncclVersion,
                   "collectives of ranks on GPUs of their own (--transport nccl)",
                   "no ranks on GPUs of their own (--transport nccl)"};
  std::vector<Finding> findings = {look(mpi, options, noMpi), findUcx(options),
                                   look(driver, options, nullptr)};
  const char *hindrance = gpus == 0 ? "not used: there is no GPU" : nullptr;
  if (hindrance && findings.back().state == Finding::State::used) {
    findings.back().state = Finding::State::unused;
    findings.back().use = hindrance;
  }
  for (const Probe &probe : {blas, nccl})
    findings.push_back(look(probe, options, hindrance));
  return findings;
}

} // namespace braid::runtime
