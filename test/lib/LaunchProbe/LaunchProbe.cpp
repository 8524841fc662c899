//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank that prints what it knows of its launch, and misbehaves when asked to; with --hosts, the
// launcher of such ranks.
//
//   braid-test-launch-probe [--hosts LIST [--agent WORDS] [--grace S] [--start-limit S]]
//                           [--rendezvous R] [WHAT]...
//
//   WHAT, for every rank, or for one with @RANK after it:
//     exit:N  signal:N  sleep:SECONDS  print:TEXT  error:TEXT  partial:TEXT  long:BYTES
//     ignore-term  report:SIGNAL  child (a process that outlives it)  hang
//
//===----------------------------------------------------------------------===//
#include "runtime/lib/Launcher/Launcher.h"
#include "runtime/lib/Launcher/RankStarter.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <unistd.h>

using namespace braid::runtime;

namespace {

int complain(const std::string &message) {
  std::cerr << "probe: error: " << message << "\n";
  return 1;
}

void reportSignal(int number) {
  char line[32];
  const int length = std::snprintf(line, sizeof line, "got signal %d\n", number);
  (void)!write(STDOUT_FILENO, line, static_cast<size_t>(length));
  _exit(0);
}

/// Returns an exit status, or nothing to go on.
std::optional<int> act(const std::string &kind, const std::string &value) {
  if (kind == "exit")
    return std::stoi(value);
  if (kind == "signal")
    std::raise(std::stoi(value));
  else if (kind == "sleep")
    usleep(static_cast<unsigned>(std::stod(value) * 1e6));
  else if (kind == "hang")
    for (;;)
      pause();
  else if (kind == "print")
    std::cout << value << std::endl;
  else if (kind == "partial")
    std::cout << value << std::flush;
  else if (kind == "error")
    std::cerr << value << std::endl;
  else if (kind == "long")
    std::cout << std::string(static_cast<size_t>(std::stoi(value)), 'x') << std::endl;
  else if (kind == "ignore-term")
    std::signal(SIGTERM, SIG_IGN);
  else if (kind == "report")
    std::signal(std::stoi(value), reportSignal);
  else if (kind == "child") {
    if (fork() == 0) {
      setsid();
      std::signal(SIGTERM, SIG_IGN);
      for (;;)
        pause();
    }
  } else
    return complain("expects something to do, got '" + kind + "'");
  return std::nullopt;
}

int runRank(const std::string &rendezvous, const std::vector<std::string> &what) {
  Result<std::optional<LaunchInfo>> found = launchInfo(processEnvironment(), rendezvous);
  if (!found.ok())
    return complain(found.status().message());
  if (!*found)
    return complain("no launcher started this process");
  const LaunchInfo &info = **found;
  std::ifstream own("/proc/self/cmdline");
  const std::string commandLine((std::istreambuf_iterator<char>(own)), {});
  char directory[4096] = "", host[256] = "";
  (void)!getcwd(directory, sizeof directory);
  gethostname(host, sizeof host - 1);
  std::cout << info.describe() << "; local " << info.localRank.value_or(-1) << " of "
            << info.localSize.value_or(-1) << "; at "
            << (info.rendezvous ? info.rendezvous->text() : "nowhere") << "; host " << host
            << "; in " << directory << "; secret of " << info.secret.size() << " characters, "
            << (!info.secret.empty() && commandLine.find(info.secret) != std::string::npos
                    ? "shown"
                    : "not shown")
            << "; job " << info.jobId << std::endl;
  for (std::string one : what) {
    if (const size_t at = one.find('@'); at != std::string::npos) {
      if (std::stoll(one.substr(at + 1)) != info.rank)
        continue;
      one.resize(at);
    }
    const size_t colon = one.find(':');
    const std::string value = colon == std::string::npos ? "" : one.substr(colon + 1);
    if (std::optional<int> status = act(one.substr(0, colon), value))
      return *status;
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  if (argc == 2 && std::strcmp(argv[1], "--start-ranks") == 0)
    return runRankStarter();
  std::string hosts, agent = kDefaultAgent, rendezvous;
  LaunchRequest request;
  std::vector<std::string> what;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option.rfind("--", 0) != 0) {
      what.push_back(option);
      continue;
    }
    if (++i == argc)
      return complain(option + " expects a value");
    if (option == "--hosts")
      hosts = argv[i];
    else if (option == "--agent")
      agent = argv[i];
    else if (option == "--rendezvous")
      rendezvous = argv[i];
    else if (option == "--grace")
      request.graceSeconds = std::stod(argv[i]);
    else if (option == "--start-limit")
      request.startLimitSeconds = std::stod(argv[i]);
    else
      return complain("unknown option " + option);
  }
  if (hosts.empty())
    return runRank(rendezvous, what);
  Result<std::vector<HostRanks>> parsed = parseHosts(hosts);
  Result<std::string> program = programPath();
  if (!parsed.ok() || !program.ok())
    return complain(parsed.ok() ? program.status().message() : parsed.status().message());
  if (!rendezvous.empty()) {
    Result<Rendezvous> place = parseRendezvous(rendezvous);
    if (!place.ok())
      return complain(place.status().message());
    request.rendezvous = *place;
  }
  request.hosts = *parsed;
  request.agent = splitWords(agent);
  request.starter = {*program, "--start-ranks"};
  request.command = what;
  request.command.insert(request.command.begin(), *program);
  char directory[4096] = "";
  request.directory = getcwd(directory, sizeof directory) ? directory : "/";
  request.environment = forwardedVariables(processEnvironment());
  const LaunchOutcome outcome = launchRanks(request);
  if (!outcome.message.empty())
    std::cerr << "probe: error: " << outcome.message << "\n";
  return outcome.exitStatus;
}
