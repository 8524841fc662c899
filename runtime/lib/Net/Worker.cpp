//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Worker.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace braid::runtime::net {

Result<std::unique_ptr<Worker>> Worker::create(std::shared_ptr<const UcxContext> context) {
  std::unique_ptr<Worker> self(new Worker(std::move(context)));
  const Ucx &ucx = self->ucx();
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // Calls come from different threads, one at a time.
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  RETURN_IF_ERROR(ucx.check(ucx.ucp_worker_create(self->context->handle(), &params, &self->worker),
                            "make a worker"));
  RETURN_IF_ERROR(ucx.check(ucx.ucp_worker_get_efd(self->worker, &self->descriptor),
                            "wait for its networks in the kernel"));
  self->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (self->wakeup < 0)
    return Status::error("cannot make an eventfd: ", std::strerror(errno));
  return self;
}

Worker::~Worker() {
  if (worker)
    (void)close(nowNs() + 1000000000);
  if (wakeup >= 0)
    ::close(wakeup);
}

Result<std::string> Worker::address() const {
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
  RETURN_IF_ERROR(ucx().check(ucx().ucp_worker_query(worker, &attributes), "tell its address"));
  std::string text(reinterpret_cast<const char *>(attributes.address), attributes.address_length);
  ucx().ucp_worker_release_address(worker, attributes.address);
  return text;
}

/// UCX may say for ever that it makes progress, with connections that break off, so a poll ends.
constexpr int kPollCalls = 256;
constexpr int64_t kPollNs = 1000000;

bool Worker::poll() {
  const uint64_t before = events;
  hasMoved = false;
  for (int64_t until = 0;;) {
    for (int i = 0; i < kPollCalls; ++i) {
      if (events != before || ucx().ucp_worker_progress(worker) == 0)
        return events != before;
      hasMoved = true;
    }
    const int64_t now = nowNs();
    if (until == 0)
      until = now + kPollNs;
    else if (now >= until)
      return false;
  }
}

void Worker::sleep(int64_t until, WakeOn wakeOn) const {
  pollfd entries[] = {{wakeup, POLLIN, 0}, {descriptor, POLLIN, 0}};
  const int64_t ns = std::max<int64_t>(0, until - nowNs());
  const timespec limit{static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
  // An interruption is a wake-up, too.
  if (ppoll(entries, wakeOn == WakeOn::any ? 2 : 1, &limit, nullptr) > 0 && entries[0].revents) {
    uint64_t ignored = 0;
    (void)!read(wakeup, &ignored, sizeof ignored);
  }
}

void Worker::setSpin(SpinLimit limit) {
  // What it has learned of spins in vain stays.
  if (limit.ns != spinLimit.ns || limit.yields != spinLimit.yields)
    spin = Spin(limit);
  spinLimit = limit;
}

/// While a long message arrives, every packet would wake the thread, which costs more than to
/// receive it. After so many wake-ups for parts of messages the thread pauses before it looks
/// again. It may see the end of a message late by a pause, which is therefore at most this part of
/// the time since the first of these wake-ups, with half of that time of the message before.
constexpr int kWakeUps = 3;
constexpr int64_t kPausePart = 32;
/// A caller to whom messages may be told late allows longer pauses at once (Lateness.h).
/// A shorter pause costs as much as the wake-up that it saves; in a longer one the kernel's buffers
/// may fill up. A pause shorter than a sleep saves no wake-up.
constexpr int64_t kMinPauseNs = 50000, kMaxPauseNs = 2000000;

Status Worker::wait(int64_t until, int64_t latenessNs) {
  auto hasCome = [&] { return poll() || signalled.exchange(false, std::memory_order_acquire); };
  const bool mayBeLate = latenessNs >= kMinPauseNs;
  if (mayBeLate ? hasCome() : spin.until(hasCome))
    return {};
  int64_t since = 0;
  int wakeUps = 0; // for parts of messages
  bool isFirst = true;
  while (!hasCome()) {
    const int64_t now = nowNs();
    if (now >= until)
      return {};
    if (hasMoved || (isFirst && mayBeLate)) {
      isFirst = false;
      if (++wakeUps == 1)
        since = now - arrivalNs / 2;
      const int64_t own = wakeUps >= kWakeUps ? (now - since) / kPausePart : 0;
      const int64_t pause = std::min(std::max(own, latenessNs), kMaxPauseNs);
      if (pause >= std::max(kMinPauseNs, sleepNs)) {
        sleep(std::min(now + pause, until), WakeOn::signal);
        continue;
      }
    }
    // Arming fails while there is something to do, so nothing that comes is slept over.
    const ucs_status_t status = ucx().ucp_worker_arm(worker);
    if (status == UCS_ERR_BUSY)
      continue;
    RETURN_IF_ERROR(ucx().check(status, "wait for its networks"));
    sleep(until, WakeOn::any);
    sleepNs = (sleepNs + nowNs() - now) / 2;
  }
  arrivalNs = wakeUps ? nowNs() - since : arrivalNs / 2;
  return {};
}

void Worker::signal() {
  signalled.store(true, std::memory_order_release);
  const uint64_t one = 1;
  (void)!write(wakeup, &one, sizeof one);
}

Status Worker::handle(unsigned id, ucp_am_recv_callback_t callback, void *argument) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  // Without UCP_AM_FLAG_PERSISTENT_DATA, with which UCX copies all that TCP has received.
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  params.cb = callback;
  params.arg = argument;
  return ucx().check(ucx().ucp_worker_set_am_recv_handler(worker, &params), "receive messages");
}

