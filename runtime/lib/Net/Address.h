//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Addresses of sockets: of a name, of this host, and in the file by which processes that share a
// file system find rank 0 (Launch.h: Rendezvous).
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_ADDRESS_H
#define BRAID_NET_ADDRESS_H

#include "braid/Base/Status.h"

#include <arpa/inet.h>
#include <cstdint>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace braid::runtime::net {

/// Of IPv4, as links of UCX are where nothing else is set.
struct SocketAddress {
  sockaddr_in value{};
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&value); }
  static constexpr socklen_t length = sizeof(sockaddr_in);
  void setPort(uint16_t port) { value.sin_port = htons(port); }
  uint16_t port() const { return ntohs(value.sin_port); }
};
/// "10.0.0.1:4000"
std::string text(const SocketAddress &address);

/// The addresses of a host's name, best first.
Result<std::vector<SocketAddress>> resolve(const std::string &host, uint16_t port);
/// An address of this host that others can connect to; of this network device, unless `device` is
/// empty. That of the loopback device where there is no other. The port is 0.
Result<SocketAddress> ownAddress(const std::string &device);

/// Writes the address of rank 0 in one step, for its job only, readable by the user only.
Status writeAddress(const std::string &path, const std::string &job, const SocketAddress &address);
/// The address in the file, or why there is none yet: no file, or one of another job.
Result<SocketAddress> readAddress(const std::string &path, const std::string &job);

} // namespace braid::runtime::net
#endif // BRAID_NET_ADDRESS_H
