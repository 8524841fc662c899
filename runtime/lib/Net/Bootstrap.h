//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How the processes of a job find each other. Rank 0 listens at the rendezvous, the others connect
// by plain TCP (Port.h says why), over connections that end with the start; the links that they
// tell each other of are UCX's. A connection goes through
//
//     other rank                            rank 0
//     Introduction {version, nonce}  ---->
//                                    <----  Challenge {nonce}
//     Hello {what it runs, where}    ---->
//                                    <----  Table {where all ranks are}, when all have come
//     Ready                          ---->
//                                    <----  Go, when all are ready
//
// From the challenge on, frames carry an HMAC of the job's secret, both nonces and their number, so
// that none can be made, changed, or sent again by others. What a process without the secret sends
// ends its own connection only; what a process with the secret gets wrong ends the start, with one
// message on all ranks.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_BOOTSTRAP_H
#define BRAID_NET_BOOTSTRAP_H

#include "Networks.h"
#include "Secret.h"
#include "Wire.h"
#include "braid/Runtime/Launch.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace braid::runtime::net {

struct JobOptions {
  /// In place of a rendezvous: gives each process the bytes of all, in the order of ranks, as
  /// MPI_Allgather does.
  std::function<Status(const void *send, size_t bytes, void *receive)> allGather;
  Rendezvous rendezvous;
  std::string job; ///< the same on all ranks, and of no other job
  int64_t rank = 0, size = 1;
  std::string bundle; ///< SHA-256 of what all ranks run
  std::string mesh;
  std::string machine; ///< SHA-256 of the machine by whose times schedules are chosen; empty: none
  JobSecret secret;
  std::string device; ///< of a rendezvous in a file: the network device whose address is written
  double timeLimitSeconds = 60;        ///< for the start as a whole
  double helloLimitSeconds = 5;        ///< for a process that has connected to say hello
  uint32_t version = kProtocolVersion; ///< another one in tests only
};

/// What a launcher says of the job; an error for a secret that cannot be used.
Result<JobOptions> jobOptionsOf(const LaunchInfo &launch);

/// What a process knows after the start.
struct Job {
  int64_t rank = 0;
  std::string key;             ///< for control (Control.h); of this start only
  std::vector<Member> members; ///< by rank
};

/// The number of each rank's host, from 0 in the order in which the ranks name them.
std::vector<int64_t> hostNumbers(const std::vector<Member> &members);

/// Meets the other processes. `addresses` are those of this process's links, each of which will
/// connect to the one at the same place of the others' lists. Returns within the limit and 2 s.
Result<Job> startJob(const JobOptions &options, std::vector<std::string> addresses);

} // namespace braid::runtime::net
#endif // BRAID_NET_BOOTSTRAP_H
