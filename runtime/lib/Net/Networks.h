//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What this process may use to reach other hosts. The header of every user of links: it includes
// nothing of UCX.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_NETWORKS_H
#define BRAID_NET_NETWORKS_H

#include "braid/Base/Status.h"

#include <memory>
#include <string>
#include <vector>

namespace braid::runtime::net {

struct NetOptions {
  /// UCX's names of transports, as in UCX_TLS. Empty: that variable, or else all but shared memory,
  /// as ranks of one host exchange values in memory of their own (ArenaExchange.h).
  std::string transports;
  /// The network devices that UCX may use ("eth0", "mlx5_0:1", or a list), as in UCX_NET_DEVICES.
  /// Empty: that variable, or else all.
  std::string devices;
};

class UcxContext; // Ucx.h

/// Loads UCX and opens the networks; the links of a process share them. Nothing of it may exist in
/// a process that forks.
Result<std::shared_ptr<const UcxContext>> openNetworks(const NetOptions &options);
/// UCX's names of the transports that can be used, in alphabetical order: "posix", "tcp".
std::vector<std::string> transportNames(const UcxContext &networks);

} // namespace braid::runtime::net
#endif // BRAID_NET_NETWORKS_H
