//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RunHosts.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Launcher/Launcher.h"

#include <array>
#include <climits>
#include <cstdio>
#include <unistd.h>

namespace braid::runtime {

namespace {

/// Every process would run all ranks of the mesh, and none would know of the others.
Status refuseSeveral(const std::string &who) {
  return Status::error(who, ": this version runs all ranks of a model on one host, by one process "
                            "that is started once; --ranks N --transport shm makes it N processes");
}

/// The arguments without those that only the launcher takes.
std::vector<std::string> argumentsOfRanks(int argc, const char *const *argv) {
  std::vector<std::string> kept;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i], option = argument.substr(0, argument.find('='));
    const bool ours = option == "--hosts" || option == "--agent" || option == "--rendezvous";
    if (!ours)
      kept.push_back(argument);
    else if (option == argument)
      ++i; // its value
  }
  return kept;
}

Result<LaunchRequest> makeRequest(int argc, const char *const *argv, const RunOptions &options,
                                  const RunHooks &hooks) {
  LaunchRequest request;
  {
    auto hosts = parseHosts(*options.hosts);
    if (!hosts.ok())
      return hosts.status().within("--hosts");
    request.hosts = std::move(*hosts);
  }
  int64_t ranks = 0;
  for (const HostRanks &host : request.hosts)
    ranks += host.ranks;
  if (ranks > 1)
    return refuseSeveral("--hosts asks for " + std::to_string(ranks) + " processes");
  request.agent = splitWords(options.agent.value_or(kDefaultAgent));
  if (request.agent.empty())
    return Status::error("--agent expects a program, such as ssh");
  if (options.rendezvous) {
    ASSIGN_OR_RETURN(request.rendezvous,
                     parseRendezvous(*options.rendezvous).within("--rendezvous"));
  }
  ASSIGN_OR_RETURN(const std::string program, programPath());
  std::vector<std::string> words = splitWords(hooks.program); // "braid", "run"
  words[0] = program;
  request.starter = words;
  request.starter.emplace_back(kStartRanks);
  request.command = std::move(words);
  for (std::string &argument : argumentsOfRanks(argc, argv))
    request.command.push_back(std::move(argument));
  std::array<char, PATH_MAX> directory{};
  if (!getcwd(directory.data(), directory.size()))
    return Status::error("--hosts: cannot find the current directory");
  request.directory = directory.data();
  request.environment = forwardedVariables(processEnvironment());
  return request;
}

Status checkAlone(const RunOptions &options) {
  if (options.agent)
    return Status::error("--agent expects --hosts");
  if (options.rendezvous)
    RETURN_IF_ERROR(parseRendezvous(*options.rendezvous).within("--rendezvous").status());
  ASSIGN_OR_RETURN(const std::optional<LaunchInfo> info,
                   launchInfo(processEnvironment(), options.rendezvous.value_or("")));
  return info && info->size > 1 ? refuseSeveral(info->describe()) : Status();
}

} // namespace

std::optional<int> runOnHosts(int argc, const char *const *argv, const RunOptions &options,
                              const RunHooks &hooks) {
  LaunchOutcome outcome;
  Status status;
  if (!options.hosts) {
    status = checkAlone(options);
    if (status.ok())
      return std::nullopt;
  } else {
    Result<LaunchRequest> request = makeRequest(argc, argv, options, hooks);
    status = request.status();
    if (status.ok())
      outcome = launchRanks(*request);
  }
  if (!status.ok())
    outcome = {static_cast<int>(status.code()), status.message()};
  if (!outcome.message.empty())
    std::fprintf(stderr, "%s: error: %s\n", hooks.program.c_str(), outcome.message.c_str());
  return outcome.exitStatus;
}

} // namespace braid::runtime
