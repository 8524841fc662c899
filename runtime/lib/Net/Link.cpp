//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Link.h"
#include "Worker.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace braid::runtime::net {

/// Numbers of active messages.
enum : unsigned { kData = 1, kControl = 2 };

/// A message that came before its receive.
struct Link::Early {
  uint64_t tag;
  size_t bytes;
  void *data;        ///< that UCX keeps for us; null where `copy` has it
  bool isRendezvous; ///< `data` stands for bytes that are still at the sender
  std::vector<std::byte> copy;
};

struct Link::Peer {
  Link *link = nullptr;
  int64_t rank = -1;
  std::string host;
  ucp_ep_h endpoint = nullptr;
  std::string address;              ///< to connect to with the first message
  Status state;                     ///< why the peer is lost
  std::vector<Transfer *> receives; ///< posted, in order
  std::deque<Early> early;
  size_t earlyBytes = 0;        ///< that are in memory
  std::vector<std::byte> frame; ///< of control, on its way
  bool frameMoves = false;
};

/// What UCX calls while the worker makes progress.
struct Link::Callbacks {
  static ucs_status_t onData(void *argument, const void *header, size_t headerBytes, void *data,
                             size_t bytes, const ucp_am_recv_param_t *param) {
    auto &link = *static_cast<Link *>(argument);
    Transfer::Header sent{};
    if (headerBytes != sizeof sent)
      return UCS_OK;
    std::memcpy(&sent, header, sizeof sent);
    if (sent.sender < 0 || sent.sender >= link.ranks() || sent.bytes != bytes)
      return UCS_OK;
    Peer &peer = link.at(sent.sender);
    if (!peer.state.ok())
      return UCS_OK;
    link.worker->note();
    const bool isRendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    const bool mayKeep = isRendezvous || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
    auto found =
        std::find_if(peer.receives.begin(), peer.receives.end(),
                     [&](const Transfer *receive) { return receive->header.tag == sent.tag; });
    if (found != peer.receives.end()) {
      Transfer &receive = **found;
      peer.receives.erase(found);
      return link.take(receive, bytes, data, isRendezvous) ? UCS_INPROGRESS : UCS_OK;
    }
    const size_t kept = isRendezvous ? 0 : bytes;
    if (peer.early.size() >= link.mostEarly || peer.earlyBytes + kept > kMaxEarlyBytes) {
      link.lose(sent.sender,
                Status::error(link.describe(sent.sender), " has sent ", peer.early.size(),
                              " messages that nothing receives, of ", peer.earlyBytes, " bytes",
                              Code::rankFailed));
      return UCS_OK;
    }
    peer.earlyBytes += kept;
    const bool isKept = bytes != 0 && mayKeep;
    peer.early.push_back({sent.tag, bytes, isKept ? data : nullptr, isRendezvous, {}});
    if (!isKept) {
      const auto *from = static_cast<const std::byte *>(data);
      peer.early.back().copy.assign(from, from + bytes);
    }
    return isKept ? UCS_INPROGRESS : UCS_OK;
  }

  static ucs_status_t onControl(void *argument, const void *, size_t, void *data, size_t bytes,
                                const ucp_am_recv_param_t *param) {
    auto &link = *static_cast<Link *>(argument);
    if (bytes > kMaxControlBytes || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
      return UCS_OK;
    link.worker->note();
    if (link.handler)
      link.handler(static_cast<const std::byte *>(data), bytes);
    return UCS_OK;
  }

  static void onDone(void *request, ucs_status_t status, void *argument) {
    auto &transfer = *static_cast<Transfer *>(argument);
    Link &link = *transfer.link;
    link.worker->ucx().ucp_request_free(request);
    link.finish(transfer, link.outcome(transfer, status));
  }
  static void onReceived(void *request, ucs_status_t status, size_t, void *argument) {
    onDone(request, status, argument);
  }

  static void onControlSent(void *request, ucs_status_t, void *argument) {
    auto &peer = *static_cast<Peer *>(argument);
    peer.link->worker->ucx().ucp_request_free(request);
    peer.frameMoves = false;
  }

  static void onFailure(void *argument, ucp_ep_h, ucs_status_t status) {
    auto &peer = *static_cast<Peer *>(argument);
    Link &link = *peer.link;
    link.worker->note();
    link.lose(peer.rank, Status::error("the connection to ", link.describe(peer.rank), " is lost: ",
                                       link.worker->ucx().text(status), Code::rankFailed));
  }
};

Link::Link(std::unique_ptr<Worker> worker, int64_t rank, int64_t ranks, size_t mostEarly)
    : worker(std::move(worker)), self(rank), mostEarly(mostEarly) {
  for (int64_t peer = 0; peer < ranks; ++peer) {
    peers.push_back(std::make_unique<Peer>());
    peers.back()->link = this;
    peers.back()->rank = peer;
  }
}

Result<std::unique_ptr<Link>> Link::create(std::shared_ptr<const UcxContext> context, int64_t rank,
                                           int64_t ranks, size_t mostEarly) {
  ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, Worker::create(std::move(context)));
  std::unique_ptr<Link> link(new Link(std::move(worker), rank, ranks, mostEarly));
  RETURN_IF_ERROR(link->worker->handle(kData, Callbacks::onData, link.get()));
  RETURN_IF_ERROR(link->worker->handle(kControl, Callbacks::onControl, link.get()));
  return link;
}

