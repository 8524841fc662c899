//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Numbers.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"
#include "braid/Runtime/Launch.h"

#include <array>
#include <unistd.h>

namespace braid::runtime {

namespace {

/// Reads variables; an empty one counts as not set, as launchers and shells leave such behind.
class Variables {
public:
  explicit Variables(const Environment &environment) : environment(environment) {}

  bool has(const std::string &variable) const { return get(variable) != nullptr; }
  const std::string *get(const std::string &variable) const {
    auto found = environment.find(variable);
    return found == environment.end() || found->second.empty() ? nullptr : &found->second;
  }
  std::string text(const std::string &variable) const {
    const std::string *value = get(variable);
    return value ? *value : "";
  }
  /// A variable that exists.
  Result<int64_t> number(const std::string &variable, int64_t least, int64_t most) const {
    const std::optional<int64_t> value = wholeNumber(text(variable), most);
    if (!value || *value < least)
      return Status::error("variable ", variable, " expects a whole number from ", least, " to ",
                           most, ", got ", inQuotes(text(variable)));
    return *value;
  }

private:
  const Environment &environment;
};

/// The names that a launcher gives to the four numbers.
struct Names {
  Launcher launcher;
  const char *rank, *size, *localRank, *localSize;
};

constexpr std::array<Names, 4> kNames{
    {{Launcher::braid, "BRAID_RANK", "BRAID_SIZE", "BRAID_LOCAL_RANK", "BRAID_LOCAL_SIZE"},
     {Launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
     {Launcher::openMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
      "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
     {Launcher::pmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}}};

/// srun counts the tasks of its step; SLURM_NTASKS may be the allocation's.
Names slurmNames(const Variables &variables) {
  return {Launcher::slurm, "SLURM_PROCID",
          variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
          "SLURM_LOCALID", nullptr};
}

/// Whether this process is a task of a step. A batch script and an interactive shell have the
/// task's variables too, but are not one of several ranks.
bool isSlurmTask(const Variables &variables) {
  if (!variables.has("SLURM_PROCID") || !variables.has("SLURM_STEP_NODELIST"))
    return false;
  constexpr int64_t kFirstReservedStep = 0xfffffff0; // batch, extern and interactive steps
  const std::optional<int64_t> step = wholeNumber(variables.text("SLURM_STEP_ID"), INT64_MAX);
  return !step || *step < kFirstReservedStep;
}

Result<std::optional<Names>> findLauncher(const Variables &variables) {
  for (const Names &names : kNames) {
    const bool rank = variables.has(names.rank), size = variables.has(names.size);
    if (rank != size)
      return Status::error("variable ", rank ? names.rank : names.size, " is set without ",
                           rank ? names.size : names.rank, ", though ", name(names.launcher),
                           " sets both");
    if (rank)
      return std::optional<Names>(names);
  }
  if (isSlurmTask(variables)) {
    const Names names = slurmNames(variables);
    if (!variables.has(names.size))
      return Status::error("variable SLURM_PROCID is set without SLURM_NTASKS, though Slurm sets "
                           "both in a step");
    return std::optional<Names>(names);
  }
  if (variables.has("PMIX_RANK"))
    return Status::error("variable PMIX_RANK is set, but neither Open MPI's nor Slurm's variables "
                         "say how many ranks there are: set BRAID_RANK and BRAID_SIZE");
  return std::optional<Names>();
}

Status readNumbers(const Variables &variables, const Names &names, LaunchInfo &info) {
  info.launcher = names.launcher;
  ASSIGN_OR_RETURN(info.size, variables.number(names.size, 1, kMaxLaunchedRanks));
  ASSIGN_OR_RETURN(info.rank, variables.number(names.rank, 0, kMaxLaunchedRanks));
  if (info.rank >= info.size)
    return Status::error("variables ", names.rank, "=", info.rank, " and ", names.size, "=",
                         info.size, " contradict each other: ranks count from 0");
  if (names.localSize && variables.has(names.localSize)) {
    ASSIGN_OR_RETURN(info.localSize, variables.number(names.localSize, 1, kMaxLaunchedRanks));
    if (*info.localSize > info.size)
      return Status::error("variables ", names.localSize, "=", *info.localSize, " and ", names.size,
                           "=", info.size,
                           " contradict each other: a host has no more ranks than the job");
  }
  if (names.localRank && variables.has(names.localRank)) {
    ASSIGN_OR_RETURN(info.localRank, variables.number(names.localRank, 0, kMaxLaunchedRanks));
    if (*info.localRank > info.rank)
      return Status::error("variables ", names.localRank, "=", *info.localRank, " and ", names.rank,
                           "=", info.rank,
                           " contradict each other: a rank's number on its host is at most its "
                           "number in the job");
    if (info.localSize && *info.localRank >= *info.localSize)
      return Status::error("variables ", names.localRank, "=", *info.localRank, " and ",
                           names.localSize, "=", *info.localSize,
                           " contradict each other: ranks count from 0");
  }
  // A PMIx server's number of the process is the rank under Open MPI and under srun.
  if ((info.launcher == Launcher::openMpi || info.launcher == Launcher::slurm) &&
      variables.has("PMIX_RANK")) {
    ASSIGN_OR_RETURN(const int64_t rank, variables.number("PMIX_RANK", 0, UINT32_MAX));
    if (rank != info.rank)
      return Status::error("variables PMIX_RANK=", rank, " and ", names.rank, "=", info.rank,
                           " contradict each other");
  }
  return {};
}

/// Whether Slurm itself gave the ranks, so that rank 0 is on the first host of its step.
bool ranksAreSlurms(const Variables &variables, const LaunchInfo &info) {
  if (info.launcher == Launcher::slurm)
    return true;
  if (info.launcher != Launcher::pmi || !isSlurmTask(variables))
    return false;
  const Names names = slurmNames(variables);
  return wholeNumber(variables.text(names.rank), INT64_MAX) == info.rank &&
         wholeNumber(variables.text(names.size), INT64_MAX) == info.size;
}

std::string jobIdOf(const Variables &variables, const LaunchInfo &info) {
  if (ranksAreSlurms(variables, info))
    return variables.text("SLURM_JOB_ID") + "." + variables.text("SLURM_STEP_ID");
  switch (info.launcher) {
  case Launcher::braid:
    return variables.text("BRAID_JOB");
  case Launcher::torchrun:
    return variables.text("TORCHELASTIC_RUN_ID");
  case Launcher::openMpi:
    return variables.has("PMIX_NAMESPACE") ? variables.text("PMIX_NAMESPACE")
                                           : variables.text("OMPI_MCA_ess_base_jobid");
  default:
    return variables.text("PMI_JOBID");
  }
}

/// FNV-1a, so that all versions and hosts compute the same.
uint16_t portOfJob(const std::string &jobId) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : jobId)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  // Linux gives clients ports from 32768 to 60999.
  constexpr uint64_t kFirst = 61440, kCount = 4096;
  return static_cast<uint16_t>(kFirst + hash % kCount);
}

Result<uint16_t> portOf(const Variables &variables, const LaunchInfo &info) {
  if (variables.has("BRAID_PORT")) {
    ASSIGN_OR_RETURN(const int64_t port, variables.number("BRAID_PORT", 1, 65535));
    return static_cast<uint16_t>(port);
  }
  if (variables.has("MASTER_PORT")) {
    ASSIGN_OR_RETURN(const int64_t port, variables.number("MASTER_PORT", 1, 65535));
    if (port == 65535)
      return Status::error("variable MASTER_PORT=65535 has no port after it: set BRAID_PORT");
    return static_cast<uint16_t>(port + 1);
  }
  if (info.jobId.empty())
    return Status::error(info.describe(), ": ", name(info.launcher),
                         " does not say which port rank 0 listens on: set BRAID_PORT");
  return portOfJob(info.jobId);
}

Result<Rendezvous> rendezvousOf(const Variables &variables, const LaunchInfo &info,
                                const std::string &given) {
  if (!given.empty())
    return parseRendezvous(given);
  if (const std::string *text = variables.get("BRAID_RENDEZVOUS"))
    return parseRendezvous(*text).within("variable BRAID_RENDEZVOUS");
  Rendezvous found;
  if (const std::string *address = variables.get("MASTER_ADDR")) {
    found.host = *address;
    if (found.host.size() > 2 && found.host.front() == '[' && found.host.back() == ']')
      found.host = found.host.substr(1, found.host.size() - 2);
    if (!isHostName(found.host))
      return Status::error("variable MASTER_ADDR expects a host's name or address, got ",
                           inQuotes(*address));
  } else if (ranksAreSlurms(variables, info)) {
    auto hosts = expandNodeList(variables.text("SLURM_STEP_NODELIST"));
    if (!hosts.ok())
      return hosts.status().within("variable SLURM_STEP_NODELIST");
    found.host = hosts->front();
  } else if (info.localSize == info.size) {
    found.host = "127.0.0.1";
  } else {
    return Status::error(info.describe(), ": ", name(info.launcher),
                         " does not say where rank 0 is: give --rendezvous tcp://HOST:PORT or "
                         "file:PATH, or set BRAID_RENDEZVOUS or MASTER_ADDR");
  }
  ASSIGN_OR_RETURN(found.port, portOf(variables, info));
  return found;
}

} // namespace

const char *name(Launcher launcher) {
  switch (launcher) {
  case Launcher::braid:
    return "Braid";
  case Launcher::torchrun:
    return "torchrun";
  case Launcher::openMpi:
    return "Open MPI";
  case Launcher::pmi:
    return "PMI";
  case Launcher::slurm:
    return "Slurm";
  }
  return "an unknown launcher";
}

std::string LaunchInfo::describe() const {
  return "rank " + std::to_string(rank) + " of " + std::to_string(size) + ", started by " +
         name(launcher);
}

Result<std::optional<LaunchInfo>> launchInfo(const Environment &environment,
                                             const std::string &rendezvous) {
  const Variables variables(environment);
  ASSIGN_OR_RETURN(const std::optional<Names> names, findLauncher(variables));
  if (!names) {
    if (rendezvous.empty())
      return std::optional<LaunchInfo>();
    RETURN_IF_ERROR(parseRendezvous(rendezvous).status());
    return Status::error("a rendezvous is given, but nothing says which rank this process is: "
                         "start it by a launcher, or set BRAID_RANK and BRAID_SIZE");
  }
  LaunchInfo info;
  RETURN_IF_ERROR(readNumbers(variables, *names, info));
  info.jobId = jobIdOf(variables, info);
  info.secret = variables.text("BRAID_JOB_SECRET");
  info.secretFile = variables.text("BRAID_JOB_SECRET_FILE");
  if (!info.secret.empty() && !info.secretFile.empty())
    return Status::error("variables BRAID_JOB_SECRET and BRAID_JOB_SECRET_FILE are both set, "
                         "expects one of them");
  // One rank meets nobody; what it is given must still be right.
  if (info.size > 1 || !rendezvous.empty() || variables.has("BRAID_RENDEZVOUS")) {
    ASSIGN_OR_RETURN(info.rendezvous, rendezvousOf(variables, info, rendezvous));
  }
  return std::optional<LaunchInfo>(std::move(info));
}

Environment processEnvironment() {
  Environment found;
  for (char **entry = environ; entry && *entry; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos)
      found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

} // namespace braid::runtime
