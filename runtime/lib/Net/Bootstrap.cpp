//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Bootstrap.h"
#include "Host.h"
#include "Starters.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
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
  size_t bytes = options.job.size() + options.bundle.size() + options.mesh.size();
  for (const std::string &address : addresses)
    bytes += address.size();
  if (addresses.size() > kMaxAddresses || bytes > kMaxFrameBytes / 2)
    return Status::error("rank ", options.rank, " has ", addresses.size(), " links and says ",
                         bytes, " bytes of itself, at most ", kMaxAddresses, " and ",
                         kMaxFrameBytes / 2, " are expected");
  return {};
}

Result<Job> startJob(const std::shared_ptr<const UcxContext> &networks, const JobOptions &options,
                     std::vector<std::string> addresses) {
  RETURN_IF_ERROR(check(options, addresses));
  Hello own;
  own.job = options.job;
  own.rank = options.rank;
  own.size = options.size;
  own.bundle = options.bundle;
  own.mesh = options.mesh;
  own.hostId = hostId();
  own.host = hostName();
  own.process = getpid();
  own.addresses = std::move(addresses);
  return options.rank == 0 ? serveStart(networks, options, std::move(own))
                           : joinStart(networks, options, std::move(own));
}

} // namespace braid::runtime::net
