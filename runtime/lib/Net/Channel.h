//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The connections over which a job starts: endpoints that send frames, and what makes frames
// genuine.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_CHANNEL_H
#define BRAID_NET_CHANNEL_H

#include "Secret.h"
#include "Wire.h"
#include "Worker.h"

#include <memory>
#include <utility>
#include <vector>

namespace braid::runtime::net {

/// Seals and opens the frames of one connection once both nonces are known.
class Channel {
public:
  Channel(const JobSecret &secret, bool isRankZero) : secret(secret), isRankZero(isRankZero) {}
  Block clientNonce{}, serverNonce{};

  /// The frame and its HMAC.
  FrameBytes seal(const Frame &frame);
  /// Whether the HMAC of the next frame that comes is right, for another nonce of rank 0 as well.
  bool isGenuine(const std::byte *data, const Sealed &sealed) const {
    return isGenuine(data, sealed, serverNonce);
  }
  bool isGenuine(const std::byte *data, const Sealed &sealed, const Block &challenge) const;
  /// Counts a frame that came.
  void accept() { ++received; }

private:
  Block mac(const void *data, size_t bytes, bool fromRankZero, uint64_t number,
            const Block &challenge) const;
  const JobSecret &secret;
  bool isRankZero;
  uint64_t sent = 0, received = 0;
};

/// A worker that sends frames and collects those that come.
class Port {
public:
  struct Arrival {
    ucp_ep_h from;
    FrameBytes bytes;
  };
  struct Loss {
    ucp_ep_h endpoint;
    ucs_status_t status;
  };
  static Result<std::unique_ptr<Port>> create(std::shared_ptr<const UcxContext> networks);
  Port(const Port &) = delete;
  Port &operator=(const Port &) = delete;
  ~Port();

  const Ucx &ucx() const { return worker->ucx(); }
  ucp_worker_h handle() const { return worker->handle(); }
  void note() { worker->note(); }
  Status connect(const ucp_ep_params_t &params, ucp_ep_h &endpoint);
  void send(ucp_ep_h endpoint, FrameBytes bytes);
  /// Ends a connection.
  void end(ucp_ep_h endpoint);
  Status wait(int64_t until) { return worker->wait(until); }
  /// What has come since the last call. A connection that is lost is to be ended, too.
  std::vector<Arrival> takeArrivals() { return std::exchange(arrivals, {}); }
  std::vector<Loss> takeLosses() { return std::exchange(losses, {}); }
  /// Ends all connections after what was sent has left, before nowNs() reaches `until`.
  void close(int64_t until);

private:
  explicit Port(std::unique_ptr<Worker> worker) : worker(std::move(worker)) {}
  static ucs_status_t onFrame(void *argument, const void *header, size_t headerBytes, void *data,
                              size_t bytes, const ucp_am_recv_param_t *param);
  static void onLoss(void *argument, ucp_ep_h endpoint, ucs_status_t status);
  static void onSent(void *request, ucs_status_t status, void *argument);

  std::unique_ptr<Worker> worker;
  std::vector<ucp_ep_h> endpoints;
  std::vector<Arrival> arrivals;
  std::vector<Loss> losses;
};

} // namespace braid::runtime::net
#endif // BRAID_NET_CHANNEL_H
