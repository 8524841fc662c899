//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures this host with the runtime's own kernels and transports: the machine file of
// `braid calibrate`. docs/costs.md says how each figure is measured.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_CALIBRATE_H
#define BRAID_RUNTIME_CALIBRATE_H

#include "braid/Cost/Machine.h"
#include "braid/Runtime/Bundle.h"
#include "braid/Runtime/Launch.h"

#include <functional>
#include <memory>
#include <optional>

namespace braid::runtime {

struct CalibrateOptions {
  std::string name = "this host"; ///< of the machine
  std::vector<std::string> transports{"threads", "shm"};
  /// Smaller tables, each figure measured once: tells that it works, and nothing about the host.
  bool quick = false;
  /// Cores that other programs may use at the beginning.
  double maxForeignCores = 0.25;
  /// A bundle with kernels on rows whose programs say what a row computes, each with one operation
  /// that those before it have not; null: rates of row operations are missing.
  std::shared_ptr<const Bundle> rowKernels;
  /// Called before each part: what it is, its number from 1, and the number of parts.
  std::function<void(const std::string &what, size_t part, size_t parts)> progress;
};

/// A measured machine, and what its user should know.
struct Calibration {
  cost::Machine machine;
  std::vector<std::pair<std::string, double>> seconds; ///< that each part took
  /// By transport of `machine`: how far the predicted times of all_reduces of ascending sizes are
  /// from the measured ones, as a part of them.
  std::vector<std::vector<double>> allReduceErrors;
  std::vector<std::string> warnings;
};

/// Forks for transport shm, so no other thread may hold a lock. An error if other programs use more
/// cores than the options allow.
Result<Calibration> calibrate(const CalibrateOptions &options);

struct LinkCalibration {
  std::string transports, devices; ///< as UCX names them, and network devices; empty: all
  bool quick = false;
  double limitSeconds = 60; ///< for the start, and for a message
};

/// Measures the links between the hosts of a job, whose processes all call this, one on each host.
/// Rank 0 gets the figures, of ranks 0 and 1 except where all take part.
Result<std::optional<cost::Link>> measureLinks(const LaunchInfo &launch,
                                               const LinkCalibration &options);

/// That something is measured now, by this version: one repetition if it is quick.
cost::Measurement measurementNow(bool isQuick);

/// This host as a machine file describes it.
cost::Processor hostProcessor();

} // namespace braid::runtime
#endif // BRAID_RUNTIME_CALIBRATE_H
