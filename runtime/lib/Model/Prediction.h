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

  /// The fields of `prediction` in a report, for the times that runs took.
  nlohmann::ordered_json json(double medianRunSeconds, double leastRunSeconds) const;

  /// What a process of a job gives to that of rank 0.
  nlohmann::ordered_json raw() const;
  /// Of all processes of a job, by rank. Of a call, the longest process of each run counts, and of
  /// an operation their mean; of a collective the shortest, since the rank that came last waits for
  /// none. Throws what the JSON library throws.
  static PredictionFigures merged(const std::vector<nlohmann::ordered_json> &raw);
};

class Prediction {
public:
  /// Of programs with estimates, for all ranks of the process. What could not be estimated is said
  /// in the report.
  Prediction(const cost::Machine &machine, const CommandTimes &times, RankRange ranks,
             std::vector<const RankProgram *> programs);

  /// Takes the times of the last run, which was traced.
  void add(const Workers &workers);
  void clear();
  const PredictionFigures &figures() const { return its; }

private:
  const RankRange ranks;
  std::vector<const RankProgram *> programs;
  PredictionFigures its;
};

} // namespace braid::runtime
#endif // BRAID_MODEL_PREDICTION_H
