//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Port.h"

#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

namespace braid::runtime::net {

/// Frames that wait to be looked at, of all connections together. Until they are, no more are read.
constexpr size_t kMaxWaiting = 4096;
constexpr size_t kLengthBytes = sizeof(uint32_t);
/// How long a listener waits after it had no file for another connection.
constexpr int64_t kNoFilesNs = 50000000;

Port::~Port() { close(nowNs()); }

Port::Endpoint Port::add(int socket, bool isConnecting) {
  const int on = 1;
  (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  Connection connection;
  connection.socket = socket;
  connection.isConnecting = isConnecting;
  connections.emplace(next, std::move(connection));
  return next++;
}

int Port::listen(const SocketAddress &address, SocketAddress &bound) {
  listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0)
    return errno;
  // Connections that have ended are no reason to refuse the port; another listener is.
  const int on = 1;
  (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  bound = address;
  socklen_t length = SocketAddress::length;
  if (bind(listener, address.get(), SocketAddress::length) == 0 &&
      ::listen(listener, SOMAXCONN) == 0 &&
      getsockname(listener, reinterpret_cast<sockaddr *>(&bound.value), &length) == 0)
    return 0;
  const int error = errno;
  stopListening();
  return error;
}

void Port::stopListening() {
  if (listener >= 0)
    ::close(listener);
  listener = -1;
}

Status Port::connect(const SocketAddress &address, Endpoint &endpoint) {
  const int own = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (own < 0)
    return Status::error("cannot make a socket: ", std::strerror(errno), Code::rankFailed);
  const bool isConnecting = ::connect(own, address.get(), SocketAddress::length) != 0;
  const int error = errno;
  endpoint = add(own, isConnecting);
  if (isConnecting && error != EINPROGRESS)
    lose(endpoint, connections.at(endpoint), std::strerror(error));
  return {};
}

void Port::lose(Endpoint endpoint, Connection &connection, const std::string &why) {
  if (std::exchange(connection.isLost, true))
    return;
  connection.unsent.clear();
  losses.push_back({endpoint, why});
}

void Port::send(Endpoint endpoint, const FrameBytes &bytes) {
  auto found = connections.find(endpoint);
  if (found == connections.end() || found->second.isLost)
    return;
  const auto length = static_cast<uint32_t>(bytes.size());
  const auto *prefix = reinterpret_cast<const std::byte *>(&length);
  std::deque<std::byte> &unsent = found->second.unsent;
  unsent.insert(unsent.end(), prefix, prefix + kLengthBytes);
  unsent.insert(unsent.end(), bytes.begin(), bytes.end());
  sendMore(endpoint, found->second);
}

void Port::sendMore(Endpoint endpoint, Connection &connection) {
  while (!connection.isConnecting && !connection.isLost && !connection.unsent.empty()) {
    std::byte part[4096];
    const size_t count = std::min(sizeof part, connection.unsent.size());
    std::copy_n(connection.unsent.begin(), count, part);
    const ssize_t sent = ::send(connection.socket, part, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    // What the peer has sent before it has ended the connection is read first.
    if (sent < 0) {
      const std::string why = std::strerror(errno);
      connection.unsent.clear();
      receive(endpoint, connection);
      return lose(endpoint, connection, why);
    }
    connection.unsent.erase(connection.unsent.begin(), connection.unsent.begin() + sent);
  }
}

void Port::takeFrames(Endpoint endpoint, Connection &connection) {
  std::vector<std::byte> &received = connection.received;
  while (received.size() >= kLengthBytes) {
    uint32_t length = 0;
    std::memcpy(&length, received.data(), kLengthBytes);
    if (length == 0 || length > kMaxFrameBytes) {
      arrivals.push_back({endpoint, {}});
      return lose(endpoint, connection, "it sent bytes that are no frame");
    }
    if (received.size() < kLengthBytes + length)
      return;
    const auto begin = received.begin() + kLengthBytes;
    arrivals.push_back({endpoint, FrameBytes(begin, begin + length)});
    received.erase(received.begin(), begin + length);
  }
}

void Port::receive(Endpoint endpoint, Connection &connection) {
  while (!connection.isLost && arrivals.size() < kMaxWaiting) {
    std::byte part[4096];
    const ssize_t count = recv(connection.socket, part, sizeof part, 0);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    if (count <= 0)
      return lose(endpoint, connection,
                  count == 0 ? "it has ended the connection" : std::strerror(errno));
    // As long as what has come, whatever a length says.
    connection.received.insert(connection.received.end(), part, part + count);
    takeFrames(endpoint, connection);
  }
}

void Port::acceptAll() {
  for (;;) {
    SocketAddress from;
    socklen_t length = SocketAddress::length;
    const int own = accept4(listener, reinterpret_cast<sockaddr *>(&from.value), &length,
                            SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (own >= 0)
      requests.push_back({add(own, false), from});
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      acceptsFrom = nowNs() + kNoFilesNs;
    // One that has ended before it was accepted is no end of the others.
    if (own < 0 && errno != EINTR && errno != ECONNABORTED)
      return;
  }
}

Status Port::look(int64_t until) {
  std::vector<pollfd> sockets;
  std::vector<Endpoint> endpoints;
  for (const auto &[endpoint, connection] : connections) {
    if (connection.isLost)
      continue;
    const bool mayWrite = connection.isConnecting || !connection.unsent.empty();
    sockets.push_back(
        {connection.socket, static_cast<short>(mayWrite ? POLLIN | POLLOUT : POLLIN), 0});
    endpoints.push_back(endpoint);
  }
  int64_t end = until;
  if (listener >= 0 && nowNs() >= acceptsFrom)
    sockets.push_back({listener, POLLIN, 0});
  else if (listener >= 0)
    end = std::min(end, acceptsFrom);
  const int64_t ns = std::max<int64_t>(0, end - nowNs());
  const timespec limit{static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
  if (ppoll(sockets.data(), sockets.size(), &limit, nullptr) < 0) {
    if (errno == EINTR)
      return {};
    return Status::error("cannot wait for connections: ", std::strerror(errno), Code::rankFailed);
  }
  for (size_t i = 0; i < endpoints.size(); ++i) {
    Connection &connection = connections.at(endpoints[i]);
    const short events = sockets[i].revents;
    if (events != 0 && connection.isConnecting) {
      int error = 0;
      socklen_t length = sizeof error;
      (void)getsockopt(connection.socket, SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0) {
        lose(endpoints[i], connection, std::strerror(error));
        continue;
      }
      connection.isConnecting = false;
    }
    if ((events & (POLLIN | POLLERR | POLLHUP)) != 0)
      receive(endpoints[i], connection);
    if ((events & POLLOUT) != 0)
      sendMore(endpoints[i], connection);
  }
  if (sockets.size() > endpoints.size() && sockets.back().revents != 0)
    acceptAll();
  return {};
}

Status Port::wait(int64_t until) {
  do
    RETURN_IF_ERROR(look(hasNews() ? 0 : until));
  while (!hasNews() && nowNs() < until);
  return {};
}

void Port::end(Endpoint endpoint) {
  auto found = connections.find(endpoint);
  if (found == connections.end())
    return;
  ::close(found->second.socket);
  connections.erase(found);
}

void Port::close(int64_t until) {
  stopListening();
  auto hasMore = [](const auto &one) { return !one.second.unsent.empty(); };
  while (nowNs() < until && std::any_of(connections.begin(), connections.end(), hasMore) &&
         look(until).ok()) {
  }
  while (!connections.empty())
    end(connections.begin()->first);
}

} // namespace braid::runtime::net