Link::~Link() {
  if (worker)
    (void)close(nowNs() + 1000000000);
}

Result<std::string> Link::address() const { return worker->address(); }

std::string Link::describe(int64_t peer) const {
  const std::string &host = at(peer).host;
  return "rank " + std::to_string(peer) + (host.empty() ? "" : " (" + host + ")");
}

const Status &Link::state(int64_t peer) const { return at(peer).state; }

void Link::connectLater(int64_t rank, const std::string &address, const std::string &host) {
  at(rank).host = host;
  at(rank).address = address;
}

Status Link::connect(int64_t rank, const std::string &address, const std::string &host) {
  connectLater(rank, address, host);
  return connectNow(rank);
}

Status Link::connectNow(int64_t rank) {
  Peer &peer = at(rank);
  if (peer.endpoint || peer.address.empty())
    return {};
  const std::string address = std::exchange(peer.address, {});
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t *>(address.data());
  return worker->connect(params, Callbacks::onFailure, &peer, peer.endpoint)
      .within("no connection to " + describe(rank));
}

void Link::finish(Transfer &transfer, Status status) {
  if (transfer.state == Transfer::State::moving)
    moving.erase(std::find(moving.begin(), moving.end(), &transfer));
  transfer.state = Transfer::State::done;
  transfer.result = std::move(status);
  if (worker)
    worker->note();
}

Status Link::outcome(const Transfer &transfer, int code) const {
  const auto status = static_cast<ucs_status_t>(code);
  if (status == UCS_OK)
    return {};
  const Status &lost = at(transfer.peer).state;
  return lost.ok()
             ? Status::error("a message between rank ", self, " and ", describe(transfer.peer),
                             " is lost: ", worker->ucx().text(status), Code::rankFailed)
             : lost;
}

bool Link::take(Transfer &receive, size_t bytes, void *data, bool isRendezvous) {
  if (bytes != receive.header.bytes) {
    finish(receive, Status::error(describe(receive.peer), " sent ", bytes, " bytes where rank ",
                                  self, " expects ", receive.header.bytes, Code::rankFailed));
    return false;
  }
  if (!isRendezvous) {
    const bool isRead = receive.reader && receive.reader->read(static_cast<std::byte *>(data));
    if (!isRead && bytes != 0)
      std::memcpy(receive.data, data, bytes);
    finish(receive, {});
    return false;
  }
  receive.state = Transfer::State::moving;
  moving.push_back(&receive);
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.cb.recv_am = Callbacks::onReceived;
  params.user_data = &receive;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  void *request =
      worker->ucx().ucp_am_recv_data_nbx(worker->handle(), data, receive.data, bytes, &params);
  if (!UCS_PTR_IS_PTR(request))
    finish(receive, outcome(receive, UCS_PTR_STATUS(request)));
  return true;
}

void Link::send(Transfer &transfer, int64_t to, uint64_t tag, const void *data, size_t bytes) {
  transfer.link = this;
  transfer.peer = to;
  transfer.header = {self, tag, bytes};
  transfer.state = Transfer::State::posted;
  Peer &peer = at(to);
  if (!peer.state.ok())
    return finish(transfer, peer.state);
  if (Status status = connectNow(to); !status.ok())
    return finish(transfer, std::move(status));
  if (!peer.endpoint)
    return finish(transfer, Status::error("rank ", self, " is not connected to ", describe(to)));
  transfer.state = Transfer::State::moving;
  moving.push_back(&transfer);
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.cb.send = Callbacks::onDone;
  params.user_data = &transfer;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  void *request = worker->ucx().ucp_am_send_nbx(peer.endpoint, kData, &transfer.header,
                                                sizeof transfer.header, data, bytes, &params);
  if (!UCS_PTR_IS_PTR(request))
    finish(transfer, outcome(transfer, UCS_PTR_STATUS(request)));
}

