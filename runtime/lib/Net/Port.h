//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The connections over which a job starts, of plain TCP: rank 0's port is open to strangers, and
// UCX 1.13 ends a process to whose listener somebody sends a few bytes that are not its own (a
// length of less than what follows fails an assertion in its tcp_sockcm). A frame is its length, of
// 4 bytes in the order of the machine, and its bytes.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_PORT_H
#define BRAID_NET_PORT_H

#include "Address.h"
#include "Wire.h"

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace braid::runtime::net {

/// Sends frames and collects those that come. For one thread.
class Port {
public:
  /// A connection; no other one has had its number.
  using Endpoint = uint64_t;
  struct Request {
    Endpoint endpoint;
    SocketAddress from;
  };
  /// Without bytes: what came was no frame, and nothing else is read from there.
  struct Arrival {
    Endpoint from;
    FrameBytes bytes;
  };
  struct Loss {
    Endpoint endpoint;
    std::string why;
  };

  Port() = default;
  Port(const Port &) = delete;
  Port &operator=(const Port &) = delete;
  ~Port();

  /// Listens at the address, and returns it with the port that it has. The code of an error is
  /// that of errno.
  int listen(const SocketAddress &address, SocketAddress &bound);
  /// Begins to connect.
  Status connect(const SocketAddress &address, Endpoint &endpoint);
  void send(Endpoint endpoint, const FrameBytes &bytes);
  /// Ends a connection. What was not sent is lost.
  void end(Endpoint endpoint);
  /// Returns once something has come, or when nowNs() reaches `until`.
  Status wait(int64_t until);
  /// What has come since the last call. A connection that is lost is to be ended, too.
  std::vector<Request> takeRequests() { return std::exchange(requests, {}); }
  std::vector<Arrival> takeArrivals() { return std::exchange(arrivals, {}); }
  std::vector<Loss> takeLosses() { return std::exchange(losses, {}); }
  /// Listens no longer.
  void stopListening();
  /// Ends all connections after what was sent has left, before nowNs() reaches `until`.
  void close(int64_t until);

private:
  struct Connection {
    int socket = -1;
    bool isConnecting = false, isLost = false;
    std::vector<std::byte> received; ///< a frame, or the first bytes of one
    std::deque<std::byte> unsent;
  };

  bool hasNews() const { return !requests.empty() || !arrivals.empty() || !losses.empty(); }
  Endpoint add(int socket, bool isConnecting);
  void lose(Endpoint endpoint, Connection &connection, const std::string &why);
  void acceptAll();
  void receive(Endpoint endpoint, Connection &connection);
  void takeFrames(Endpoint endpoint, Connection &connection);
  void sendMore(Endpoint endpoint, Connection &connection);
  /// Looks at all sockets until one is ready, or `until`.
  Status look(int64_t until);

  int listener = -1;
  int64_t acceptsFrom = 0; ///< there were too many open files before
  Endpoint next = 1;
  std::map<Endpoint, Connection> connections;
  std::vector<Request> requests;
  std::vector<Arrival> arrivals;
  std::vector<Loss> losses;
};

} // namespace braid::runtime::net
#endif // BRAID_NET_PORT_H
