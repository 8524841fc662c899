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

/// For how long one side waits until the other one has read why a process is refused, before it
/// ends the connection.
constexpr int64_t kGoodbyeNs = 1000000000;

/// Of rank 0.
Result<Job> serveStart(const JobOptions &options, Hello own);
/// Of the other ranks.
Result<Job> joinStart(const JobOptions &options, Hello own);
/// Of all ranks, by the caller's all_gather.
Result<Job> gatherStart(const JobOptions &options, Hello own);

/// "rank 1 (host 'a', process 7)"
std::string describe(const Hello &hello);
/// Whether a process can be a rank of the job of this rank 0.
Status compare(const Hello &hello, const Hello &rankZero);
/// The error for two processes of the same rank.
Status rankTwice(const Hello &first, const Hello &second);

/// The key for control, of the table's nonce.
std::string sessionKey(const JobSecret &secret, const Block &session);

} // namespace braid::runtime::net
#endif // BRAID_NET_STARTERS_H
