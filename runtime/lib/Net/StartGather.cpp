//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A start by an all_gather of the caller's. All processes get the same hellos and come to the same
// conclusion, so none of them tells it the others.
//
//===----------------------------------------------------------------------===//
#include "Starters.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime::net {

namespace {

/// What is gathered first. The same in all versions.
struct Announcement {
  char magic[8] = {'b', 'r', 'a', 'i', 'd', ' ', 'a', 'g'};
  uint32_t version = 0;
  uint32_t rank = 0;
  uint64_t bytes = 0; ///< of the hello, with its HMAC
};

Block macOf(const JobSecret &secret, const std::byte *hello, size_t bytes) {
  return Mac(secret.text(), "braid gathered start").add(hello, bytes).value();
}

/// Gathers `bytes` of each process.
Result<FrameBytes> gatherBytes(const JobOptions &options, const void *mine, size_t bytes) {
  FrameBytes all(bytes * static_cast<size_t>(options.size));
  const Status status = options.allGather(mine, bytes, all.data());
  RETURN_IF_ERROR(status.within("rank " + std::to_string(options.rank)));
  if (std::memcmp(all.data() + bytes * static_cast<size_t>(options.rank), mine, bytes) != 0)
    return Status::error("rank ", options.rank,
                         ": the caller's all_gather expects to give process ", options.rank, "'s ",
                         bytes, " bytes at ", options.rank, " times ", bytes,
                         ", got other bytes there", Code::rankFailed);
  return all;
}

} // namespace

Result<Job> gatherStart(const JobOptions &options, Hello own) {
  // Of this start only, as the nonces of the other starts are.
  ASSIGN_OR_RETURN(own.challenge, randomBlock());
  FrameBytes hello = encode(own);
  const Block mac = macOf(options.secret, hello.data(), hello.size());
  hello.insert(hello.end(), mac.begin(), mac.end());
  Announcement announced;
  announced.version = options.version;
  announced.rank = static_cast<uint32_t>(options.rank);
  announced.bytes = hello.size();
  ASSIGN_OR_RETURN(const FrameBytes announcements,
                   gatherBytes(options, &announced, sizeof announced));

  std::vector<size_t> sizes;
  for (int64_t rank = 0; rank < options.size; ++rank) {
    Announcement its;
    std::memcpy(&its, announcements.data() + static_cast<size_t>(rank) * sizeof its, sizeof its);
    auto error = [&](const auto &...what) {
      return Status::error("the caller's all_gather gives of process ", rank, " ", what...,
                           Code::rankFailed);
    };
    if (std::memcmp(its.magic, announced.magic, sizeof its.magic) != 0)
      return error("bytes that are no start of Braid");
    if (its.version != options.version)
      return error("version ", its.version, " of the protocol, rank ", options.rank,
                   " speaks version ", options.version);
    if (its.rank != rank)
      return error("what rank ", its.rank, " sent");
    if (its.bytes > kMaxFrameBytes)
      return error("a hello of ", its.bytes, " bytes, at most ", kMaxFrameBytes, " are expected");
    sizes.push_back(its.bytes);
  }
  const size_t largest = *std::max_element(sizes.begin(), sizes.end());
  hello.resize(largest);
  ASSIGN_OR_RETURN(const FrameBytes all, gatherBytes(options, hello.data(), largest));

  Job job;
  std::vector<Hello> hellos;
  for (int64_t rank = 0; rank < options.size; ++rank) {
    const std::byte *begin = all.data() + static_cast<size_t>(rank) * largest;
    const std::string where = "rank " + std::to_string(rank);
    ASSIGN_OR_RETURN(const Sealed sealed,
                     parseSealed(begin, sizes[static_cast<size_t>(rank)]).within(where));
    if (!areEqual(macOf(options.secret, begin, sealed.bytes), sealed.mac))
      return Status::error(where, " and rank ", options.rank, " have different job secrets",
                           Code::rankFailed);
    ASSIGN_OR_RETURN(Frame frame, parseFrame(begin, sealed.bytes).within(where));
    const auto *its = std::get_if<Hello>(&frame);
    if (!its || its->rank != rank)
      return Status::error(where, " sent a frame that is not its hello", Code::rankFailed);
    hellos.push_back(*its);
    RETURN_IF_ERROR(compare(hellos.back(), hellos.front()));
    job.members.push_back({its->hostId, its->host, its->numaNode, its->addresses});
  }
  job.rank = options.rank;
  job.key = sessionKey(options.secret, hellos.front().challenge);
  return job;
}

} // namespace braid::runtime::net
