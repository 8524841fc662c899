//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parts of a calibration, each of which fills its fields of the machine.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CALIBRATE_PARTS_H
#define BRAID_CALIBRATE_PARTS_H

#include "Crew.h"
#include "braid/Cost/Machine.h"
#include "braid/Runtime/Bundle.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::runtime {

/// The memory that a member of the crew needs for all of these.
size_t kernelMemoryBytes(bool quick);
Status measureMatmuls(Crew &crew, bool quick, cost::ComputeRates &rates);
/// Of 8-bit integers.
Status measureInt8Matmuls(Crew &crew, bool quick, cost::ComputeRates &rates);
Status measureAttention(Crew &crew, bool quick, size_t poolBytes, cost::ComputeRates &rates);
/// `bundle` may be null. Needs the rates of memory.
Status measureRows(Crew &crew, bool quick, size_t poolBytes, const Bundle *bundle,
                   cost::ComputeRates &rates);
/// encode, decode and decode_sum, of encodings from which the times of all others follow.
Status measureCodecs(Crew &crew, bool quick, size_t poolBytes, cost::ComputeRates &rates);
/// Memory is taken in turn from so many bytes.
Status measureMemory(Crew &crew, bool quick, size_t poolBytes, cost::ComputeRates &rates);

Result<cost::Overheads> measureOverheads(bool quick);
/// A transport, measured in two halves with something else between: figures of one moment would be
/// those of a slow one, or of a fast one, for all that uses the file.
class TransportMeasurement {
public:
  /// It spends at most `secondsForCores` on waiting for cores to be as near to each other as usual,
  /// and on what it repeats as they were not (CoreDistance.h).
  TransportMeasurement(const std::string &name, int64_t ranks, bool quick, double secondsForCores);
  ~TransportMeasurement();
  /// To be called twice. It may fork, so no other thread may run.
  Status measureHalf();
  /// How many times as long each collective took in the second half as in the first one.
  void addEndOverBegin(std::vector<double> &ratios) const;
  /// The part of the loads whose cores were not as near to each other as in most, as there was no
  /// time to repeat them. They count only where a collective has no others.
  double partElsewhere() const;
  /// Waits until cores are as near to each other as usual, if there is time left for that.
  void awaitCores();
  /// In the loads until now; none where ranks share cores.
  std::optional<double> coreToCoreSeconds() const;
  /// `errors` gets, for all_reduces of each size, how far the time that follows from the others' is
  /// from the measured one, as a part of it.
  Result<cost::Transport> result(std::vector<double> &errors) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Beside computation of a kind: "matmul" or "memory".
Result<cost::Interference> measureInterference(const std::string &name, int64_t ranks,
                                               const std::string &kind, bool quick);

} // namespace braid::runtime
#endif // BRAID_CALIBRATE_PARTS_H
