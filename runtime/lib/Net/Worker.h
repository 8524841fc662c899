//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A worker of UCX: what one thread at a time makes progress on, and sleeps on.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_WORKER_H
#define BRAID_NET_WORKER_H

#include "Ucx.h"
#include "runtime/lib/Sync/Counter.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace braid::runtime::net {

/// Everything but `signal` is for one thread at a time.
class Worker {
public:
  static Result<std::unique_ptr<Worker>> create(std::shared_ptr<const UcxContext> context);
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;
  /// Calls `close` with a short limit, unless it was called.
  ~Worker();

  const Ucx &ucx() const { return context->ucx(); }
  ucp_worker_h handle() const { return worker; }
  /// Where endpoints of other processes connect to.
  Result<std::string> address() const;

  /// How `wait` spins before it sleeps.
  void setSpin(SpinLimit limit);
  /// Handlers call it for whatever they did, so that `wait` returns.
  void note() { ++events; }
  /// Handles what has come, without waiting. Returns whether anything was noted.
  bool poll();
  /// Returns once something was noted or signalled, or when nowNs() reaches `until`. What is noted
  /// may be told late by `latenessNs`, so that the thread wakes up less often.
  Status wait(int64_t until, int64_t latenessNs = 0);
  /// Wakes the thread that waits, or makes its next wait return at once. For any thread.
  void signal();

  /// Sets the handler of active messages of this number. Data that arrived without
  /// UCP_AM_RECV_ATTR_FLAG_DATA is gone when it returns.
  Status handle(unsigned id, ucp_am_recv_callback_t callback, void *argument);
  /// Makes an endpoint; on its failure `failed` is called once, while the worker makes progress.
  Status connect(ucp_ep_params_t params, ucp_err_handler_cb_t failed, void *argument,
                 ucp_ep_h &endpoint) const;
  /// Gives up an endpoint without waiting for its peer: what was not sent is lost. `close` waits
  /// for it.
  void abandon(ucp_ep_h endpoint);
  /// Waits until everything sent to the endpoints has left this process, or until nowNs() reaches
  /// `until`.
  Status flush(const std::vector<ucp_ep_h> &endpoints, int64_t until);
  /// Ends the worker. All endpoints must be abandoned. What UCX does not give back by `until` stays
  /// allocated, which the status says.
  Status close(int64_t until);

private:
  explicit Worker(std::shared_ptr<const UcxContext> context) : context(std::move(context)) {}
  /// Waits for a request of an endpoint and frees it; false at `until`.
  bool finish(void *request, int64_t until, ucs_status_t &status);
  enum class WakeOn { signal, any };
  /// Sleeps until a signal comes, or, with `any`, UCX has something to do; at most until `until`.
  void sleep(int64_t until, WakeOn wakeOn) const;

  std::shared_ptr<const UcxContext> context;
  ucp_worker_h worker = nullptr;
  int descriptor = -1; ///< readable when UCX has something to do
  int wakeup = -1;     ///< readable after a signal
  SpinLimit spinLimit;
  Spin spin;
  int64_t arrivalNs = 0; ///< how long the last message took to arrive, and half of those before it
  int64_t sleepNs = 0;   ///< mean length of a sleep, of which the last counts half
  bool hasMoved = false; ///< whether bytes came or went in the last poll
  uint64_t events = 0;
  std::atomic<bool> signalled{false};
  std::vector<void *> closing; ///< requests of abandoned endpoints
};

} // namespace braid::runtime::net
#endif // BRAID_NET_WORKER_H
