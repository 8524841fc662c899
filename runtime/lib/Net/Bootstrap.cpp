//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Bootstrap.h"
#include "Host.h"
#include "Starters.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <map>
#include <unistd.h>

namespace braid::runtime::net {

constexpr int64_t kMaxRanks = 1 << 16;
constexpr size_t kMaxJobBytes = 256, kMaxAddresses = 64;

std::string sessionKey(const JobSecret &secret, const Block &session) {
  return keyOf(Mac(secret.text(), "braid control").add(session).value());
}

static Status check(const JobOptions &options, const std::vector<std::string> &addresses) {
  if (options.size < 1 || options.size > kMaxRanks)
    return Status::error("a job expects 1 to ", kMaxRanks, " ranks, got ", options.size);
  if (options.rank < 0 || options.rank >= options.size)
    return Status::error("rank ", options.rank, " is outside of 0 to ", options.size - 1);
  if (options.job.empty() || options.job.size() > kMaxJobBytes ||
      std::any_of(options.job.begin(), options.job.end(),
                  [](char c) { return c <= ' ' || c == 127; }))
    return Status::error("the name of a job expects 1 to ", kMaxJobBytes,
                         " bytes without spaces, got '", options.job, "'");
  size_t bytes =
      options.job.size() + options.bundle.size() + options.mesh.size() + options.machine.size();
  for (const std::string &address : addresses)
    bytes += address.size();
  if (addresses.size() > kMaxAddresses || bytes > kMaxFrameBytes / 2)
    return Status::error("rank ", options.rank, " has ", addresses.size(), " links and says ",
                         bytes, " bytes of itself, at most ", kMaxAddresses, " and ",
                         kMaxFrameBytes / 2, " are expected");
  return {};
}

std::string describe(const Hello &hello) {
  return "rank " + std::to_string(hello.rank) + " (host '" + hello.host + "', process " +
         std::to_string(hello.process) + ")";
}

Status compare(const Hello &hello, const Hello &rankZero) {
  auto differs = [&](const std::string &what, const std::string &its, const std::string &ours) {
    return Status::error(describe(hello), " has ", what, " ", its, ", rank 0 has ", ours,
                         Code::rankFailed);
  };
  if (hello.size != rankZero.size)
    return Status::error(describe(hello), " is one of ", hello.size, " ranks, rank 0 of ",
                         rankZero.size, Code::rankFailed);
  if (hello.rank < 0 || hello.rank >= rankZero.size)
    return Status::error(describe(hello), " is outside of the ranks 0 to ", rankZero.size - 1,
                         Code::rankFailed);
  if (hello.bundle != rankZero.bundle)
    return differs("the bundle with SHA-256", hello.bundle, rankZero.bundle);
  if (hello.mesh != rankZero.mesh)
    return differs("mesh", hello.mesh, rankZero.mesh);
  if (hello.machine != rankZero.machine) {
    auto its = [](const std::string &machine) {
      return machine.empty() ? std::string("no machine file")
                             : "the machine file with SHA-256 " + machine;
    };
    return Status::error(describe(hello), " chooses collectives by ", its(hello.machine),
                         ", rank 0 by ", its(rankZero.machine), ": expects one file on all hosts",
                         Code::rankFailed);
  }
  if (hello.addresses.size() != rankZero.addresses.size())
    return differs("links:", std::to_string(hello.addresses.size()),
                   std::to_string(rankZero.addresses.size()));
  return {};
}

Status rankTwice(const Hello &first, const Hello &second) {
  return Status::error("two processes are rank ", second.rank, ": process ", first.process,
                       " of host '", first.host, "' and process ", second.process, " of host '",
                       second.host, "'", Code::rankFailed);
}

static Hello helloOf(const JobOptions &options, std::vector<std::string> addresses) {
  Hello own;
  own.job = options.job;
  own.rank = options.rank;
  own.size = options.size;
  own.bundle = options.bundle;
  own.mesh = options.mesh;
  own.machine = options.machine;
  own.hostId = hostId();
  own.host = hostName();
  own.numaNode = numaNode();
  own.process = getpid();
  own.addresses = std::move(addresses);
  return own;
}

Result<JobOptions> jobOptionsOf(const LaunchInfo &launch) {
  JobOptions options;
  if (launch.rendezvous)
    options.rendezvous = *launch.rendezvous;
  // A launcher that has no name for it runs one job here.
  options.job = launch.jobId.empty() ? "unnamed" : launch.jobId;
  options.rank = launch.rank;
  options.size = launch.size;
  ASSIGN_OR_RETURN(options.secret, launch.secretFile.empty()
                                       ? JobSecret::fromText(launch.secret)
                                       : JobSecret::fromFile(launch.secretFile));
  return options;
}

std::vector<int64_t> hostNumbers(const std::vector<Member> &members) {
  std::map<std::string, int64_t> numbers;
  std::vector<int64_t> hosts;
  for (const Member &member : members)
    hosts.push_back(
        numbers.emplace(member.hostId, static_cast<int64_t>(numbers.size())).first->second);
  return hosts;
}

Result<Job> startJob(const JobOptions &options, std::vector<std::string> addresses) {
  RETURN_IF_ERROR(check(options, addresses));
  Hello own = helloOf(options, std::move(addresses));
  if (options.allGather)
    return gatherStart(options, std::move(own));
  return options.rank == 0 ? serveStart(options, std::move(own))
                           : joinStart(options, std::move(own));
}

} // namespace braid::runtime::net
