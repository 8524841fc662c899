//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Starts ranks on several hosts. On each host an agent, such as ssh, runs a starter
// (RankStarter.h), which is told through its input what to start, so that the job's secret is on no
// command line. Ranks start when all starters are ready. Their lines of output come out here, with
// rank and host before them. When a rank or a host fails, or this process is asked to end, all
// ranks end within a limit; when this process is killed, their starters notice it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LAUNCHER_LAUNCHER_H
#define BRAID_LAUNCHER_LAUNCHER_H

#include "braid/Runtime/Launch.h"

namespace braid::runtime {

/// What --agent is when it is not given: no terminal, and no question that nobody answers.
inline constexpr const char *kDefaultAgent = "ssh -x -o BatchMode=yes";

struct LaunchRequest {
  std::vector<HostRanks> hosts;
  /// The agent's words; a host and a command of one word for its shell come after them. Hosts
  /// named localhost, 127.0.0.1 or ::1 need no agent.
  std::vector<std::string> agent;
  /// A command that calls runRankStarter; the program must have this path on all hosts.
  std::vector<std::string> starter;
  std::vector<std::string> command;     ///< of every rank
  std::string directory;                ///< that ranks work in, on all hosts
  Environment environment;              ///< for all ranks, over what their hosts give them
  std::optional<Rendezvous> rendezvous; ///< none: a free port of the first host
  double startLimitSeconds = 60;        ///< for starters to be ready
  double graceSeconds = 5;              ///< between SIGTERM and SIGKILL
};

struct LaunchOutcome {
  /// Of the first rank that failed; Code::rankFailed if a signal ended it or a host was lost; 128 +
  /// N if signal N ended this process; 0 if all is well.
  int exitStatus = 0;
  std::string message; ///< empty if all is well
};

/// Returns when all ranks have ended. Takes the signals of this process, which must have no other
/// threads, until then.
LaunchOutcome launchRanks(const LaunchRequest &request);

/// The variables of `environment` that ranks on other hosts get too: those that begin with BRAID_
/// or UCX_, without what a launcher says.
Environment forwardedVariables(const Environment &environment);

/// The words of a text with spaces between them.
std::vector<std::string> splitWords(const std::string &text);

/// The path of this program.
Result<std::string> programPath();

} // namespace braid::runtime
#endif // BRAID_LAUNCHER_LAUNCHER_H