Status Worker::connect(ucp_ep_params_t params, ucp_err_handler_cb_t failed, void *argument,
                       ucp_ep_h &endpoint) const {
  // With this mode the death of a peer is an error, not a silence.
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {failed, argument};
  return ucx().check(ucx().ucp_ep_create(worker, &params, &endpoint), "connect");
}

void Worker::abandon(ucp_ep_h endpoint) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void *request = ucx().ucp_ep_close_nbx(endpoint, &params);
  if (UCS_PTR_IS_PTR(request))
    closing.push_back(request);
}

bool Worker::finish(void *request, int64_t until, ucs_status_t &status) {
  if (!UCS_PTR_IS_PTR(request)) {
    status = UCS_PTR_STATUS(request);
    return true;
  }
  while ((status = ucx().ucp_request_check_status(request)) == UCS_INPROGRESS) {
    const bool moved = ucx().ucp_worker_progress(worker) != 0;
    if (nowNs() >= until)
      return false;
    if (moved)
      continue;
    // No event may come for it, so sleeps are short.
    if (ucx().ucp_worker_arm(worker) == UCS_OK)
      sleep(std::min(until, nowNs() + 1000000), WakeOn::any);
  }
  ucx().ucp_request_free(request);
  return true;
}

Status Worker::flush(const std::vector<ucp_ep_h> &endpoints, int64_t until) {
  std::vector<void *> requests;
  ucp_request_param_t params{};
  for (ucp_ep_h endpoint : endpoints)
    requests.push_back(ucx().ucp_ep_flush_nbx(endpoint, &params));
  Status result;
  for (void *request : requests) {
    ucs_status_t status = UCS_OK;
    if (!finish(request, until, status)) {
      closing.push_back(request); // ends with its endpoint
      status = UCS_ERR_TIMED_OUT;
    }
    if (result.ok())
      result = ucx().check(status, "send what is left");
  }
  return result;
}

Status Worker::close(int64_t until) {
  bool all = true;
  for (void *request : closing) {
    ucs_status_t ignored = UCS_OK;
    all &= finish(request, until, ignored);
  }
  closing.clear();
  ucp_worker_h ended = worker;
  worker = nullptr;
  if (!all)
    return Status::error("UCX does not end its connections", Code::rankFailed);
  ucx().ucp_worker_destroy(ended);
  return {};
}

} // namespace braid::runtime::net
