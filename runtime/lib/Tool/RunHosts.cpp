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

/// Finds out whether this process is one of several.
Status findOthers(RunOptions &options) {
  if (options.agent)
    return Status::error("--agent expects --hosts");
  if (options.rendezvous)
    RETURN_IF_ERROR(parseRendezvous(*options.rendezvous).within("--rendezvous").status());
  ASSIGN_OR_RETURN(const std::optional<LaunchInfo> info,
                   launchInfo(processEnvironment(), options.rendezvous.value_or("")));
  if (!info || info->size == 1)
    return {};
  if (options.target != "cpu")
    return Status::error(info->describe(), ": several processes expect --target cpu, got '",
                         options.target, "'");
  // What has not been chosen, and what processes have that do not share memory.
  if (options.world.transport != "threads" && options.world.transport != "ucx")
    return Status::error(info->describe(), ": several processes expect --transport ucx, got '",
                         options.world.transport, "'");
  options.world.transport = "ucx";
  options.launch = *info;
  return {};
}

} // namespace

std::optional<int> runOnHosts(int argc, const char *const *argv, RunOptions &options,
                              const RunHooks &hooks) {
  LaunchOutcome outcome;
  Status status;
  if (!options.hosts) {
    status = findOthers(options);
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