void Link::receive(Transfer &transfer, int64_t from, uint64_t tag, void *data, size_t bytes,
                   Transfer::Reader *reader) {
  transfer.link = this;
  transfer.peer = from;
  transfer.header = {from, tag, bytes};
  transfer.data = data;
  transfer.reader = reader;
  transfer.state = Transfer::State::posted;
  Peer &peer = at(from);
  auto found = std::find_if(peer.early.begin(), peer.early.end(),
                            [&](const Early &message) { return message.tag == tag; });
  if (found == peer.early.end()) {
    if (!peer.state.ok())
      return finish(transfer, peer.state);
    peer.receives.push_back(&transfer);
    return;
  }
  Early message = std::move(*found);
  peer.early.erase(found);
  peer.earlyBytes -= message.isRendezvous ? 0 : message.bytes;
  void *came = message.data ? message.data : message.copy.data();
  if (!take(transfer, message.bytes, came, message.isRendezvous) && message.data)
    worker->ucx().ucp_am_data_release(worker->handle(), message.data);
}

void Link::cancel(Transfer &receive) {
  if (receive.state != Transfer::State::posted)
    return;
  std::vector<Transfer *> &receives = at(receive.peer).receives;
  receives.erase(std::find(receives.begin(), receives.end(), &receive));
  finish(receive, Status::error("the receive was taken back", Code::rankFailed));
}

void Link::dropEarly(Peer &peer, const std::function<bool(const Early &)> &stale) {
  auto end = std::remove_if(peer.early.begin(), peer.early.end(), [&](const Early &message) {
    if (!stale(message))
      return false;
    peer.earlyBytes -= message.isRendezvous ? 0 : message.bytes;
    if (message.data)
      worker->ucx().ucp_am_data_release(worker->handle(), message.data);
    return true;
  });
  peer.early.erase(end, peer.early.end());
}

void Link::drop(const std::function<bool(uint64_t tag)> &stale) {
  for (auto &peer : peers)
    dropEarly(*peer, [&](const Early &message) { return stale(message.tag); });
}

int64_t Link::senderOf(uint64_t tag) const {
  for (const auto &peer : peers)
    if (std::any_of(peer->early.begin(), peer->early.end(),
                    [&](const Early &message) { return message.tag == tag; }))
      return peer->rank;
  return -1;
}

void Link::lose(int64_t rank, const Status &reason) {
  Peer &peer = at(rank);
  if (!peer.state.ok())
    return;
  peer.state = reason;
  someLost = true;
  const std::vector<Transfer *> receives = std::move(peer.receives);
  peer.receives.clear();
  for (Transfer *receive : receives)
    finish(*receive, reason);
}

void Link::giveUp() {
  for (auto &peer : peers)
    lose(peer->rank, Status::error("rank ", self, " closes its connections", Code::rankFailed));
}

void Link::abandonLost() {
  someLost = false;
  for (auto &peer : peers) {
    if (peer->state.ok())
      continue;
    dropEarly(*peer, [](const Early &message) { return message.isRendezvous; });
    if (peer->endpoint)
      worker->abandon(std::exchange(peer->endpoint, nullptr));
  }
}

void Link::setHandler(Handler function) { handler = std::move(function); }

bool Link::sendControl(int64_t to, const std::vector<std::byte> &frame) {
  Peer &peer = at(to);
  if (!peer.state.ok() || !connectNow(to).ok() || !peer.endpoint || peer.frameMoves ||
      frame.size() > kMaxControlBytes)
    return false;
  peer.frame = frame;
  peer.frameMoves = true;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = Callbacks::onControlSent;
  params.user_data = &peer;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  void *request = worker->ucx().ucp_am_send_nbx(peer.endpoint, kControl, nullptr, 0,
                                                peer.frame.data(), peer.frame.size(), &params);
  if (!UCS_PTR_IS_PTR(request))
    peer.frameMoves = false;
  return !UCS_PTR_IS_ERR(request);
}

void Link::setSpin(SpinLimit limit) {
  if (worker)
    worker->setSpin(limit);
}

Status Link::progress(int64_t until, int64_t latenessNs) {
  if (!worker)
    return Status::error("rank ", self, " has closed its connections", Code::rankFailed);
  Status status;
  if (until == 0)
    worker->poll();
  else
    status = worker->wait(until, latenessNs);
  if (someLost)
    abandonLost();
  return status;
}

void Link::signal() {
  if (worker)
    worker->signal();
}

Status Link::close(int64_t until) {
  if (!worker)
    return {};
  std::vector<ucp_ep_h> open;
  for (auto &peer : peers)
    if (peer->endpoint && peer->state.ok())
      open.push_back(peer->endpoint);
  // A peer may be gone already, which is no fault of the one that closes.
  if (!open.empty())
    (void)worker->flush(open, until);
  giveUp();
  abandonLost();
  for (auto &peer : peers)
    dropEarly(*peer, [](const Early &) { return true; });
  Status status = worker->close(until);
  // UCX ends requests with their endpoints; those of a worker that does not end are given up.
  while (!moving.empty())
    finish(*moving.back(), at(moving.back()->peer).state);
  worker.reset();
  return status;
}

} // namespace braid::runtime::net
