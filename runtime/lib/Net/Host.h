//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What tells hosts apart.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_HOST_H
#define BRAID_NET_HOST_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace braid::runtime::net {

/// The same for all processes that share a kernel since its start, and a network namespace: only
/// these can pass memory to each other over local sockets. Containers with a network of their own
/// are hosts of their own.
std::string hostId();
/// The same for all processes of one user that can pass memory to each other, and watch each other.
std::string memoryId();
/// What messages call this host.
std::string hostName();
/// The NUMA node that has all of these processors, by the kernel's lists of those of each node,
/// such as "0-3,8"; 0 where no node has all, and where a list is none.
int64_t numaNodeOf(const std::vector<int> &processors,
                   const std::map<int64_t, std::string> &processorsOfNodes);
/// That of the processors which this process may use, as launchers bind processes to nodes.
int64_t numaNode();

} // namespace braid::runtime::net
#endif // BRAID_NET_HOST_H
