//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What an entry's runs were predicted to take on a machine, beside what they took.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_MODEL_PREDICTION_H
#define BRAID_MODEL_PREDICTION_H

#include "Meeting.h"
#include "braid/Runtime/Communicator.h"
#include "runtime/lib/Executor/CommandTimes.h"
#include "runtime/lib/Executor/Executor.h"

#include <nlohmann/json_fwd.hpp>

namespace braid::runtime {

/// What was predicted and measured, of one process or, merged, of a job.
struct PredictionFigures {
  /// Seconds by identity.
  struct Part {
    std::vector<std::string> order; ///< of the program
    std::map<std::string, double> predicted;
    std::map<std::string, std::vector<double>> samples; ///< of the runs, in their order
  };

  std::string machine, measuredAt;
  std::string notEstimated; ///< the first command that is not; empty: all are
  std::string warning;
  double runSeconds = 0;
  Part calls, operations, collectives;
  /// Of collectives, in runs whose ranks came within the time that one spins.
  std::map<std::string, std::vector<double>> awakeSamples;
  /// Of a process of a job: how its ranks came to collectives, by run. They become samples when
  /// those of all processes are merged.
  std::map<std::string, std::vector<Meetings>> meetings;
  int64_t ranks = 1; ///< of the process

  /// Takes how the ranks of all groups met at a collective in a run.
  void take(const std::string &identity, const Meetings &ofRun);

  /// The fields of `prediction` in a report, for the times that runs took.
  nlohmann::ordered_json json(double medianRunSeconds, double leastRunSeconds) const;

  /// What a process of a job gives to that of rank 0, with times of rank 0's clock.
  nlohmann::ordered_json raw(const ClockMap &clock) const;
  /// Of all processes of a job, by rank. Of a call, the longest process of each run counts, and of
  /// an operation their mean; of a send or a recv the shorter. Of other collectives it is the mean
  /// over ranks, from the arrival of the last rank of the group. Throws what the JSON library
  /// throws.
  static PredictionFigures merged(const std::vector<nlohmann::ordered_json> &raw);
};

class Prediction {
public:
  /// Of programs with estimates, for all ranks of the process. What could not be estimated is said
  /// in the report.
  /// `isOfJob`: other processes have ranks of the model, too.
  Prediction(const cost::Machine &machine, const CommandTimes &times, RankRange ranks,
             std::vector<const RankProgram *> programs, bool isOfJob);

  /// Takes the times of the last run, which was traced.
  void add(const Workers &workers);
  void clear();
  const PredictionFigures &figures() const { return its; }

private:
  const RankRange ranks;
  const bool isOfJob;
  std::vector<const RankProgram *> programs;
  PredictionFigures its;
};

} // namespace braid::runtime
#endif // BRAID_MODEL_PREDICTION_H
