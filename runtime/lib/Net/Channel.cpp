//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Channel.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>

namespace braid::runtime::net {

/// The number of the active messages that carry frames of the start.
constexpr unsigned kStart = 3;
/// Frames that wait to be looked at, of all connections together. More are dropped, and who sent
/// them is refused when its time is over.
constexpr size_t kMaxWaiting = 4096;

Block Channel::mac(const void *data, size_t bytes, bool fromRankZero, uint64_t number,
                   const Block &challenge) const {
  return Mac(secret.text(), fromRankZero ? "braid start, from rank 0" : "braid start, to rank 0")
      .add(clientNonce)
      .add(challenge)
      .add(&number, sizeof number)
      .add(data, bytes)
      .value();
}

FrameBytes Channel::seal(const Frame &frame) {
  FrameBytes bytes = encode(frame);
  const Block block = mac(bytes.data(), bytes.size(), isRankZero, sent++, serverNonce);
  bytes.insert(bytes.end(), block.begin(), block.end());
  return bytes;
}

bool Channel::isGenuine(const std::byte *data, const Sealed &sealed, const Block &challenge) const {
  return areEqual(mac(data, sealed.bytes, !isRankZero, received, challenge), sealed.mac);
}

Result<std::unique_ptr<Port>> Port::create(std::shared_ptr<const UcxContext> networks) {
  ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, Worker::create(std::move(networks)));
  std::unique_ptr<Port> port(new Port(std::move(worker)));
  RETURN_IF_ERROR(port->worker->handle(kStart, onFrame, port.get()));
  return port;
}

Port::~Port() {
  if (worker)
    close(nowNs());
}

ucs_status_t Port::onFrame(void *argument, const void *, size_t, void *data, size_t bytes,
                           const ucp_am_recv_param_t *param) {
  auto &port = *static_cast<Port *>(argument);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0 ||
      (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || bytes > kMaxFrameBytes ||
      port.arrivals.size() >= kMaxWaiting)
    return UCS_OK;
  const auto *begin = static_cast<const std::byte *>(data);
  port.arrivals.push_back({param->reply_ep, FrameBytes(begin, begin + bytes)});
  port.worker->note();
  return UCS_OK;
}

void Port::onLoss(void *argument, ucp_ep_h endpoint, ucs_status_t status) {
  auto &port = *static_cast<Port *>(argument);
  port.losses.push_back({endpoint, status});
  port.worker->note();
}

void Port::onSent(void *request, ucs_status_t, void *argument) {
  // Owned by the request until now.
  const std::unique_ptr<std::pair<Port *, FrameBytes>> sent(
      static_cast<std::pair<Port *, FrameBytes> *>(argument));
  sent->first->ucx().ucp_request_free(request);
}

Status Port::connect(const ucp_ep_params_t &params, ucp_ep_h &endpoint) {
  RETURN_IF_ERROR(worker->connect(params, onLoss, this, endpoint));
  endpoints.push_back(endpoint);
  return {};
}

void Port::send(ucp_ep_h endpoint, FrameBytes bytes) {
  auto kept = std::make_unique<std::pair<Port *, FrameBytes>>(this, std::move(bytes));
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY;
  params.cb.send = onSent;
  params.user_data = kept.get();
  const FrameBytes &frame = kept->second;
  if (UCS_PTR_IS_PTR(
          ucx().ucp_am_send_nbx(endpoint, kStart, nullptr, 0, frame.data(), frame.size(), &params)))
    (void)kept.release();
}

void Port::end(ucp_ep_h endpoint) {
  auto found = std::find(endpoints.begin(), endpoints.end(), endpoint);
  if (found == endpoints.end())
    return;
  endpoints.erase(found);
  worker->abandon(endpoint);
}

void Port::close(int64_t until) {
  (void)worker->flush(endpoints, until);
  for (ucp_ep_h endpoint : endpoints)
    worker->abandon(endpoint);
  endpoints.clear();
  // The limit is for peers that do not answer; ending does not depend on them.
  (void)worker->close(std::max(until, nowNs() + 500000000));
  worker.reset();
}

} // namespace braid::runtime::net
