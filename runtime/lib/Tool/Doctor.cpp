//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Doctor.h"
#include "Libraries.h"
#include "braid/Runtime/Version.h"
#include "runtime/lib/Kernels/CpuFeatures.h"
#include "runtime/lib/Kernels/VectorKernels.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace braid::runtime {

namespace {

using State = Finding::State;

std::string gibibytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / (1 << 30));
  return text;
}

std::string firstLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool hasAll(std::initializer_list<const char *> features) {
  return std::all_of(features.begin(), features.end(),
                     [](const char *feature) { return hostHasFeature(feature); });
}

/// The highest level of the x86-64 psABI that the host has.
const char *psabiLevel() {
  if (!hasAll({"cx16", "sahf", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}))
    return "x86-64";
  if (!hasAll({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}))
    return "x86-64-v2";
  if (!hasAll({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}))
    return "x86-64-v3";
  return "x86-64-v4";
}

Finding instructionSets() {
  if (std::string(hostArchitecture()) != "x86_64")
    return {"instruction sets", State::missing, hostArchitecture(),
            "kernels are generated for x86_64 only"};
  const std::string level = psabiLevel();
  std::string found = level;
  for (const char *feature : {"avx512bf16", "avx512fp16", "amx-bf16", "amx-fp16"})
    if (hostHasFeature(feature))
      found += std::string(", ") + feature;
  std::string use = std::string("the runtime's own loops use ") + vectorKernels().isa;
  use += level == "x86-64-v3" || level == "x86-64-v4"
             ? "; bundles run that were compiled for x86-64-v3 or for this host"
             : "; only bundles run that were compiled with --isa host here, or for less";
  return {"instruction sets", State::used, std::move(found), std::move(use)};
}

Finding cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const unsigned all = std::thread::hardware_concurrency();
  const int allowed =
      sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(all);
  // A rank computes with --threads threads and communicates with one.
  std::string use = allowed < 2 ? "a rank's computation and communication take turns"
                                : "room for " + std::to_string(allowed / 2) +
                                      (allowed / 2 == 1 ? " rank" : " ranks") +
                                      " with a thread that computes and one that communicates";
  return {"cores", State::used, std::to_string(allowed) + " for this process", std::move(use)};
}

Finding memory(const DoctorOptions &options) {
  std::ifstream file(options.processes + "/meminfo");
  double total = 0, available = 0;
  for (std::string field, unit; file >> field;) {
    double kibibytes = 0;
    file >> kibibytes;
    std::getline(file, unit);
    if (field == "MemTotal:")
      total = kibibytes * 1024;
    if (field == "MemAvailable:")
      available = kibibytes * 1024;
  }
  if (total == 0)
    return {"memory", State::absent, "no figures in " + options.processes + "/meminfo",
            "the largest model size is unknown"};
  return {"memory", State::used, gibibytes(total) + ", " + gibibytes(available) + " available",
          "parameters and buffers of all ranks of this host"};
}

Finding hugePages(const DoctorOptions &options) {
  const std::string transparent =
      firstLine(options.kernelSettings + "/transparent_hugepage/enabled");
  const size_t begin = transparent.find('['), end = transparent.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return {"huge pages", State::absent,
            "no setting in " + options.kernelSettings + "/transparent_hugepage",
            "memory is in ordinary pages"};
  const std::string setting = transparent.substr(begin + 1, end - begin - 1);
  if (setting == "always" || setting == "madvise")
    return {"huge pages", State::used, "transparent: " + setting,
            "parameters and buffers of 2 MiB and more, as far as the system has them"};
  return {"huge pages", State::unused, "transparent: " + setting, "memory is in ordinary pages"};
}

Finding sharedMemory() {
  HostMemory memory;
  if (Status status = memory.map(1 << 16, Sharing::forks); !status.ok())
    return {"shared memory", State::absent, status.message(),
            "ranks can be threads, but not processes (--transport shm)"};
  return {"shared memory", State::used,
          "anonymous, " + gibibytes(static_cast<double>(availableMemory())) + " available",
          "for data that ranks as processes exchange (--transport shm)"};
}

/// Kernels are loaded from memory without a name in the file system.
Finding kernelLoading(const DoctorOptions &options) {
  const std::string descriptors = options.processes + "/self/fd";
  int file = memfd_create("braid-doctor", MFD_CLOEXEC);
  if (file < 0)
    return {"kernel loading", State::missing,
            std::string("no memory files: ") + std::strerror(errno),
            "a bundle's kernels cannot be loaded"};
  const bool seen = access((descriptors + "/" + std::to_string(file)).c_str(), R_OK) == 0;
  close(file);
  if (!seen)
    return {"kernel loading", State::missing, "no " + descriptors,
            "a bundle's kernels cannot be loaded"};
  return {"kernel loading", State::used, "memory files, " + descriptors,
          "a bundle's kernels are loaded without a trace on disk"};
}

/// Where the compiler links kernels: LLVM looks at the same variables in the same order.
Finding temporaryDirectory() {
  std::string directory = "/tmp";
  for (const char *variable : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"})
    if (const char *value = std::getenv(variable)) {
      directory = value;
      break;
    }
  std::string path = directory + "/braid-doctor-XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0)
    return {"temporary directory", State::missing, directory + ": " + std::strerror(errno),
            "kernels cannot be linked; TMPDIR names another one"};
  close(file);
  unlink(path.c_str());
  return {"temporary directory", State::used, directory, "kernels are linked in it"};
}

Finding oneDNN() {
  const dnnl_version_t *version = dnnl_version();
  Dl_info info{};
  const char *path =
      dladdr(reinterpret_cast<const void *>(&dnnl_version), &info) != 0 ? info.dli_fname : "";
  return {"oneDNN", State::used,
          std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
              std::to_string(version->patch) + ", " + path,
          "matmuls"};
}

} // namespace

const char *name(State state) {
  constexpr const char *kNames[] = {"used", "unused", "absent", "missing"};
  return kNames[static_cast<size_t>(state)];
}

bool Diagnosis::ready() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding &f) { return f.state == State::missing; });
}

std::string Diagnosis::text() const {
  std::string text = std::string("braid ") + version() + " on " + hostCpuModel() + "\n";
  for (const Finding &finding : findings) {
    char start[64];
    std::snprintf(start, sizeof start, "  %-7s  %-19s  ", name(finding.state),
                  finding.name.c_str());
    text += start + finding.found + "\n" + std::string(32, ' ') + finding.use + "\n";
  }
  return text + (ready() ? "the CPU target has all that it needs\n"
                         : "the CPU target lacks what is 'missing'\n");
}

std::string Diagnosis::json() const {
  nlohmann::ordered_json json{
      {"version", version()}, {"processor", hostCpuModel()}, {"ready", ready()}};
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding &f : findings)
    json["findings"].push_back(
        {{"name", f.name}, {"state", name(f.state)}, {"found", f.found}, {"use", f.use}});
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Diagnosis diagnose(const DoctorOptions &options) {
  Diagnosis diagnosis;
  diagnosis.findings = {instructionSets(),    cores(),        memory(options),
                        hugePages(options),   sharedMemory(), kernelLoading(options),
                        temporaryDirectory(), oneDNN()};
  for (Finding &finding : findLibraries(options))
    diagnosis.findings.push_back(std::move(finding));
  return diagnosis;
}

} // namespace braid::runtime
