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

#include <string>

namespace braid::runtime::net {

/// The same for all processes that share a kernel since its start, and a network namespace: only
/// these can pass memory to each other over local sockets. Containers with a network of their own
/// are hosts of their own.
std::string hostId();
/// The same for all processes of one user that can pass memory to each other, and watch each other.
std::string memoryId();
/// What messages call this host.
std::string hostName();

} // namespace braid::runtime::net
#endif // BRAID_NET_HOST_H
