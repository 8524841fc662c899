//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Looks at a host: what there is of all that Braid can use, what it will use, and why not the rest.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_DOCTOR_H
#define BRAID_RUNTIME_DOCTOR_H

#include <optional>
#include <string>
#include <vector>

namespace braid::runtime {

struct Finding {
  enum class State {
    used,   ///< there, and of use
    unused, ///< there, and nothing is made of it
    absent, ///< not there, or of no use as it is; all but what `use` names goes without
    missing ///< not there, and the CPU target needs it
  };
  std::string name; ///< "cores"
  State state = State::used;
  std::string found; ///< version, place, number; what was looked for when there is nothing
  std::string use;   ///< what it is used for, or why it is not
};

const char *name(Finding::State state); // "used", ...

struct Diagnosis {
  std::vector<Finding> findings;
  /// Nothing that the CPU target needs is missing.
  bool ready() const;
  std::string text() const;
  std::string json() const;
};

/// Where to look; other places than a host's own are for tests.
struct DoctorOptions {
  /// Directories with shared libraries; not set: where the loader looks.
  std::optional<std::vector<std::string>> libraryDirectories;
  std::string processes = "/proc";
  std::string kernelSettings = "/sys/kernel/mm";
};

Diagnosis diagnose(const DoctorOptions &options = {});

} // namespace braid::runtime
#endif // BRAID_RUNTIME_DOCTOR_H
