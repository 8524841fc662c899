//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Ucx.h"
#include "braid/Base/StatusMacros.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <sstream>
#include <vector>

namespace braid::runtime::net {

namespace {

/// The handlers of all signals, which UCX replaces when it is loaded (UCX_HANDLE_ERRORS). An
/// embedding program, and a sanitizer, have their own.
class SignalHandlers {
public:
  SignalHandlers() : kept(NSIG) {
    for (int signal = 1; signal < NSIG; ++signal)
      known.push_back(sigaction(signal, nullptr, &kept[static_cast<size_t>(signal)]) == 0);
  }
  SignalHandlers(const SignalHandlers &) = delete;
  SignalHandlers &operator=(const SignalHandlers &) = delete;
  ~SignalHandlers() {
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction now{};
      const struct sigaction &before = kept[static_cast<size_t>(signal)];
      if (known[static_cast<size_t>(signal) - 1] && sigaction(signal, nullptr, &now) == 0 &&
          now.sa_handler != before.sa_handler)
        sigaction(signal, &before, nullptr);
    }
  }

private:
  std::vector<struct sigaction> kept;
  std::vector<bool> known;
};

/// Longer messages wait for their receive before they travel. Over TCP, where both directions share
/// a connection, the word that a receive is there waits behind the data of the other direction, so
/// that only one of them moves at a time: messages of collectives, which are shorter, do without
/// it.
constexpr size_t kMaxEagerBytes = size_t(512) << 10;
/// What UCX receives of TCP at once. A message that is longer comes in fragments, which UCX puts
/// together in other memory before it hands them out.
constexpr size_t kReceivedBytes = kMaxEagerBytes + (size_t(4) << 10);

bool hasRdma() {
  std::error_code none;
  return !std::filesystem::is_empty("/sys/class/infiniband", none) && !none;
}

} // namespace

Result<std::shared_ptr<const Ucx>> Ucx::load() {
  // Loading changes handlers of signals for a moment, so one thread at a time does it.
  static std::mutex loading;
  const std::lock_guard<std::mutex> lock(loading);
  auto ucx = std::make_shared<Ucx>();
  {
    const SignalHandlers handlers;
    RETURN_IF_ERROR(ucx->open().within("ranks in several processes expect UCX"));
  }
  unsigned major = 0, minor = 0, release = 0;
  ucx->ucp_get_version(&major, &minor, &release);
  if (major != 1 || minor < 12)
    return Status::error("ranks in several processes expect UCX 1.12 or a later 1.x, got ", major,
                         ".", minor, ".", release);
  // What goes wrong is told by our own errors. Otherwise UCX writes to the standard output.
  if (!std::getenv("UCX_LOG_LEVEL"))
    ucx->ucs_global_opts_set_value("LOG_LEVEL", "fatal");
  return std::shared_ptr<const Ucx>(std::move(ucx));
}

Status Ucx::open() {
  RETURN_IF_ERROR(ucs.open("UCX's services", {"libucs.so.0"}));
  RETURN_IF_ERROR(ucp.open("UCX", {"libucp.so.0"}));
  Status status;
  {
    const SharedLibrary &library = ucp;
    BRAID_UCP_SYMBOLS(BRAID_FIND_SYMBOL)
  }
  const SharedLibrary &library = ucs;
  BRAID_UCS_SYMBOLS(BRAID_FIND_SYMBOL)
  return status;
}

Status Ucx::check(ucs_status_t status, const std::string &what) const {
  return status == UCS_OK
             ? Status()
             : Status::error("UCX cannot " + what + ": " + text(status), Code::rankFailed);
}

/// What narrows the networks down, as options or the environment say: a misspelled one is likely.
static std::string textOfChoice(const NetOptions &options) {
  std::string text;
  auto add = [&](const char *variable, const std::string &option, const char *what) {
    const char *set = std::getenv(variable);
    if (option.empty() && !set)
      return;
    text += (text.empty() ? " (" : ", ") + std::string(option.empty() ? variable : what) + " '" +
            (option.empty() ? set : option) + "'";
  };
  add("UCX_TLS", options.transports, "transports");
  add("UCX_NET_DEVICES", options.devices, "devices");
  return text.empty() ? text : text + ")";
}

Result<std::shared_ptr<const UcxContext>> openNetworks(const NetOptions &options) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Ucx> ucx, Ucx::load());
  ucp_config_t *config = nullptr;
  RETURN_IF_ERROR(ucx->check(ucx->ucp_config_read(nullptr, nullptr, &config), "read its options"));
  Status status;
  auto set = [&](const char *name, const std::string &value) {
    if (status.ok())
      status = ucx->check(ucx->ucp_config_modify(config, name, value.c_str()),
                          std::string("set ") + name + " to '" + value + "'");
  };
  if (!options.transports.empty())
    set("TLS", options.transports);
  else if (!std::getenv("UCX_TLS"))
    set("TLS", "^shm");
  if (!options.devices.empty())
    set("NET_DEVICES", options.devices);
  if (!std::getenv("UCX_RNDV_THRESH") && !hasRdma())
    set("RNDV_THRESH", std::to_string(kMaxEagerBytes + 1));
  // Otherwise a thread that connects to a host that is down waits in the kernel for minutes.
  // UCX 1.13 has options of TCP without their prefix, later versions with it; it ignores what it
  // has not.
  if (!std::getenv("UCX_TCP_CONN_NB"))
    for (const char *name : {"CONN_NB", "TCP_CONN_NB"})
      (void)ucx->ucp_config_modify(config, name, "y");
  if (!std::getenv("UCX_TCP_RX_SEG_SIZE"))
    for (const char *name : {"RX_SEG_SIZE", "TCP_RX_SEG_SIZE"})
      (void)ucx->ucp_config_modify(config, name, std::to_string(kReceivedBytes).c_str());
  ucp_params_t params{};
  params.field_mask =
      UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  params.name = "braid";
  ucp_context_h context = nullptr;
  if (status.ok())
    status =
        ucx->check(ucx->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context),
                   "use this host's networks" + textOfChoice(options));
  ucx->ucp_config_release(config);
  RETURN_IF_ERROR(status);
  auto opened = std::make_shared<const UcxContext>(std::move(ucx), context);
  // UCX ignores devices that there are not, and waits for peers that it cannot reach.
  if (const std::vector<std::string> names = transportNames(*opened);
      names.empty() || names == std::vector<std::string>{"self"})
    return Status::error("UCX finds no network of this host to use", textOfChoice(options),
                         Code::rankFailed);
  return opened;
}

std::vector<std::string> transportNames(const UcxContext &networks) {
  // UCX tells them as text only: "#  resource 1  :  md 1  dev 1  flags -- tcp/lo".
  char *text = nullptr;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  if (!stream)
    return {};
  networks.ucx().ucp_context_print_info(networks.handle(), stream);
  std::fclose(stream);
  std::istringstream lines(std::string(text, size));
  std::free(text);
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);)
    if (line.find("resource ") != std::string::npos)
      if (const size_t at = line.rfind(' '), end = line.find('/', at); end != std::string::npos)
        names.insert(line.substr(at + 1, end - at - 1));
  return {names.begin(), names.end()};
}

} // namespace braid::runtime::net
