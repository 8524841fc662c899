//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The functions of UCX in use, and a context: UCX's view of the host's networks, which the workers
// of a process share. Its libraries are loaded when the first context is asked for.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_UCX_H
#define BRAID_NET_UCX_H

#include "Networks.h"
#include "runtime/lib/Sync/SharedLibrary.h"

#include <memory>
#include <string>
#include <ucp/api/ucp.h>

namespace braid::runtime::net {

#define BRAID_UCP_SYMBOLS(X)                                                                       \
  X(ucp_get_version, decltype(::ucp_get_version))                                                  \
  X(ucp_init_version, decltype(::ucp_init_version))                                                \
  X(ucp_cleanup, decltype(::ucp_cleanup))                                                          \
  X(ucp_context_print_info, decltype(::ucp_context_print_info))                                    \
  X(ucp_config_read, decltype(::ucp_config_read))                                                  \
  X(ucp_config_modify, decltype(::ucp_config_modify))                                              \
  X(ucp_config_release, decltype(::ucp_config_release))                                            \
  X(ucp_worker_create, decltype(::ucp_worker_create))                                              \
  X(ucp_worker_destroy, decltype(::ucp_worker_destroy))                                            \
  X(ucp_worker_query, decltype(::ucp_worker_query))                                                \
  X(ucp_worker_release_address, decltype(::ucp_worker_release_address))                            \
  X(ucp_worker_progress, decltype(::ucp_worker_progress))                                          \
  X(ucp_worker_get_efd, decltype(::ucp_worker_get_efd))                                            \
  X(ucp_worker_arm, decltype(::ucp_worker_arm))                                                    \
  X(ucp_worker_set_am_recv_handler, decltype(::ucp_worker_set_am_recv_handler))                    \
  X(ucp_ep_create, decltype(::ucp_ep_create))                                                      \
  X(ucp_ep_close_nbx, decltype(::ucp_ep_close_nbx))                                                \
  X(ucp_ep_flush_nbx, decltype(::ucp_ep_flush_nbx))                                                \
  X(ucp_am_send_nbx, decltype(::ucp_am_send_nbx))                                                  \
  X(ucp_am_recv_data_nbx, decltype(::ucp_am_recv_data_nbx))                                        \
  X(ucp_am_data_release, decltype(::ucp_am_data_release))                                          \
  X(ucp_request_check_status, decltype(::ucp_request_check_status))                                \
  X(ucp_request_free, decltype(::ucp_request_free))

#define BRAID_UCS_SYMBOLS(X)                                                                       \
  X(ucs_status_string, decltype(::ucs_status_string))                                              \
  X(ucs_global_opts_set_value, ucs_status_t(const char *, const char *))

class Ucx {
public:
  /// Loads UCX 1.12 or newer. Changes nothing in the process: UCX's handlers of signals are removed
  /// again.
  static Result<std::shared_ptr<const Ucx>> load();
  BRAID_UCP_SYMBOLS(BRAID_DECLARE_SYMBOL)
  BRAID_UCS_SYMBOLS(BRAID_DECLARE_SYMBOL)
  /// "Connection reset by remote peer"
  std::string text(ucs_status_t status) const { return ucs_status_string(status); }
  Status check(ucs_status_t status, const std::string &what) const;

private:
  Status open();
  SharedLibrary ucp, ucs;
};

/// What the workers of a process share. Workers may belong to different threads.
class UcxContext {
public:
  UcxContext(std::shared_ptr<const Ucx> library, ucp_context_h handle)
      : library(std::move(library)), context(handle) {}
  UcxContext(const UcxContext &) = delete;
  UcxContext &operator=(const UcxContext &) = delete;
  ~UcxContext() { library->ucp_cleanup(context); }
  const Ucx &ucx() const { return *library; }
  ucp_context_h handle() const { return context; }

private:
  std::shared_ptr<const Ucx> library;
  ucp_context_h context;
};

} // namespace braid::runtime::net
#endif // BRAID_NET_UCX_H
