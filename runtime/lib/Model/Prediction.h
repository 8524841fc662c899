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

class Prediction {
public:
  /// Of programs with estimates, for all ranks of the mesh. What could not be estimated is said in
  /// the report.
  Prediction(const cost::Machine &machine, const CommandTimes &times,
             std::vector<const RankProgram *> programs);

  /// Takes the times of the last run, which was traced.
  void add(const Workers &workers);
  void clear();
  /// The fields of `prediction` in a report, for the times that runs took.
  nlohmann::ordered_json json(double medianRunSeconds, double leastRunSeconds) const;

private:
  /// Seconds by identity, in the order of the program.
  struct Figures {
    std::map<std::string, double> calls, operations, collectives;
    double run = 0;
  };

  std::vector<const RankProgram *> programs;
  std::string machine, measuredAt;
  std::string notEstimated; ///< the first command that is not; empty: all are
  std::string warning;
  std::vector<std::string> callOrder, operationOrder, collectiveOrder;
  Figures predicted;
  std::map<std::string, std::vector<double>> callSamples, operationSamples, collectiveSamples;
  /// Of collectives, in runs whose ranks came within the time that one spins.
  std::map<std::string, std::vector<double>> awakeSamples;
};

} // namespace braid::runtime
#endif // BRAID_MODEL_PREDICTION_H
