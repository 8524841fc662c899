//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Jobs of processes on the loopback device.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_NETTESTING_H
#define BRAID_TEST_UNIT_RUNTIME_NETTESTING_H

#include "runtime/lib/Net/Address.h"
#include "runtime/lib/Net/Bootstrap.h"
#include "runtime/lib/Net/Link.h"
#include "runtime/lib/Net/Networks.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace braid::runtime::net::testing {

/// Whether no other process of a test has the port. It is this process's until its end: it has a
/// socket with such a name, which ends with it.
inline bool claimPort(uint16_t port) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  // The first byte stays 0: the name is in no file system.
  const int length = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1,
                                   "braid-test-port-%u", static_cast<unsigned>(port));
  const int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0)
    std::abort();
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  if (bind(file, reinterpret_cast<const sockaddr *>(&name), size) == 0)
    return true;
  close(file);
  return false;
}

/// A port that nobody uses for now, and no other test, below those that a system gives to clients.
inline uint16_t freePort() {
  std::random_device random;
  for (;;) {
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    SocketAddress address;
    address.value.sin_family = AF_INET;
    address.value.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.value.sin_port = htons(static_cast<uint16_t>(10000 + random() % 20000));
    if (file < 0)
      std::abort();
    const bool isFree = bind(file, address.get(), address.length) == 0;
    close(file);
    if (isFree && claimPort(address.port()))
      return address.port();
  }
}

/// Returns when so many connections to this port of this host are established.
inline void awaitConnections(uint16_t port, size_t count) {
  char wanted[16];
  std::snprintf(wanted, sizeof wanted, ":%04X", port);
  for (;;) {
    size_t found = 0;
    std::ifstream table("/proc/net/tcp");
    for (std::string line; std::getline(table, line);) {
      std::istringstream words(line);
      std::string number, own, other, state;
      words >> number >> own >> other >> state;
      found += state == "01" && own.size() > 5 && own.substr(own.size() - 5) == wanted ? 1 : 0;
    }
    if (found >= count)
      return;
    usleep(1000);
  }
}

inline Rendezvous onLoopback(uint16_t port) {
  Rendezvous rendezvous;
  rendezvous.host = "127.0.0.1";
  rendezvous.port = port;
  return rendezvous;
}

inline JobSecret secretOf(const std::string &text) { return *JobSecret::fromText(text); }

inline JobOptions optionsOf(int64_t rank, int64_t size, Rendezvous rendezvous) {
  JobOptions options;
  options.rendezvous = std::move(rendezvous);
  options.job = "job7";
  options.rank = rank;
  options.size = size;
  options.bundle = "ab12";
  options.mesh = "tp=2";
  options.secret = secretOf("a secret of the job");
  options.timeLimitSeconds = 20;
  return options;
}

/// Starts a job of processes with this link each, and connects the link to all others.
inline Result<Job> joinJob(const std::shared_ptr<const UcxContext> &networks,
                           const JobOptions &options, Link &link) {
  Result<std::string> address = link.address();
  if (!address.ok())
    return address.status();
  Result<Job> job = startJob(options, {*address});
  for (int64_t peer = 0; job.ok() && peer < options.size; ++peer) {
    const Member &member = job->members[static_cast<size_t>(peer)];
    if (peer != options.rank)
      link.connectLater(peer, member.addresses.front(), member.host);
  }
  return job;
}

} // namespace braid::runtime::net::testing
#endif // BRAID_TEST_UNIT_RUNTIME_NETTESTING_H
