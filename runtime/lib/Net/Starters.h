//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The two sides of a start; Bootstrap.h describes it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_STARTERS_H
#define BRAID_NET_STARTERS_H

#include "Address.h"
#include "Bootstrap.h"

namespace braid::runtime::net {

/// Of rank 0.
Result<Job> serveStart(const std::shared_ptr<const UcxContext> &networks, const JobOptions &options,
                       Hello own);
/// Of the other ranks.
Result<Job> joinStart(const std::shared_ptr<const UcxContext> &networks, const JobOptions &options,
                      Hello own);

/// The key for control, of the table's nonce.
std::string sessionKey(const JobSecret &secret, const Block &session);

} // namespace braid::runtime::net
#endif // BRAID_NET_STARTERS_H
