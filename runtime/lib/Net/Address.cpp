//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Address.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Launch.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <unistd.h>

namespace braid::runtime::net {

std::string text(const SocketAddress &address) {
  char host[INET_ADDRSTRLEN] = "?";
  inet_ntop(AF_INET, &address.value.sin_addr, host, sizeof host);
  return std::string(host) + ":" + std::to_string(address.port());
}

Result<std::vector<SocketAddress>> resolve(const std::string &host, uint16_t port) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0) {
    hints.ai_family = AF_INET6;
    if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0)
      return Status::error("cannot resolve '", host, "': ", gai_strerror(error));
    freeaddrinfo(list);
    return Status::error("'", host, "' has IPv6 addresses only, and ranks meet over IPv4");
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo *entry = list; entry; entry = entry->ai_next) {
    SocketAddress &address = addresses.emplace_back();
    std::memcpy(&address.value, entry->ai_addr, sizeof address.value);
    address.setPort(port);
  }
  freeaddrinfo(list);
  return addresses;
}

Result<SocketAddress> ownAddress(const std::string &device) {
  ifaddrs *list = nullptr;
  if (getifaddrs(&list) != 0)
    return Status::error("cannot list this host's networks: ", std::strerror(errno));
  SocketAddress best;
  int bestRank = 0;
  for (const ifaddrs *entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP))
      continue;
    if (entry->ifa_addr->sa_family != AF_INET || (!device.empty() && device != entry->ifa_name))
      continue;
    const int rank = entry->ifa_flags & IFF_LOOPBACK ? 1 : 2;
    if (rank <= bestRank)
      continue;
    bestRank = rank;
    std::memcpy(&best.value, entry->ifa_addr, sizeof best.value);
  }
  freeifaddrs(list);
  if (bestRank == 0)
    return Status::error(device.empty()
                             ? "this host has no IPv4 address"
                             : "the network device '" + device + "' has no IPv4 address");
  best.setPort(0);
  return best;
}

constexpr char kFirstWord[] = "braid-rendezvous-1";

Status writeAddress(const std::string &path, const std::string &job, const SocketAddress &address) {
  const std::string content = std::string(kFirstWord) + " " + text(address) + " " + job + "\n";
  std::string fresh = path + ".XXXXXX";
  const int file = mkostemp(fresh.data(), O_CLOEXEC);
  const Status wrong = Status::error("cannot write the rendezvous '", path, "'");
  if (file < 0)
    return Status::error(wrong.message(), ": ", std::strerror(errno));
  const bool written =
      write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  int error = errno;
  close(file);
  if (written && std::rename(fresh.c_str(), path.c_str()) == 0)
    return {};
  error = written ? errno : error;
  unlink(fresh.c_str());
  return Status::error(wrong.message(), ": ", std::strerror(error));
}

Result<SocketAddress> readAddress(const std::string &path, const std::string &job) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return Status::error("cannot open '", path, "': ", std::strerror(errno));
  std::string content(1024, '\0');
  const ssize_t got = read(file, content.data(), content.size());
  close(file);
  content.resize(got < 0 ? 0 : static_cast<size_t>(got));
  const size_t first = content.find(' '),
               second = first == std::string::npos ? first : content.find(' ', first + 1);
  if (second == std::string::npos || content.back() != '\n' ||
      content.compare(0, first, kFirstWord) != 0)
    return Status::error("'", path, "' has no address of a rank 0");
  const std::string itsJob = content.substr(second + 1, content.size() - second - 2);
  if (itsJob != job)
    return Status::error("'", path, "' has the address of job '", itsJob, "', expects job '", job,
                         "'");
  ASSIGN_OR_RETURN(const Rendezvous place,
                   parseRendezvous("tcp://" + content.substr(first + 1, second - first - 1))
                       .within("'" + path + "'"));
  ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, resolve(place.host, place.port));
  return addresses.front();
}

} // namespace braid::runtime::net
